"""Finds the ranges of the inputs of hibari's int8 products, and says how well they serve.

    python -m benchmarks.calibrate_hibari > ranges.txt

Speaks several hundred sentences (the docstrings of the standard library, so that anyone can repeat it) with the float
graphs, and prints for each product the lowest and highest input that is worth representing. Paste the result into
src/legato/models/hibari/calibration.py. The signal-to-noise ratios it prints compare the decoder's log spectra with the
float graph's on sentences that were not used for calibration.
"""

import argparse
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from legato.models.hibari import graphs, weights
from legato.models.hibari.graphs import Precision
from legato.models.hibari.phonemes import Phonemizer
from legato.models.onnx_graph import Streamed
from legato.models.session import Session

Array = NDArray[np.float32]
MODULES = (
    "json",
    "argparse",
    "logging",
    "email",
    "asyncio",
    "unittest",
    "collections",
    "decimal",
    "datetime",
    "zipfile",
)


def sentences(limit: int) -> list[str]:
    """Plain English sentences of 4 to 30 words from the standard library's docstrings."""
    found: dict[str, None] = {}
    for module in _modules():
        for text in _docstrings(module):
            for sentence in re.split(r"(?<=[.!?])\s+", " ".join(text.split())):
                plain = re.fullmatch(r"[A-Z][A-Za-z0-9 ,;:'\-]+[.!?]", sentence)
                if plain and 4 <= len(sentence.split()) <= 30:
                    found[sentence] = None
    picked = list(found)
    return picked[:: max(1, len(picked) // limit)][:limit]


def _docstrings(module: object) -> Iterator[str]:
    for value in vars(module).values():
        for thing in (value, *vars(value).values()) if isinstance(value, type) else (value,):
            text = getattr(thing, "__doc__", None)
            if isinstance(text, str):
                yield text


def _modules() -> Iterator[object]:
    for name in MODULES:
        package = importlib.import_module(name)
        yield package
        for info in pkgutil.iter_modules(getattr(package, "__path__", [])):
            if not info.name.startswith("_"):
                with suppress(ImportError):  # modules of other operating systems
                    yield importlib.import_module(f"{name}.{info.name}")


class Probe:
    """The voice with every product's input visible."""

    def __init__(self) -> None:
        tensors = weights.load(weights.package_file())
        self.tensors = tensors
        self.text = Session(graphs.text_graph(tensors).build())
        prosody = graphs.prosody_graph(tensors, Precision.FLOAT, [], observe=True)
        decoder = graphs.decoder_graph(tensors, Precision.FLOAT, [], observe=True)
        self.prosody = Streamed(prosody, ["f0", "features", *(f"seen{i}" for i in range(12))])
        self.decoder = Streamed(decoder, ["spectra", *(f"seen{i}" for i in range(17))])
        self.phonemizer = Phonemizer()

    def inputs(self, sentence: str, speed: float) -> tuple[Array, Array, Array]:
        """Prosody rows, content rows per 12.5 ms frame."""
        ids = self.phonemizer.pieces(sentence)[0]
        content, prosody, frames = self.text.run(["content", "prosody", "frames"], {"ids": ids})
        index = np.repeat(np.arange(len(ids)), np.maximum(np.round(frames / speed), 1).astype(np.int64))
        return prosody[index], np.repeat(content[index], 2, axis=0), frames


def main() -> None:
    """Calibrate and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=240)
    parser.add_argument("--share", type=float, default=0.99999, help="share of values that the range must hold")
    options = parser.parse_args()
    probe = Probe()
    corpus = sentences(options.sentences)
    test, train = corpus[::6], [s for i, s in enumerate(corpus) if i % 6]
    seen: dict[str, list[list[tuple[float, float]]]] = {
        "PROSODY": [[] for _ in range(12)],
        "DECODER": [[] for _ in range(17)],
    }
    for number, sentence in enumerate(train):
        prosody_rows, content, _ = probe.inputs(sentence, (1.0, 1.0, 0.8, 1.3)[number % 4])
        values, _ = probe.prosody.step(prosody_rows, probe.prosody.initial(), final=True)
        _note(seen["PROSODY"], values[2:], options.share)
        decoder_rows = np.concatenate([content, values[1]], axis=1)
        values, _ = probe.decoder.step(decoder_rows, probe.decoder.initial(), final=True)
        _note(seen["DECODER"], values[1:], options.share)
    ranges = {
        part: tuple((min(low for low, _ in pairs), max(high for _, high in pairs)) for pairs in lists)
        for part, lists in seen.items()
    }
    for part, pairs in ranges.items():
        print(f"{part} = (")
        for low, high in pairs:
            print(f"    ({low:.2f}, {high:.2f}),")
        print(")")
    _judge(probe, test, ranges)


def _note(lists: list[list[tuple[float, float]]], values: list[Array], share: float) -> None:
    for pairs, value in zip(lists, values, strict=True):
        if share >= 1:
            pairs.append((float(value.min()), float(value.max())))
        else:
            pairs.append((float(np.quantile(value, 1 - share)), float(np.quantile(value, share))))


def _judge(probe: Probe, test: list[str], ranges: dict[str, tuple[tuple[float, float], ...]]) -> None:
    prosody = Streamed(graphs.prosody_graph(probe.tensors, Precision.INT8, ranges["PROSODY"]), ["f0", "features"])
    decoder = Streamed(graphs.decoder_graph(probe.tensors, Precision.INT8, ranges["DECODER"]), ["spectra"])
    ratios: list[tuple[float, float]] = []
    for sentence in test:
        rows, content, _ = probe.inputs(sentence, 1.0)
        exact, _ = probe.prosody.step(rows, probe.prosody.initial(), final=True)
        fixed, _ = prosody.step(rows, prosody.initial(), final=True)
        x = np.concatenate([content, exact[1]], axis=1)
        spectra, _ = probe.decoder.step(x, probe.decoder.initial(), final=True)
        rounded, _ = decoder.step(x, decoder.initial(), final=True)
        ratios.append((_snr(exact[0], fixed[0]), _snr(spectra[0], rounded[0])))
    pitch, spectrum = np.median(ratios, axis=0)
    print(
        f"held-out sentences: {len(test)}; SNR against float: pitch {pitch:.1f} dB, spectra {spectrum:.1f} dB",
        file=sys.stderr,
    )


def _snr(exact: Array, other: Array) -> float:
    return float(10 * np.log10(np.mean(exact**2) / np.mean((exact - other) ** 2)))


if __name__ == "__main__":
    main()
