"""Turns the decoder's spectra into samples, frame by frame: pulses, noise, inverse STFT.

Each 12.5 ms frame of the network describes one spectrum S of 601 bins in five parts (hibari's `dsp.py`):

    S = exp(lh) e^{i pi tanh(theta)} STFT(pulses(f0)) + exp(ln) Z + exp(lr) e^{i phi}

with lh, theta, ln, lr, phi from the decoder and Z complex normal noise. The inverse STFT (1200 points, hop 300, Hann)
overlaps four frames, so a hop of samples is complete two frames after its own: a lag of 600 samples.

Everything here works on rows that are frames, keeps what the next call needs, and adds the overlapping frames in
the order of time; so samples do not depend on how many frames came with each call, to the last bit.
"""

import numpy as np
from numpy.typing import NDArray

from legato.core.events import NO_AUDIO, Pcm
from legato.models.hibari.graphs import BINS
from legato.models.noise import PolarNoise

Rows = NDArray[np.float32]

SAMPLE_RATE = 24_000
HOP = 300  # samples a frame: 12.5 ms
N_FFT = 1200
OVERLAP = N_FFT // HOP
LAG = N_FFT // 2  # samples by which the output is late, and that the centred STFT pads in front

_WINDOW: Rows = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT)).astype(np.float32)
_SOURCE_WINDOW: Rows = _WINDOW / np.float32(N_FFT / 4)  # a unit cosine peaks at sum(window)/2 in the STFT
_POWER: Rows = (_WINDOW * _WINDOW).reshape(OVERLAP, HOP)
_INSIDE: Rows = 1 / _POWER.sum(axis=0)
_LOUDEST = np.float32(7.0)  # log magnitudes are cut here, as in training
_PI = np.float32(np.pi)

_VOICED_HZ = np.float32(40.0)
_HIGHEST_HZ = np.float32(11_000.0)
_NEXT: Rows = (((np.arange(HOP) + 0.5) / HOP - 0.5) % 1.0).astype(np.float32)
_PREVIOUS: Rows = (1 - _NEXT).astype(np.float32)
_TINY = np.float32(2e-3)


class Pulses:
    """Band-limited pulse train from a pitch curve: every harmonic below 11 kHz at unit amplitude.

    sum_{h=1..H} cos(h t) = sin((H + 1/2) t) / (2 sin(t/2)) - 1/2, with the phase t carried in float64. Pitch is linear
    between frame centres; unvoiced frames are silent. Late by half a frame, for which the next pitch is needed.
    """

    def __init__(self) -> None:
        self._f0 = np.zeros(0, np.float32)  # the last frame done, and those not done yet
        self._started = False
        self._cycles = 0.0  # sum of pitch over all samples so far, in Hz samples

    def push(self, f0: Rows, *, final: bool) -> Pcm:
        """Add pitch frames [n] in Hz; return the samples of the frames that are now certain."""
        if not self._started and len(f0):
            f0 = np.concatenate([f0[:1], f0])
            self._started = True
        f0 = np.concatenate([self._f0, f0])
        if final:
            f0 = np.concatenate([f0, f0[-1:]])
        if len(f0) < 3:
            self._f0 = f0
            return NO_AUDIO
        self._f0 = f0[-2:]
        return self._wave(_interpolate(f0))

    def _wave(self, hertz: Rows) -> Pcm:
        voiced = hertz > _VOICED_HZ
        np.maximum(hertz, _VOICED_HZ, out=hertz)
        phase = hertz.astype(np.float64)
        phase[0] += self._cycles
        np.cumsum(phase, out=phase)
        self._cycles = float(phase[-1])
        phase *= 1.0 / SAMPLE_RATE
        phase -= np.floor(phase)
        phase *= 2 * np.pi
        angle = phase.astype(np.float32)
        order = np.floor(_HIGHEST_HZ / hertz)
        order += np.float32(0.5)
        divisor = np.sin(angle * np.float32(0.5))
        divisor *= np.float32(2)
        wave: Pcm = np.sin(order * angle)
        at_peak = np.abs(divisor) <= _TINY  # the limit of the quotient is the order itself
        divisor[at_peak] = 1
        wave /= divisor
        wave[at_peak] = order[at_peak]
        wave -= np.float32(0.5)
        wave[~voiced] = 0
        return wave


def _interpolate(f0: Rows) -> Rows:
    """Pitch per sample of all frames but the first and last; sample j is (j + 1/2)/hop - 1/2 frames off the centre."""
    half = HOP // 2
    hertz = np.empty((len(f0) - 2, HOP), np.float32)
    np.multiply(f0[:-2, None], _PREVIOUS[:half], out=hertz[:, :half])
    hertz[:, :half] += f0[1:-1, None] * _NEXT[:half]
    np.multiply(f0[1:-1, None], _PREVIOUS[half:], out=hertz[:, half:])
    hertz[:, half:] += f0[2:, None] * _NEXT[half:]
    return hertz.reshape(-1)


class Vocoder:
    """The signal processing of one utterance.

    Args:
        key: seeds the noise; equal keys give equal samples.
    """

    def __init__(self, key: tuple[int, ...]) -> None:
        self._pulses = Pulses()
        self._noise = PolarNoise(key, BINS)
        self._source = NO_AUDIO  # pulses from 600 samples before the next frame's centre on
        self._padded = False
        self._frames = 0  # done
        self._overlap = np.zeros((OVERLAP - 1, HOP), np.float32)

    def push(self, spectra: Rows, f0: Rows, *, final: bool) -> Pcm:
        """Add frames; return the samples that are now complete.

        Args:
            spectra: [n, 5 * 601], frames that follow those of the call before.
            f0: [m], pitch frames; in sum at least three more than spectra so far, until the end.
            final: whether these are the last of both.
        """
        self._extend(self._pulses.push(f0, final=final))
        if final:
            self._source = np.concatenate([self._source, self._source[-2 : -2 - HOP : -1]])
        n = len(spectra)
        frames = self._synthesise(spectra) if n else np.zeros((0, OVERLAP, HOP), np.float32)
        hops = np.zeros((n + OVERLAP - 1, HOP), np.float32)
        hops[: OVERLAP - 1] = self._overlap
        for part in reversed(range(OVERLAP)):  # oldest frame first: the same sum however the frames came
            hops[part : part + n] += frames[:, part]
        self._overlap = hops[n:].copy()
        first = self._frames
        self._frames += n
        skip = LAG // HOP
        complete = self._frames + skip if final else self._frames
        return self._normalise(hops, first, max(first, skip), complete, final=final)

    def _extend(self, pulses: Pcm) -> None:
        if not self._padded and len(self._source) + len(pulses) > LAG:
            joined = np.concatenate([self._source, pulses])
            self._source = np.concatenate([joined[LAG:0:-1], joined])  # mirrored, as a centred STFT pads
            self._padded = True
        else:
            self._source = np.concatenate([self._source, pulses])

    def _synthesise(self, spectra: Rows) -> Rows:
        """Windowed frames of samples [n, 4, 300]."""
        n = len(spectra)
        windows = np.lib.stride_tricks.sliding_window_view(self._source, N_FFT)[: n * HOP : HOP]
        spectrum = np.fft.rfft(windows * _SOURCE_WINDOW, axis=1)
        self._source = self._source[n * HOP :]
        harmonic, twist, noise, free, angle = (spectra[:, i * BINS : (i + 1) * BINS] for i in range(5))
        part = np.empty((n, BINS), np.complex64)
        phase = np.tanh(twist)
        phase *= _PI
        spectrum *= _polar(_magnitude(harmonic), phase, part)
        magnitude, phase = self._noise.take(n)
        magnitude *= _magnitude(noise)
        spectrum += _polar(magnitude, phase, part)
        spectrum += _polar(_magnitude(free), angle, part)
        frames = np.fft.irfft(spectrum, N_FFT, axis=1).astype(np.float32, copy=False)  # it is float32 already
        frames *= _WINDOW
        return frames.reshape(n, OVERLAP, HOP)

    def _normalise(self, hops: Rows, origin: int, start: int, stop: int, *, final: bool) -> Pcm:
        """Divide hops [start, stop) by the summed squared windows that overlap there; `hops[0]` is hop `origin`."""
        if stop <= start:
            return NO_AUDIO
        out = hops[start - origin : stop - origin]
        total = self._frames
        for hop in range(start, stop):
            row = out[hop - start]
            if hop >= OVERLAP - 1 and not (final and hop >= total):
                row *= _INSIDE
            else:
                row /= sum(_POWER[k] for k in range(OVERLAP) if 0 <= hop - k < total)
        return out.reshape(-1)


def _magnitude(log: Rows) -> Rows:
    clipped = np.minimum(log, _LOUDEST)
    magnitude: Rows = np.exp(clipped, out=clipped)
    return magnitude


def _polar(magnitude: Rows, phase: Rows, out: NDArray[np.complex64]) -> NDArray[np.complex64]:
    np.multiply(np.cos(phase), magnitude, out=out.real)
    np.multiply(np.sin(phase), magnitude, out=out.imag)
    return out
