"""The judge: DNSMOS P.835, an estimate of how people would rate speech, run directly from its ONNX file.

Reddy, Gopal, Cutler 2022, "DNSMOS P.835: A non-intrusive perceptual objective speech quality metric to evaluate noise
suppressors" (ICASSP). Ratings are of ITU-T P.835: SIG (the speech), BAK (the background), OVRL (the whole), 1 to 5.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from tests.quality.resample import resample

RATE = 16_000
WINDOW = round(9.01 * RATE)
HOP = RATE

# Raw network output to the rating scale, non-personalised model; highest power first.
_SIG = (-0.08397278, 1.22083953, 0.0052439)
_BAK = (-0.13166888, 1.60915514, -0.39604546)
_OVRL = (-0.06766283, 1.11546468, 0.04602535)


@dataclass(frozen=True)
class Mos:
    """Estimated mean opinion scores, 1 (bad) to 5 (excellent)."""

    sig: float
    bak: float
    ovrl: float


class Judge:
    """Rates speech. The same audio always gets the same rating."""

    def __init__(self) -> None:
        package = find_spec("speechmos")  # not imported: it would pull in librosa
        if package is None or package.origin is None:
            raise ImportError('the quality gate needs its extra: pip install "legato-speech[quality]"')
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        model = Path(package.origin).parent / "dnsmos_models" / "sig_bak_ovr.onnx"
        self._session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    def rate(self, audio: npt.NDArray[np.float32], rate: int) -> Mos:
        """The mean rating over windows of 9.01 s, one a second.

        The published script loses a window now and then to the rounding of a float; this one does not, so that for more
        than one window the two may differ in the third digit after the point.

        Args:
            audio: mono speech [n] in [-1, 1]; the level matters to the rating, so it is left as it is.
            rate: of `audio`, in Hz.

        Raises:
            ValueError: `audio` is empty or leaves [-1, 1].
        """
        if audio.size == 0 or not np.all(np.abs(audio) <= 1):
            raise ValueError("speech to rate must be one sample at least, all in [-1, 1]")
        heard = np.clip(resample(audio, rate, RATE), -1, 1)  # a resampled peak may pass 1 by a little
        while len(heard) < WINDOW:  # the published procedure: a short recording is repeated by doubling
            heard = np.concatenate([heard, heard])
        count = int(len(heard) // RATE - WINDOW / RATE) + 1
        windows = [heard[start : start + WINDOW] for start in range(0, count * HOP, HOP)]
        raw = np.array([self._session.run(None, {"input_1": window[None]})[0][0] for window in windows])
        sig, bak, ovrl = (np.polyval(fit, raw[:, i]).mean() for i, fit in enumerate((_SIG, _BAK, _OVRL)))
        return Mos(float(sig), float(bak), float(ovrl))
