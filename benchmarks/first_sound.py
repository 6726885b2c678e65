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
import http.client
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hibari import Hibari as Peer
from numpy.typing import NDArray

import legato
from benchmarks.environment import environment
from legato.core.engine import VoiceSettings
from legato.core.segmenter import PlainSegmenter
from legato.core.trace import Trace, report
from legato.engines.hibari import Hibari, HibariConfig

RATE = 24_000
TEXTS = {
    "short": "Hello there, how are you today?",
    "25 words": (
        "The committee agreed that the new library should open early on weekdays so that students can read quietly "
        "before their first lessons begin each morning."
    ),
    "80 words": (
        "When the storm finally passed, the villagers walked down to the harbour to see what was left of their boats. "
        "Most of them had been pulled high onto the shingle in time, but two had been carried off by the waves and "
        "lay broken against the sea wall. Nobody spoke for a while. Then the oldest of the fishermen laughed, picked "
        "up a plank, and said that they had better start building again before the cold winter came on again."
    ),
}
Samples = NDArray[np.float32]
Speaker = Callable[[str], Iterator[Samples]]


@dataclass(frozen=True)
class Take:
    """One text spoken once. Milliseconds, and seconds of audio."""

    first_packet: float
    first_sound: float
    total: float
    audio: float


def take(speaker: Speaker, text: str) -> Take:
    """Listen to a text."""
    trace = Trace(RATE, requested_at=time.perf_counter())
    for pcm in speaker(text):
        trace.chunk(pcm, time.perf_counter())
    trace.end(time.perf_counter())
    facts = report(trace)
    assert facts.ttfp is not None
    assert facts.ttfa is not None
    assert facts.e2e is not None
    return Take(1000 * facts.ttfp, 1000 * facts.ttfa, 1000 * facts.e2e, facts.audio)


def whole() -> Speaker:
    """The same engine and decoder, not streamed."""
    engine = Hibari(HibariConfig(first_frames=10**6, window_frames=10**6))
    voice = VoiceSettings(engine.info.voices[0].name)

    def speak(text: str) -> Iterator[Samples]:
        segmenter = PlainSegmenter()
        segments = [*segmenter.push(text, 0.0), *segmenter.flush(0.0)]
        yield np.concatenate([block for segment in segments for block in engine.speak(segment, voice)])

    return speak


def streamed(voice: legato.Voice) -> Speaker:
    """The library."""

    def speak(text: str) -> Iterator[Samples]:
        for chunk in voice.speak(text):
            yield chunk.pcm

    return speak


def over_http(host: str, port: int) -> Speaker:
    """The server, on a connection that is kept."""
    connection = http.client.HTTPConnection(host, port)

    def speak(text: str) -> Iterator[Samples]:
        body = json.dumps({"model": "hibari", "input": text, "voice": "heart", "response_format": "pcm"})
        connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(response.read().decode())
        odd = b""
        while data := response.read1(1 << 16):
            data = odd + data
            usable = len(data) & ~1
            odd = data[usable:]
            yield np.frombuffer(data[:usable], "<i2").astype(np.float32) / 32768

    return speak


def peer() -> Speaker:
    """The package's own stream, which also opens with the voice's silence."""
    voice = Peer()
    return lambda text: voice.stream(text, seed=0)


class Server:
    """`legato serve` in a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "legato", "serve", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.search(r"http://([\d.]+):(\d+)", line)
            if found:
                self.host, self.port = found[1], int(found[2])
                return
        raise RuntimeError("legato serve ended before it was ready")

    def resident_mib(self) -> float:
        """Memory that the process holds."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


def quantile(values: list[float], share: float) -> float:
    """A percentile, as numpy interpolates it."""
    return float(np.quantile(values, share))


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
                "whole": whole(),
                "streamed": streamed(voice),
                "http": over_http(server.host, server.port),
                "hibari-tts": peer(),
            }
            takes = measure(ways, options.repeats)
        speak = over_http(server.host, server.port)
        for label in ("after 100 requests", "after 200 requests"):
            for number in range(100):
                list(speak(list(TEXTS.values())[number % 3]))
            memory[label] = server.resident_mib()
    finally:
        server.stop()
    show(takes, memory, options.repeats)
    save(options.json, takes, memory)


def measure(ways: dict[str, Speaker], repeats: int) -> dict[str, dict[str, list[Take]]]:
    """Every text, every way, in turn; the first round warms up and is not kept."""
    takes: dict[str, dict[str, list[Take]]] = {text: {way: [] for way in ways} for text in TEXTS}
    for number in range(repeats + 1):
        for text, words in TEXTS.items():
            for way, speaker in ways.items():
                found = take(speaker, words)
                if number:
                    takes[text][way].append(found)
    return takes


def show(takes: dict[str, dict[str, list[Take]]], memory: dict[str, float], repeats: int) -> None:
    """Print the tables."""
    print(f"median of {repeats} (10th-90th percentile), milliseconds")
    print(f"{'text':10}{'way':12}{'audio s':>8}{'first packet':>22}{'first sound':>22}{'total':>24}{'of whole':>10}")
    for text, by_way in takes.items():
        base = statistics.median(found.total for found in by_way["whole"])
        for way, found in by_way.items():
            columns = []
            for name in ("first_packet", "first_sound", "total"):
                values = [getattr(one, name) for one in found]
                spread = f"({quantile(values, 0.1):.1f}-{quantile(values, 0.9):.1f})"
                columns.append(f"{statistics.median(values):.1f} {spread}")
            share = statistics.median(one.first_sound for one in found) / base
            print(
                f"{text:10}{way:12}{found[0].audio:8.1f}{columns[0]:>22}{columns[1]:>22}{columns[2]:>24}{share:>10.2f}"
            )
    print("first sound as a share of the time that the whole takes is in the last column")
    print("server memory, MiB: " + ", ".join(f"{label} {value:.0f}" for label, value in memory.items()))


def save(path: Path, takes: dict[str, dict[str, list[Take]]], memory: dict[str, float]) -> None:
    """Write the raw figures with what they were measured on."""
    raw = {
        text: {
            way: {
                name: [round(getattr(one, name), 3) for one in found]
                for name in ("first_packet", "first_sound", "total", "audio")
            }
            for way, found in by_way.items()
        }
        for text, by_way in takes.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {"environment": environment(), "texts": TEXTS, "unit": "ms", "takes": raw, "server_memory_mib": memory}
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
