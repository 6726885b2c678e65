"""The embedded English voice: `hibari-tts`, streamed inside the sentence."""

from collections.abc import Iterator
from dataclasses import dataclass

from legato.core.engine import EngineInfo, VoiceInfo, VoiceSettings
from legato.core.events import Pcm, Segment
from legato.errors import UnknownVoice
from legato.models.hibari.model import HibariModel, Utterance
from legato.models.hibari.phonemes import Phonemizer
from legato.models.hibari.vocoder import SAMPLE_RATE
from legato.models.trim import Trim

_FASTEST = 2.0
"""At 2.5 a speech recogniser misses half of the words; docs/design/hibari.md has the figures."""

_HEART = VoiceInfo(
    name="heart",
    language="en-US",
    description="American English, female",
    licence="Apache-2.0 (hibari-tts 0.2.1)",
)


@dataclass(frozen=True, slots=True)
class HibariConfig(Trim):
    """How the voice streams, and how its silence is trimmed.

    Attributes:
        first_frames: 12.5 ms frames in the first block, after the voice's own leading silence.
        window_frames: 12.5 ms frames in each later block.
    """

    first_frames: int = 12
    window_frames: int = 144

    def __post_init__(self) -> None:
        Trim.__post_init__(self)
        if self.first_frames < 1 or self.window_frames < 1:
            raise ValueError("first_frames and window_frames must be 1 or more")


class Hibari:
    """Engine of the embedded voice; the state of a stream is the generator of `speak`.

    Raises:
        VoiceFileError: the voice file is missing, damaged or not the reviewed one.
    """

    Config = HibariConfig

    def __init__(self, config: HibariConfig | None = None) -> None:
        self._phonemizer = Phonemizer()
        self._model = HibariModel()
        self._config = config or HibariConfig()
        self._info = EngineInfo(
            name="hibari", sample_rate=SAMPLE_RATE, voices=(_HEART,), tolerance=1e-4, fastest=_FASTEST
        )

    @property
    def info(self) -> EngineInfo:
        """One voice, 24 kHz; blocks abut."""
        return self._info

    def speak(self, segment: Segment, voice: VoiceSettings) -> Iterator[Pcm]:
        """Yield the segment's audio; see `legato.core.engine.Engine`."""
        if voice.name != _HEART.name:
            raise UnknownVoice(f"hibari has no voice {voice.name!r}; it has: {_HEART.name}.", param="voice")
        for number, ids in enumerate(self._phonemizer.pieces(segment.text)):
            trimmer = self._config.trimmer(SAMPLE_RATE)
            key = (voice.seed, segment.index, number)
            utterance = Utterance(self._model, ids, speed=voice.speed, key=key)
            for block in utterance.steps(self._config.first_frames, self._config.window_frames):
                yield trimmer.push(block)

    def close(self) -> None:
        """Nothing to give back: there are no threads, and memory goes with the object."""
