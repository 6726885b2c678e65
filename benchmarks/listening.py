"""What the benchmarks of first sound share: texts, the listener's clock, the server, tables, raw data."""

import http.client
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.environment import environment
from legato.core.engine import Engine, VoiceSettings
from legato.core.segmenter import PlainSegmenter
from legato.core.trace import Trace, report

if TYPE_CHECKING:
    from legato.api import Voice  # not in the peers' environment

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


def take(speaker: Speaker, text: str, rate: int) -> Take:
    """Listen to a text."""
    trace = Trace(rate, requested_at=time.perf_counter())
    for pcm in speaker(text):
        trace.chunk(pcm, time.perf_counter())
    trace.end(time.perf_counter())
    facts = report(trace)
    assert facts.ttfp is not None
    assert facts.ttfa is not None
    assert facts.e2e is not None
    return Take(1000 * facts.ttfp, 1000 * facts.ttfa, 1000 * facts.e2e, facts.audio)


def whole(engine: Engine, voice: str) -> Speaker:
    """An engine that does not stream: each segment in one go, and everything before anything is heard."""
    settings = VoiceSettings(voice)

    def speak(text: str) -> Iterator[Samples]:
        segmenter = PlainSegmenter()
        segments = [*segmenter.push(text, 0.0), *segmenter.flush(0.0)]
        yield np.concatenate([block for segment in segments for block in engine.speak(segment, settings)])

    return speak


def streamed(voice: "Voice") -> Speaker:
    """The library."""
    return lambda text: (chunk.pcm for chunk in voice.speak(text))


def over_http(host: str, port: int, model: str) -> Speaker:
    """The server, on a connection that is kept."""
    connection = http.client.HTTPConnection(host, port)

    def speak(text: str) -> Iterator[Samples]:
        body = json.dumps({"model": model, "input": text, "response_format": "pcm"})
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


class Server:
    """`legato serve` in a process of its own.

    Args:
        arguments: more for the command.
        environment: of the process; None for this one's.
    """

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "legato", "serve", "--port", "0", *arguments],
            env=environment,
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


def measure(ways: dict[str, Speaker], repeats: int, rate: int) -> dict[str, dict[str, list[Take]]]:
    """Every text, every way, in turn; the first round warms up and is not kept."""
    takes: dict[str, dict[str, list[Take]]] = {text: {way: [] for way in ways} for text in TEXTS}
    for number in range(repeats + 1):
        for text, words in TEXTS.items():
            for way, speaker in ways.items():
                found = take(speaker, words, rate)
                if number:
                    takes[text][way].append(found)
    return takes


def show(takes: dict[str, dict[str, list[Take]]], repeats: int) -> None:
    """Print a row for each text and way; the first way is what the others are compared with."""
    print(f"median of {repeats} (10th-90th percentile), milliseconds")
    print(f"{'text':10}{'way':16}{'audio s':>8}{'first packet':>22}{'first sound':>22}{'total':>24}{'of whole':>10}")
    for text, by_way in takes.items():
        base = statistics.median(found.total for found in next(iter(by_way.values())))
        for way, found in by_way.items():
            columns = []
            for name in ("first_packet", "first_sound", "total"):
                values = [getattr(one, name) for one in found]
                low, high = np.quantile(values, (0.1, 0.9))
                columns.append(f"{statistics.median(values):.1f} ({low:.1f}-{high:.1f})")
            share = statistics.median(one.first_sound for one in found) / base
            print(
                f"{text:10}{way:16}{found[0].audio:8.1f}{columns[0]:>22}{columns[1]:>22}{columns[2]:>24}{share:>10.2f}"
            )
    print("first sound as a share of the time that the whole takes is in the last column")


def save(path: Path, takes: dict[str, dict[str, list[Take]]], more: Mapping[str, object]) -> None:
    """Write the raw figures with what they were measured on."""
    raw = {
        text: {
            way: {name: [round(asdict(one)[name], 3) for one in found] for name in asdict(found[0])}
            for way, found in by_way.items()
        }
        for text, by_way in takes.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {"environment": environment(), "texts": TEXTS, "unit": "ms", "takes": raw, **more}
    path.write_text(json.dumps(result, indent=1) + "\n")
