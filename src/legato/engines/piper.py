"""Piper's VITS voices, streamed inside the sentence."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from legato.core.engine import EngineInfo, VoiceInfo, VoiceSettings
from legato.core.events import Pcm, Segment
from legato.errors import UnknownVoice, VoiceFileError
from legato.models.piper.cache import CutCache
from legato.models.piper.cache import default_folder as cache_folder
from legato.models.piper.config import VoiceConfig
from legato.models.piper.cut import Cut, cut
from legato.models.piper.espeak import EspeakPhonemizer
from legato.models.piper.network import Network
from legato.models.piper.phonemes import Phonemizer, encode, for_voice, pieces, speakable
from legato.models.piper.store import DamagedVoice, StoredVoice, VoiceStore, default_folder
from legato.models.piper.utterance import Utterance
from legato.models.trim import Trim

_ADD = "Add one: legato voices add PATH, or legato voices add --package NAME"
_SLOWEST, _FASTEST = 0.25, 2.0  # each phoneme and each pad keeps a frame: joe never gets faster than 1.7 times


@dataclass(frozen=True, slots=True)
class PiperConfig(Trim):
    """Which voices speak, how they stream, and how their silence is trimmed.

    Attributes:
        folder: where registered voices are; None for the user's own.
        voices: names of those to load; empty for all.
        phonemes: "auto" takes the built-in English phonemes where they serve and the program espeak-ng elsewhere;
            "builtin" and "espeak" insist.
        longest: phonemes spoken in one go; the cost of the front grows with their square.
        first_frames: latent frames (11.6 ms at 22.05 kHz) in the first block of a stream; blocks grow from there.
        window_frames: latent frames in a later block at most. A later segment begins with half of it, for its listener
            has something to play meanwhile.
    """

    folder: str | None = None
    voices: tuple[str, ...] = ()
    phonemes: Literal["auto", "builtin", "espeak"] = "auto"
    longest: int = 300
    first_frames: int = 18
    window_frames: int = 128

    def __post_init__(self) -> None:
        Trim.__post_init__(self)
        if min(self.first_frames, self.window_frames) < 1 or self.longest < 10:
            raise ValueError("first_frames and window_frames must be 1 or more, longest 10 or more")


@dataclass(frozen=True, slots=True)
class _Speaker:
    """What one voice name stands for."""

    network: Network
    config: VoiceConfig
    phonemizer: Phonemizer
    number: int


class Piper:
    """Engine of all registered Piper voices of one sample rate; the state of a stream is the generator of `speak`.

    A voice with several speakers has a name for each: NAME is the first, NAME/SPEAKER one of them.

    Raises:
        VoiceFileError: no voice is registered, one is damaged or not a VITS network, or their rates differ.
        MissingExtra: a voice's language needs espeak-ng, which is not installed.
    """

    Config = PiperConfig

    def __init__(self, config: PiperConfig | None = None) -> None:
        self._config = config = config or PiperConfig()
        store = VoiceStore(Path(config.folder) if config.folder else default_folder())
        self._speakers: dict[str, _Speaker] = {}
        infos: list[VoiceInfo] = []
        rates: dict[str, int] = {}
        self._phonemizers: dict[tuple[str, str], Phonemizer] = {}  # a dictionary of English is kept once
        for name in config.voices or tuple(voice.name for voice in store.list() if isinstance(voice, StoredVoice)):
            voice = store.open(name)
            if voice.name in rates:
                continue  # said twice, perhaps as piper:NAME
            rates[voice.name] = voice.config.sample_rate
            network, phonemizer = Network(_cut(store, voice)), self._phonemizer(voice.config)
            for spoken, number in _names(voice):
                self._speakers[spoken] = _Speaker(network, voice.config, phonemizer, number)
                infos.append(VoiceInfo(spoken, voice.config.language, _described(voice, spoken), voice.licence))
        if not infos:
            for entry in store.list():
                if isinstance(entry, DamagedVoice):
                    raise VoiceFileError(entry.reason)
            raise VoiceFileError(f"No Piper voice is registered in {store.folder}. {_ADD}")
        if len(set(rates.values())) > 1:
            listed = ", ".join(f"{name} ({rate} Hz)" for name, rate in rates.items())
            raise VoiceFileError(
                f"One engine speaks at one sample rate, and these differ: {listed}. "
                "Say which to load: voices = [...] in [engine.settings]"
            )
        self._info = EngineInfo(
            name="piper",
            sample_rate=next(iter(rates.values())),
            voices=tuple(infos),
            tolerance=1e-4,
            slowest=_SLOWEST,
            fastest=_FASTEST,
        )

    @property
    def info(self) -> EngineInfo:
        """Every registered voice; blocks abut."""
        return self._info

    def speak(self, segment: Segment, voice: VoiceSettings) -> Iterator[Pcm]:
        """Yield the segment's audio; see `legato.core.engine.Engine`."""
        speaker = self._speakers.get(voice.name)
        if speaker is None:
            raise UnknownVoice(f"There is no Piper voice {voice.name[:64]!a}. {_ADD}", param="voice")
        config, window = speaker.config, self._config.window_frames
        first = self._config.first_frames if segment.index == 0 else max(self._config.first_frames, window // 2)
        for number, piece in enumerate(pieces(speaker.phonemizer.phonemes(segment.text), self._config.longest)):
            if not speakable(piece):
                continue
            ids = encode("".join("".join(config.phoneme_map.get(one, (one,))) for one in piece), config.phoneme_id_map)
            trimmer = self._config.trimmer(self._info.sample_rate)
            utterance = Utterance(
                speaker.network,
                config,
                ids,
                speaker=speaker.number,
                speed=voice.speed,
                key=(voice.seed, segment.index, number),
            )
            for block in utterance.steps(first, window):
                yield trimmer.push(block)

    def close(self) -> None:
        """End the processes that make phonemes."""
        for phonemizer in self._phonemizers.values():
            if isinstance(phonemizer, EspeakPhonemizer):
                phonemizer.close()

    def _phonemizer(self, facts: VoiceConfig) -> Phonemizer:
        key = (facts.language, facts.espeak_voice)
        if key not in self._phonemizers:
            self._phonemizers[key] = for_voice(*key, facts.phoneme_id_map, self._config.phonemes)
        return self._phonemizers[key]


def _cut(store: VoiceStore, voice: StoredVoice) -> Cut:
    """The voice's network in parts: from the cache, else anew and into it. Its hash was checked just now."""
    cache = CutCache(cache_folder())
    found = cache.read(voice.model_sha256)
    if found is None:
        model, _ = store.load(voice.name)
        found = cut(model)
        cache.write(voice.model_sha256, found)
    return found


def _names(voice: StoredVoice) -> Iterator[tuple[str, int]]:
    yield voice.name, 0
    if voice.config.num_speakers > 1:
        known = voice.config.speaker_id_map or {str(n): n for n in range(voice.config.num_speakers)}
        for speaker, number in known.items():
            yield f"{voice.name}/{speaker}", number


def _described(voice: StoredVoice, name: str) -> str:
    facts = voice.config
    speaker = name.partition("/")[2]
    return ", ".join(part for part in (facts.dataset, facts.quality, f"speaker {speaker}" if speaker else "") if part)
