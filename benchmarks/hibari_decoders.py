"""The ways of streaming hibari's decoder, compared in one run.

    python -m benchmarks.hibari_decoders [--json benchmarks/results/hibari_decoders.json]

For each way: the time until the first 15 frames can be heard, the time of a whole sentence streamed, that of the same
sentence decoded in one go, and the largest difference between the two in samples. One thread, medians.

    dynamic int8, windowed      the released products (one scale per call), 27 frames of context on both sides
    float, windowed             the same with float products
    float, carried              convolution states carried between calls
    fixed int8, carried         fixed scales as well: what the engine uses
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.utils import Extractor

from benchmarks.environment import environment
from legato.models.hibari import calibration, graphs, weights
from legato.models.hibari.graphs import Precision
from legato.models.hibari.phonemes import Phonemizer
from legato.models.hibari.vocoder import Vocoder
from legato.models.onnx_graph import Streamed
from legato.models.session import Session

Rows = NDArray[np.float32]
Stream = Callable[[Rows, bool], Iterator[Rows]]
SENTENCE = (
    "The committee agreed that the new library should open early on weekdays so that students can read quietly "
    "before their first lessons begin each morning."
)
REACH = 27
FIRST = 41  # frames of the first block: the silence at the start, 15 to hear, and the overlap of the STFT
WINDOW = 144


def windows(frames: int) -> Iterator[tuple[int, int]]:
    """The frames [start, stop) of each block."""
    start, stop = 0, min(FIRST, frames)
    while start < frames:
        yield start, stop
        start, stop = stop, min(stop + WINDOW, frames)


def windowed(decode: Callable[[Rows], Rows]) -> Stream:
    """Decode each block with its context, and throw the context away."""

    def stream(x: Rows, whole: bool) -> Iterator[Rows]:
        for start, stop in [(0, len(x))] if whole else windows(len(x)):
            low, high = max(0, start - REACH), min(len(x), stop + REACH)
            yield decode(x[low:high])[start - low : stop - low]

    return stream


def carried(decoder: Streamed) -> Stream:
    """Decode each frame once, with the states of the frames before."""

    def stream(x: Rows, whole: bool) -> Iterator[Rows]:
        states, fed = decoder.initial(), 0
        for _, stop in [(0, len(x))] if whole else windows(len(x)):
            end = min(len(x), stop + REACH)
            if fed == len(x):
                return
            (spectra,), states = decoder.step(x[fed:end], states, final=end == len(x))
            fed = end
            yield spectra

    return stream


def released() -> Callable[[Rows], Rows]:
    """The decoder cut out of the released file as it is."""
    model = onnx.load(str(weights.package_file()))
    cut = Extractor(model).extract_model(["/Concat_43_output_0"], ["lh", "theta", "ln", "lr", "phi"])
    session = Session(cut.SerializeToString())
    return lambda x: np.concatenate(
        [part[0].T for part in session.run(None, {"/Concat_43_output_0": x.T[None]})], axis=1
    )


def median_ms(work: Callable[[], object], repeats: int) -> float:
    """Median of `repeats` timed calls, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def samples(blocks: list[Rows], f0: Rows) -> Rows:
    """The sound of decoded blocks."""
    return Vocoder((0,)).push(np.concatenate(blocks), f0, final=True)


def measure(name: str, stream: Stream, x: Rows, f0: Rows, truth: Rows, repeats: int) -> dict[str, object]:
    """The figures of one way."""
    whole = list(stream(x, True))
    noise = np.concatenate(whole) - truth
    return {
        "way": name,
        "first_ms": median_ms(lambda: next(stream(x, False)), repeats),
        "streamed_ms": median_ms(lambda: list(stream(x, False)), repeats),
        "whole_ms": median_ms(lambda: list(stream(x, True)), repeats),
        "max_abs_difference": float(np.abs(samples(list(stream(x, False)), f0) - samples(whole, f0)).max()),
        "snr_to_float_db": float(10 * np.log10(np.mean(truth**2) / np.mean(noise**2))) if noise.any() else None,
    }


def main() -> None:
    """Measure every way and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    tensors = weights.load(weights.package_file())
    text = Session(graphs.text_graph(tensors).build())
    prosody = Streamed(graphs.prosody_graph(tensors, Precision.INT8, calibration.PROSODY), ["f0", "features"])
    exact = Streamed(graphs.decoder_graph(tensors, Precision.FLOAT, []), ["spectra"])
    fixed = Streamed(graphs.decoder_graph(tensors, Precision.INT8, calibration.DECODER), ["spectra"])
    ids = Phonemizer().pieces(SENTENCE)[0]
    content, rows, frames = text.run(["content", "prosody", "frames"], {"ids": ids})
    index = np.repeat(np.arange(len(ids)), np.maximum(np.round(frames), 1).astype(np.int64))
    (f0, features), _ = prosody.step(rows[index], prosody.initial(), final=True)
    x = np.concatenate([np.repeat(content[index], 2, axis=0), features], axis=1)
    ways = {
        "dynamic int8, windowed": windowed(released()),
        "float, windowed": windowed(lambda x: exact.step(x, exact.initial(), final=True)[0][0]),
        "float, carried": carried(exact),
        "fixed int8, carried": carried(fixed),
    }
    truth = np.concatenate(list(ways["float, carried"](x, True)))
    table = [measure(name, stream, x, f0, truth, options.repeats) for name, stream in ways.items()]
    print(f"decoder alone, {len(x)} frames ({len(x) / 80:.1f} s of speech), one thread, median of {options.repeats}")
    print(f"{'way':24} {'first ms':>9} {'streamed ms':>12} {'whole ms':>9} {'ratio':>6} {'max diff':>9} {'dB':>6}")
    for row in table:
        ratio = row["streamed_ms"] / row["whole_ms"]
        noise_db = "" if row["snr_to_float_db"] is None else f"{row['snr_to_float_db']:.1f}"
        print(
            f"{row['way']:24} {row['first_ms']:9.2f} {row['streamed_ms']:12.2f} {row['whole_ms']:9.2f} {ratio:6.2f} "
            f"{row['max_abs_difference']:9.1e} {noise_db:>6}"
        )
    if options.json:
        result = {"environment": environment(), "sentence": SENTENCE, "repeats": options.repeats, "ways": table}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
