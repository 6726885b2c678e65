"""An utterance sounds the same however it is cut into steps, and its seed and its speed do what they say."""

import itertools
import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.models.piper import config
from legato.models.piper.config import VoiceConfig
from legato.models.piper.cut import cut
from legato.models.piper.network import Network
from legato.models.piper.phonemes import encode
from legato.models.piper.store import VoiceStore
from legato.models.piper.utterance import Utterance
from tests.models.piper.test_tiny_vits import VOICES, phonemes
from tests.models.piper.tiny_vits import tiny_voice

WHOLE = 10**6
TOLERANCE = 1e-4
Voice = tuple[Network, VoiceConfig]

IPA = "ðə kwˈɪk bɹˈaʊn fˈɑːks dʒˈʌmps ˌoʊvɚ ðə lˈeɪzi dˈɑːɡ, twˈaɪs."
windows = st.tuples(st.integers(1, 150), st.integers(1, 150))
speeds = st.floats(0.25, 2.5, width=32)
seeds = st.integers(0, 2**63 - 1)


@cache
def tiny(name: str, names: str = "piper") -> Voice:
    model, values = tiny_voice(**VOICES[name] | {"names": names})
    return Network(cut(model)), config.parse(json.dumps(values).encode())


@pytest.fixture(scope="module")
def joe(voices: VoiceStore) -> Voice:
    model, voice = voices.load("joe")
    return Network(cut(model)), voice.config


def utterance(voice: Voice, ids: np.ndarray, **options: Any) -> Utterance:
    network, facts = voice
    return Utterance(network, facts, ids, **{"speaker": 0, "speed": 1.0, "key": (0, 0, 0)} | options)


def samples(voice: Voice, ids: np.ndarray, first: int = WHOLE, window: int = WHOLE, **options: Any) -> np.ndarray:
    return np.concatenate(list(utterance(voice, ids, **options).steps(first, window)))


def assert_equal(streamed: np.ndarray, whole: np.ndarray) -> None:
    assert len(streamed) == len(whole)
    np.testing.assert_allclose(streamed, whole, atol=TOLERANCE, rtol=0)


@given(
    name=st.sampled_from(sorted(VOICES)),
    names=st.sampled_from(["piper", "other"]),
    count=st.integers(1, 80),
    window=windows,
    speed=speeds,
    speaker=st.integers(0, 1),
    seed=seeds,
)
@settings(deadline=None, max_examples=150)
def test_streamed_equals_whole(
    name: str, names: str, count: int, window: tuple[int, int], speed: float, speaker: int, seed: int
) -> None:
    voice, ids = tiny(name, names), phonemes(count)
    options = {"speed": speed, "speaker": speaker, "key": (seed, 0, 0)}
    whole = samples(voice, ids, **options)
    assert np.isfinite(whole).all()
    assert_equal(samples(voice, ids, *window, **options), whole)


@given(cut=st.integers(10, len(IPA)), window=windows, speed=speeds, seed=seeds)
@settings(deadline=None, max_examples=8)
def test_a_real_voice_streamed_equals_whole(
    joe: Voice, cut: int, window: tuple[int, int], speed: float, seed: int
) -> None:
    ids = encode(IPA[:cut], joe[1].phoneme_id_map)
    options = {"speed": speed, "key": (seed, 0, 0)}
    whole = samples(joe, ids, **options)
    assert 0.01 < np.abs(whole).max() <= 1
    assert_equal(samples(joe, ids, *window, **options), whole)


@pytest.mark.parametrize("window", [(1, 4), (1, 128), (20, 128), (40, 16)])
def test_windows_of_a_real_voice(joe: Voice, window: tuple[int, int]) -> None:
    ids = encode(IPA, joe[1].phoneme_id_map)
    assert_equal(samples(joe, ids, *window), samples(joe, ids))


def test_steps_come_early_and_grow() -> None:
    voice, ids = tiny("default"), phonemes(300)
    network = voice[0]
    steps = [len(block) for block in utterance(voice, ids).steps(4, 32)]
    assert steps[:5] == [0, 0, 0, 0, 4 * 32]  # three of the front, one of the flow, then there is sound
    blocks = [size // 32 for size in steps if size]
    assert blocks[:4] == [4, 16, 32, 32]
    assert set(blocks[2:-1]) == {32}
    assert 0 < blocks[-1] <= 32
    # The flow runs ahead of the decoder, but not in every step.
    assert steps.count(0) - 4 <= len(blocks)
    assert network.decoder.reach.steps == 32


def test_one_window_is_four_empty_steps_and_the_sound() -> None:
    steps = [len(block) for block in utterance(tiny("default"), phonemes(50)).steps(WHOLE, WHOLE)]
    assert steps[:4] == [0, 0, 0, 0]
    assert len(steps) == 5
    assert steps[4] > 0


def test_a_block_is_one_row_of_float32(joe: Voice) -> None:
    for voice, ids in ((tiny("default"), phonemes(40)), (joe, encode(IPA[:20], joe[1].phoneme_id_map))):
        for block in utterance(voice, ids).steps(5, 20):
            assert block.ndim == 1
            assert block.dtype == np.float32


@pytest.mark.parametrize("name", ["default", "speakers", "foreign"])
def test_utterances_side_by_side_do_not_meet(name: str) -> None:
    voice = tiny(name)
    options: list[dict[str, Any]] = [{"key": (1, 0, 0)}, {"key": (2, 0, 0), "speed": 0.5, "speaker": 1}]
    ids = [phonemes(40), phonemes(25)]
    alone = [samples(voice, one, 3, 16, **more) for one, more in zip(ids, options, strict=True)]
    running = [utterance(voice, one, **more).steps(3, 16) for one, more in zip(ids, options, strict=True)]
    mixed: list[list[np.ndarray]] = [[], []]
    while any(running):
        for index, steps in enumerate(running):
            if steps is not None and (block := next(steps, None)) is not None:
                mixed[index].append(block)
            else:
                running[index] = None
    for blocks, expected in zip(mixed, alone, strict=True):
        np.testing.assert_array_equal(np.concatenate(blocks), expected)


def test_what_is_yielded_stays_as_it_is() -> None:
    voice, ids = tiny("default"), phonemes(60)
    kept, copies = [], []
    for block in utterance(voice, ids).steps(3, 16):
        kept.append(block)
        copies.append(block.copy())
    for block, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(block, copy)


@given(name=st.sampled_from(["default", "speakers", "foreign"]), one=seeds, other=seeds)
@settings(deadline=None, max_examples=20)
def test_the_seed_decides(name: str, one: int, other: int) -> None:
    voice, ids = tiny(name), phonemes(30)
    first, again = (samples(voice, ids, 5, 20, key=(one, 0, 0)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    if one != other:
        assert first.tobytes() != samples(voice, ids, 5, 20, key=(other, 0, 0)).tobytes()


@pytest.mark.parametrize("key", [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_every_part_of_the_key_counts(joe: Voice, key: tuple[int, ...]) -> None:
    """Seed, segment and piece: a word said twice is not the same recording played twice."""
    for voice, ids in ((tiny("default"), phonemes(30)), (joe, encode(IPA[:15], joe[1].phoneme_id_map))):
        assert samples(voice, ids, key=key).tobytes() != samples(voice, ids).tobytes()


def test_the_noise_of_a_frame_does_not_depend_on_what_follows() -> None:
    """Two utterances that begin alike, as far as durations do: their first frames are drawn the same noise."""
    voice = tiny("default")
    network = voice[0]
    drawn: list[list[np.ndarray]] = []
    for count in (30, 50):
        one = utterance(voice, phonemes(50)[:count])
        values = dict(one._feed)
        given: list[np.ndarray] = []

        def noise(shape: tuple[int, ...], one: Utterance = one, given: list[np.ndarray] = given) -> np.ndarray:
            given.append(one._noise(shape))
            return given[-1]

        assert len(list(network.front(values, noise))) == 3
        assert given[1].shape[-1] == network.frames(values)
        drawn.append(given)
    for short, long in zip(*drawn, strict=True):
        assert short.shape[-1] < long.shape[-1]
        np.testing.assert_array_equal(long[..., : short.shape[-1]], short)


@pytest.mark.parametrize("name", ["default", "speakers", "foreign"])
def test_speed_scales_the_length(name: str) -> None:
    lengths = [len(samples(tiny(name), phonemes(60), speed=speed)) for speed in (0.25, 0.5, 1.0, 2.0)]
    for slow, fast in itertools.pairwise(lengths):
        assert 1.5 < slow / fast < 2.1  # frames are whole, so that a phoneme shrinks by less than half
    assert lengths == sorted(lengths, reverse=True)


def test_speed_scales_the_length_of_a_real_voice(joe: Voice) -> None:
    ids = encode(IPA, joe[1].phoneme_id_map)
    lengths = {speed: len(samples(joe, ids, speed=speed)) for speed in (0.25, 0.5, 1.0, 2.0)}
    for speed, length in lengths.items():
        assert 0.75 < length * speed / lengths[1.0] < 1.33


def test_the_scales_of_the_voice_count() -> None:
    network, facts = tiny("default")
    ids = phonemes(40)
    slow = samples((network, replace(facts, length_scale=2.0)), ids)
    np.testing.assert_array_equal(slow, samples((network, facts), ids, speed=0.5))
    calm = samples((network, replace(facts, noise_scale=0.0, noise_w=0.0)), ids)
    np.testing.assert_array_equal(
        calm, samples((network, replace(facts, noise_scale=0.0, noise_w=0.0)), ids, key=(9, 9, 9))
    )


def test_speakers_differ() -> None:
    voice, ids = tiny("speakers"), phonemes(40)
    sounds = {samples(voice, ids, 5, 20, speaker=speaker).tobytes() for speaker in range(3)}
    assert len(sounds) == 3
    alone = tiny("default")  # one speaker: the number means nothing
    np.testing.assert_array_equal(samples(alone, ids, speaker=0), samples(alone, ids, speaker=2))
