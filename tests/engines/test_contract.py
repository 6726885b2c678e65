"""The contract, for every engine that is installed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from legato.core.engine import BatchEngine, Engine, EngineInfo, OneByOne, VoiceInfo, VoiceSettings
from legato.core.events import Segment
from legato.runtime.registry import installed, loader
from tests import engine_contract as contract

# Settings that make an engine speak a segment in a single window. Every engine that calls itself exact is here.
WHOLE: dict[str, dict[str, Any]] = {
    "hibari": {"first_frames": 10**6, "window_frames": 10**6},
    "piper": {"first_frames": 10**6, "window_frames": 10**6},
}

Clause = Callable[[BatchEngine], None]
CLAUSES: list[Clause] = [
    contract.check_info,
    contract.check_blocks,
    contract.check_repeatable,
    contract.check_interleaved,
    contract.check_no_state_outside,
    contract.check_closing_in_the_middle,
    contract.check_unknown_voice,
    contract.check_nothing_to_say,
    contract.check_short_texts,
    contract.check_speed,
    contract.check_seed,
]


@pytest.fixture(scope="module", params=sorted(installed()))
def engine(request: pytest.FixtureRequest) -> BatchEngine:
    return loader(request.param)()


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.__name__.removeprefix("check_"))
def test_clause(engine: BatchEngine, clause: Clause) -> None:
    clause(engine)


def test_streamed_equals_whole(engine: BatchEngine) -> None:
    if engine.info.exact:
        contract.check_streamed_equals_whole(engine, loader(engine.info.name, WHOLE[engine.info.name])())


# Does the contract notice? Engines that break one clause each.


class _Tone:
    """An engine that keeps the contract: a tone whose length and pitch come from the text."""

    step_samples = 4000

    def __init__(self) -> None:
        self._info = EngineInfo("tone", 16_000, (VoiceInfo("t", "en"),))

    @property
    def info(self) -> EngineInfo:
        return self._info

    def speak(self, segment: Segment, voice: VoiceSettings):
        if voice.name != "t":
            raise contract.UnknownVoice("no such voice")
        letters = sum(map(str.isalnum, segment.text))
        length = round((0.2 * bool(letters) + 0.07 * letters) * 16_000 / voice.speed)
        wave = (0.3 * np.sin(np.arange(length) * (0.1 + voice.seed % 5 * 0.01))).astype(np.float32)
        for start in range(0, length, self.step_samples):
            yield wave[start : start + self.step_samples].copy()

    def close(self) -> None:
        pass


class _Doubles(_Tone):
    def speak(self, segment, voice):
        yield from (block.astype(np.float64) for block in super().speak(segment, voice))


class _Loud(_Tone):
    def speak(self, segment, voice):
        yield from (block * np.float32(4) for block in super().speak(segment, voice))


class _GrowingHop(_Tone):
    def speak(self, segment, voice):
        self.step_samples += 100
        yield from super().speak(segment, voice)


class _SharedState(_Tone):
    def __init__(self) -> None:
        super().__init__()
        self.last = {"block": np.zeros(1, np.float32)}

    def speak(self, segment, voice):
        for block in super().speak(segment, voice):
            self.last["block"] = block
            yield block


class _SharedArray(_Tone):
    def __init__(self) -> None:
        super().__init__()
        self.phase = np.zeros(1)

    def speak(self, segment, voice):
        for block in super().speak(segment, voice):
            self.phase += 1
            yield block


class _LateStart(_Tone):
    step_samples = 10**9


class _NoSpeed(_Tone):
    def speak(self, segment, voice):
        yield from super().speak(segment, VoiceSettings(voice.name, seed=voice.seed))


class _NoSeed(_Tone):
    def speak(self, segment, voice):
        yield from super().speak(segment, VoiceSettings(voice.name, voice.speed))


class _AnyVoice(_Tone):
    def speak(self, segment, voice):
        yield from super().speak(segment, VoiceSettings("t", voice.speed, voice.seed))


class _Hum(_Tone):
    def speak(self, segment, voice):
        yield np.zeros(100, np.float32)
        yield from super().speak(segment, voice)


class _Keeps(_Tone):
    kept: list = []  # noqa: RUF012 - the mistake that is to be found

    def speak(self, segment, voice):
        for block in super().speak(segment, voice):
            self.kept.append(block)
            yield block


def test_a_good_engine_passes() -> None:
    assert isinstance(_Tone(), Engine)
    contract.check(OneByOne(_Tone()), OneByOne(_LateStart()))


@pytest.mark.parametrize(
    ("broken", "clause"),
    [
        (_Doubles, contract.check_blocks),
        (_Loud, contract.check_blocks),
        (_LateStart, contract.check_blocks),
        (_GrowingHop, contract.check_repeatable),
        (_GrowingHop, contract.check_no_state_outside),
        (_SharedState, contract.check_no_state_outside),
        (_SharedArray, contract.check_no_state_outside),
        (_Keeps, contract.check_closing_in_the_middle),
        (_NoSpeed, contract.check_speed),
        (_NoSeed, contract.check_seed),
        (_Hum, contract.check_nothing_to_say),
    ],
    ids=lambda item: item.__name__,
)
def test_a_broken_engine_fails(broken: type[_Tone], clause: Clause) -> None:
    with pytest.raises(AssertionError):
        clause(OneByOne(broken()))


def test_an_engine_that_takes_any_voice_fails() -> None:
    with pytest.raises(pytest.fail.Exception):
        contract.check_unknown_voice(OneByOne(_AnyVoice()))
