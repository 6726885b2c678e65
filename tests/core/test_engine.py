"""An engine for one stream at a time, run where one for many is expected."""

from collections.abc import Iterator

import numpy as np
import pytest

from legato.core.engine import BatchEngine, Engine, EngineInfo, OneByOne, VoiceInfo, VoiceSettings
from legato.core.events import Pcm, Segment

VOICE = VoiceSettings("ada")


class Counting:
    """Speaks each letter as one block that holds its number, and writes down what it does."""

    def __init__(self) -> None:
        self.did: list[str] = []

    @property
    def info(self) -> EngineInfo:
        return EngineInfo("counting", 1000, (VoiceInfo("ada", "en"),))

    def speak(self, segment: Segment, voice: VoiceSettings) -> Iterator[Pcm]:
        self.did.append(f"begin {segment.text}")
        try:
            for number, letter in enumerate(segment.text, 1):
                self.did.append(letter)
                yield np.full(1, number, np.float32)
        finally:
            self.did.append(f"end {segment.text}")

    def close(self) -> None:
        self.did.append("close")


def values(blocks: object) -> list[float | None]:
    assert isinstance(blocks, list)
    return [None if block is None else block.item() for block in blocks]


def test_protocols() -> None:
    assert isinstance(Counting(), Engine)
    assert isinstance(OneByOne(Counting()), BatchEngine)
    assert not isinstance(Counting(), BatchEngine)
    assert not isinstance(OneByOne(Counting()), Engine)
    assert OneByOne(Counting()).info == Counting().info


def test_to_open_does_no_work() -> None:
    engine = Counting()
    OneByOne(engine).open(Segment(0, "abc"), VOICE)
    assert engine.did == []


def test_a_step_takes_one_block_of_each() -> None:
    engine = Counting()
    batch = OneByOne(engine)
    long, short = batch.open(Segment(0, "abc"), VOICE), batch.open(Segment(1, "xy"), VOICE)
    assert batch.step([]) == []
    assert values(batch.step([long])) == [1]
    assert engine.did == ["begin abc", "a"]
    assert values(batch.step([short, long])) == [1, 2]
    assert values(batch.step([long, short])) == [3, 2]
    assert values(batch.step([long, short])) == [None, None]
    assert values(batch.step([short, long])) == [None, None]  # it stays ended
    assert engine.did == "begin abc,a,begin xy,x,b,c,y,end abc,end xy".split(",")


def test_drop_closes_the_generator() -> None:
    engine = Counting()
    batch = OneByOne(engine)
    state, other = batch.open(Segment(0, "abc"), VOICE), batch.open(Segment(1, "xy"), VOICE)
    batch.step([state, other])
    batch.drop(state)
    assert engine.did[-1] == "end abc"
    batch.drop(state)
    assert values(batch.step([state, other])) == [None, 2]  # the other one goes on
    assert engine.did.count("end abc") == 1


def test_drop_of_a_state_that_did_nothing_or_has_ended() -> None:
    engine = Counting()
    batch = OneByOne(engine)
    batch.drop(batch.open(Segment(0, "abc"), VOICE))
    assert engine.did == []
    ended = batch.open(Segment(0, ""), VOICE)
    assert values(batch.step([ended])) == [None]
    batch.drop(ended)
    assert engine.did == ["begin ", "end "]


def test_a_state_may_be_any_iterator() -> None:
    class Plain(Counting):
        def speak(self, segment: Segment, voice: VoiceSettings) -> Iterator[Pcm]:
            return iter([np.zeros(1, np.float32)])

    batch = OneByOne(Plain())
    state = batch.open(Segment(0, "a"), VOICE)
    assert values(batch.step([state])) == [0]
    batch.drop(state)


def test_what_the_engine_raises_comes_out() -> None:
    class Broken(Counting):
        def speak(self, segment: Segment, voice: VoiceSettings) -> Iterator[Pcm]:
            raise RuntimeError("broken")
            yield

    batch = OneByOne(Broken())
    with pytest.raises(RuntimeError, match="broken"):
        batch.step([batch.open(Segment(0, "a"), VOICE)])


def test_close_closes_the_engine() -> None:
    engine = Counting()
    OneByOne(engine).close()
    assert engine.did == ["close"]


def test_infos_are_values() -> None:
    assert VoiceSettings("ada") == VoiceSettings("ada", speed=1.0, seed=0)
    info = Counting().info
    assert (info.overlap, info.max_batch, info.tolerance, info.exact) == (0, 1, 0.0, True)
    with pytest.raises(AttributeError):
        info.overlap = 5
    assert hash(info) == hash(Counting().info)
