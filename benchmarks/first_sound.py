"""First audible sound and total time, in one run: whole, streamed, over loopback HTTP, and the peer.

    python -m benchmarks.first_sound [--repeats 31] [--json benchmarks/results/first_sound.json]

Three texts (a short one, a 25-word sentence, an 80-word paragraph), each spoken by

    whole       this engine, everything made before anything is heard
    streamed    `legato.Voice` in this process
    http        `legato serve` in a process of its own, `POST /v1/audio/speech`, raw PCM, one kept connection
    hibari-tts  the package's own `Hibari.stream`, a sentence at a time

in turn, so that a slow minute of the machine hits all of them. Times are the listener's: the clock starts when the text
is handed over, `first packet` is the first one that holds samples, `first sound` is when the first audible sample
(-50 dBFS) is played by a player that starts at the first packet. Medians, and the 10th to 90th percentile.
"""

import argparse
from pathlib import Path

from hibari import Hibari as Peer

import legato
from benchmarks.listening import TEXTS, Server, Speaker, measure, over_http, save, show, streamed, whole
from legato.engines.hibari import Hibari, HibariConfig

RATE = 24_000


def peer() -> Speaker:
    """The package's own stream, which also opens with the voice's silence."""
    voice = Peer()
    return lambda text: voice.stream(text, seed=0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/first_sound.json"))
    options = parser.parse_args()
    server = Server()
    memory = {"at rest": server.resident_mib()}
    try:
        with legato.Voice() as voice:
            ways = {
                "whole": whole(Hibari(HibariConfig(first_frames=10**6, window_frames=10**6)), "heart"),
                "streamed": streamed(voice),
                "http": over_http(server.host, server.port, "hibari"),
                "hibari-tts": peer(),
            }
            takes = measure(ways, options.repeats, RATE)
        speak = over_http(server.host, server.port, "hibari")
        for label in ("after 100 requests", "after 200 requests"):
            for number in range(100):
                list(speak(list(TEXTS.values())[number % 3]))
            memory[label] = server.resident_mib()
    finally:
        server.stop()
    show(takes, options.repeats)
    print("server memory, MiB: " + ", ".join(f"{label} {value:.0f}" for label, value in memory.items()))
    save(options.json, takes, {"server_memory_mib": memory})


if __name__ == "__main__":
    main()
