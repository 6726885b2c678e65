"""What every engine must keep, in code; `legato.core.engine` says it in words.

`tests/engines/test_contract.py` runs it for each installed engine. Somebody who writes an engine elsewhere may call
`check(engine, whole)` from a test of their own. Each `check_*` is one clause and may be called alone.
"""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from legato.core.engine import BatchEngine, VoiceSettings
from legato.core.events import Pcm, Segment
from legato.errors import UnknownVoice

A = "The quick brown fox jumps over the lazy dog, twice."
B = "Something else entirely, to see."
WORDS = ("No", "Hello.", "I", "a", "Stop!", "Zyxolutrix")
DIGITS = ("It is 42", "Room 101.", "7")
SILENT = ("", " ", "...", "?!", "—", "🙂", "\n", "( )")


def settings(engine: BatchEngine, *, speed: float = 1.0, seed: int = 0) -> VoiceSettings:
    return VoiceSettings(engine.info.voices[0].name, speed, seed)


def blocks_of(engine: BatchEngine, text: str, **options: Any) -> list[Pcm]:
    return together(engine, text, **options)[0]


def samples_of(engine: BatchEngine, text: str, **options: Any) -> Pcm:
    return np.concatenate([np.zeros(0, np.float32), *blocks_of(engine, text, **options)])


def together(engine: BatchEngine, *texts: str, **options: Any) -> list[list[Pcm]]:
    """Speak the texts interleaved, block by block; as many in one step as the engine takes."""
    streams = [(engine.open(Segment(0, text), settings(engine, **options)), []) for text in texts]
    out: list[list[Pcm]] = [blocks for _, blocks in streams]
    while streams:
        batch, rest = streams[: engine.info.max_batch], streams[engine.info.max_batch :]
        given = engine.step([state for state, _ in batch])
        assert len(given) == len(batch), "a step must answer for each of its streams"
        going_on = []
        for (state, blocks), block in zip(batch, given, strict=True):
            if block is None:
                engine.drop(state)
            else:
                blocks.append(block)
                going_on.append((state, blocks))
        streams = [*rest, *going_on]  # round robin
    return out


def check(engine: BatchEngine, whole: BatchEngine | None = None) -> None:
    """Raise AssertionError where the engine breaks the contract; `whole` is the same one, set to a single window."""
    check_info(engine)
    check_blocks(engine)
    check_repeatable(engine)
    check_interleaved(engine)
    check_no_state_outside(engine)
    check_closing_in_the_middle(engine)
    check_unknown_voice(engine)
    check_nothing_to_say(engine)
    check_short_texts(engine)
    check_speed(engine)
    check_seed(engine)
    if whole is not None:
        check_streamed_equals_whole(engine, whole)


def check_info(engine: BatchEngine) -> None:
    info = engine.info
    assert info == engine.info
    assert info.name
    assert info.sample_rate > 0
    assert info.voices
    assert len({voice.name for voice in info.voices}) == len(info.voices)
    assert all(voice.name and voice.language for voice in info.voices)
    assert info.max_batch >= 1
    assert info.overlap >= 0


def check_blocks(engine: BatchEngine) -> None:
    blocks = blocks_of(engine, A)
    for block in blocks:
        assert isinstance(block, np.ndarray)
        assert block.dtype == np.float32
        assert block.ndim == 1
        assert np.isfinite(block).all()
        assert not len(block) or np.abs(block).max() <= 1
    filled = [block for block in blocks if len(block)]
    assert len(filled) > 1, "the engine does not stream inside a segment"
    assert all(len(block) >= engine.info.overlap for block in filled)
    seconds = sum(map(len, filled)) / engine.info.sample_rate
    assert 1 < seconds < 10, f"{seconds} s are no reading of that text"
    assert np.sqrt(np.mean(np.square(np.concatenate(filled)))) > 0.005, "it is silent"


def check_repeatable(engine: BatchEngine) -> None:
    first, second = blocks_of(engine, A), blocks_of(engine, A)
    assert [len(block) for block in second] == [len(block) for block in first]
    assert np.array_equal(np.concatenate(second), np.concatenate(first)), "the second request differs from the first"


def check_interleaved(engine: BatchEngine) -> None:
    alone = [blocks_of(engine, text) for text in (A, B, A)]
    for one, mixed in zip(alone, together(engine, A, B, A), strict=True):
        assert [len(block) for block in mixed] == [len(block) for block in one], "streams influence each other"
        np.testing.assert_allclose(np.concatenate(mixed), np.concatenate(one), atol=engine.info.tolerance, rtol=0)


def check_no_state_outside(engine: BatchEngine) -> None:
    blocks_of(engine, A)  # whatever is loaded lazily
    blocks_of(engine, WORDS[-1])
    before = dict(_contents(engine, "engine"))
    state = engine.open(Segment(0, A), settings(engine, speed=1.25, seed=3))
    for _ in range(3):
        engine.step([state])
        during = dict(_contents(engine, "engine"))
        changed = [path for path in before.keys() | during.keys() if before.get(path) != during.get(path)]
        assert not changed, f"something of a stream lives on the engine: {changed}"
    engine.drop(state)
    blocks_of(engine, B, seed=4)
    assert dict(_contents(engine, "engine")) == before


def check_closing_in_the_middle(engine: BatchEngine) -> None:
    expected = samples_of(engine, B)
    for steps in range(4):
        state = engine.open(Segment(0, A), settings(engine))
        left = [weakref.ref(state)] if hasattr(type(state), "__weakref__") or isinstance(state, Iterator) else []
        for _ in range(steps):
            block = engine.step([state])[0]
            assert block is not None, "the text is too short for this test"
            if len(block):  # an empty one may be a constant
                left.append(weakref.ref(block if block.base is None else block.base))
            del block
        engine.drop(state)
        del state
        gc.collect()
        assert all(ref() is None for ref in left), f"closed after {steps} steps, something stays"
        assert np.array_equal(samples_of(engine, B), expected), "a stream that was closed poisons the next one"


def check_streamed_equals_whole(engine: BatchEngine, whole: BatchEngine) -> None:
    if not engine.info.exact:
        return
    for text in (A, B, *WORDS, *DIGITS):
        streamed, offline = samples_of(engine, text), samples_of(whole, text)
        assert len(streamed) == len(offline), text
        np.testing.assert_allclose(streamed, offline, atol=engine.info.tolerance, rtol=0, err_msg=text)


def check_unknown_voice(engine: BatchEngine) -> None:
    with pytest.raises(UnknownVoice):
        engine.step([engine.open(Segment(0, A), VoiceSettings("no such voice"))])


def check_nothing_to_say(engine: BatchEngine) -> None:
    for text in SILENT:
        assert len(samples_of(engine, text)) == 0, ascii(text)


def check_short_texts(engine: BatchEngine) -> None:
    rate = engine.info.sample_rate
    for text in (*WORDS, *DIGITS):
        seconds = len(samples_of(engine, text)) / rate
        assert 0.1 < seconds < 3, f"{text!r} takes {seconds} s"
    # A text that ends in a digit is spoken to its end.
    assert len(samples_of(engine, "It is 42")) > len(samples_of(engine, "It is")) + rate // 10


def check_speed(engine: BatchEngine) -> None:
    normal = len(samples_of(engine, A))
    info = engine.info
    for speed in (info.slowest, 0.5, 0.8, 1.25, 2.0, info.fastest):
        ratio = len(samples_of(engine, A, speed=speed)) / normal * speed
        assert 0.75 < ratio < 1.33, f"at speed {speed} it takes {ratio:.2f} times as long as it should"


def check_seed(engine: BatchEngine) -> None:
    """The same seed, the same samples; another one may give others, and must if the engine uses chance at all."""
    one, same, other = (samples_of(engine, A, seed=seed) for seed in (1, 1, 2**63 - 1))
    assert np.array_equal(one, same)
    assert len(one) != len(other) or not np.array_equal(one, other), "the seed is ignored"


def _contents(value: object, path: str, depth: int = 6) -> Iterator[tuple[str, object]]:
    """Everything reachable from an engine, as far as it is ours: identities, and the contents of arrays."""
    if isinstance(value, np.ndarray):
        yield path, (id(value), value.tobytes())
        return
    if isinstance(value, str | bytes | int | float | bool | None):
        yield path, value
        return
    yield path, id(value)
    if depth == 0:
        return
    if isinstance(value, dict):
        items = [(f"[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, list | tuple | set | frozenset):
        items = [(f"[{index}]", item) for index, item in enumerate(value)]
    elif type(value).__module__.startswith(("hibari", "onnxruntime", "builtins")):
        return  # not ours, and large; its identity must do
    else:
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        items = [(f".{name}", getattr(value, name, None)) for name in (*getattr(value, "__dict__", {}), *slots)]
    for name, item in items:
        yield from _contents(item, path + name, depth - 1)
