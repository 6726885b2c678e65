"""The loaded network, and one utterance going through it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from legato.core.events import NO_AUDIO, Pcm
from legato.models.hibari import calibration, graphs, weights
from legato.models.hibari.graphs import Precision
from legato.models.hibari.vocoder import HOP, LAG, Vocoder
from legato.models.onnx_graph import Streamed
from legato.models.session import Session

Ids = NDArray[np.int64]
Rows = NDArray[np.float32]

_LEAST_ROWS = 2  # onnxruntime convolves a single row with another kernel, which rounds differently


class HibariModel:
    """Three graphs; no state of any utterance.

    Args:
        path: of the voice file; None for the one in the installed package.
        precision: of the streamed products.

    Raises:
        VoiceFileError: the voice file is missing, damaged or not the reviewed one.
    """

    def __init__(self, path: Path | None = None, precision: Precision = Precision.INT8) -> None:
        tensors = weights.load(path or weights.package_file())
        self.text = Session(graphs.text_graph(tensors).build())
        self.prosody = Streamed(graphs.prosody_graph(tensors, precision, calibration.PROSODY), ["f0", "features"])
        self.decoder = Streamed(graphs.decoder_graph(tensors, precision, calibration.DECODER), ["spectra"])


class Utterance:
    """A phoneme sequence on its way to samples: the carried states of every stage.

    Args:
        model: shared, and not changed.
        ids: phonemes [n] with the pads at both ends.
        speed: 2.0 speaks twice as fast. Not more: a phoneme takes a row of 25 ms at least.
        key: seeds the noise.
    """

    def __init__(self, model: HibariModel, ids: Ids, *, speed: float, key: tuple[int, ...]) -> None:
        self._model = model
        self._ids = ids
        self._speed = speed
        self._prosody_state = model.prosody.initial()
        self._decoder_state = model.decoder.initial()
        self._vocoder = Vocoder(key)
        # 12.5 ms frames that have prosody and are not decoded yet: phoneme, pitch in Hz, (log pitch, energy).
        self._phoneme = np.zeros(0, np.int64)
        self._f0 = NO_AUDIO
        self._features = np.zeros((0, 2), np.float32)

    def steps(self, first: int, window: int) -> Iterator[Pcm]:
        """Yield the samples, untrimmed; the first step is the text part and yields none.

        How many frames a step makes changes nothing about the samples.

        Args:
            first: 12.5 ms frames in the first block beyond the opening pad. Sound begins some 4 frames before the pad
                ends, so a little more than that can be heard at once.
            window: 12.5 ms frames of every later block.
        """
        content, prosody, frames = self._model.text.run(["content", "prosody", "frames"], {"ids": self._ids})
        durations = np.maximum(np.round(frames / np.float32(self._speed)), 1).astype(np.int64)
        phoneme = np.repeat(np.arange(len(self._ids)), durations)  # of each 25 ms row
        rows = prosody[phoneme]
        yield NO_AUDIO
        wanted = 2 * int(durations[0]) + first + self._model.decoder.reach + LAG // HOP
        fed = 0
        while True:
            if len(self._f0) < wanted:
                fed = self._predict(rows, phoneme, fed, wanted)
            final = fed == len(rows) and len(self._f0) <= wanted
            yield self._decode(content, wanted, final=final)
            if final:
                return
            wanted = max(window, _LEAST_ROWS)

    def _predict(self, rows: Rows, phoneme: NDArray[np.int64], fed: int, wanted: int) -> int:
        """Feed 25 ms rows [fed, …) until `wanted` frames have their prosody; return how many rows are fed now."""
        if fed == len(rows):
            return fed
        # Two frames come out for each row in, but as many rows late as the network looks ahead.
        need = -(-(wanted - len(self._f0)) // 2) + (0 if fed else self._model.prosody.reach)
        stop = min(len(rows), fed + max(need, _LEAST_ROWS))
        values, self._prosody_state = self._model.prosody.step(
            rows[fed:stop], self._prosody_state, final=stop == len(rows)
        )
        f0, features = values
        start = 2 * (fed - self._model.prosody.reach) if fed else 0
        frames = np.arange(start, start + len(f0)) >> 1
        self._phoneme = np.concatenate([self._phoneme, phoneme[frames]])
        self._f0 = np.concatenate([self._f0, f0])
        self._features = np.concatenate([self._features, features])
        return stop

    def _decode(self, content: Rows, count: int, *, final: bool) -> Pcm:
        """Turn the next `count` frames into samples."""
        f0 = self._f0[:count]
        x = np.concatenate([content[self._phoneme[:count]], self._features[:count]], axis=1)
        self._phoneme, self._f0, self._features = self._phoneme[count:], self._f0[count:], self._features[count:]
        (spectra,), self._decoder_state = self._model.decoder.step(x, self._decoder_state, final=final)
        return self._vocoder.push(spectra, f0, final=final)
