"""`--play` and what it needs; the sound card is a stand-in, since a test machine has none."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from legato.cli.main import main
from legato.core.events import Pcm


class Card(ModuleType):
    """Takes the place of `sounddevice`."""

    class PortAudioError(Exception):
        pass

    def __init__(self, *, devices: bool = True, opens: bool = True) -> None:
        super().__init__("sounddevice")
        self.devices, self.opens = devices, opens
        self.heard: list[Pcm] = []
        self.calls: list[str] = []

    def query_devices(self, kind: str) -> object:
        if not self.devices:
            raise self.PortAudioError("Error querying device -1")
        return {"name": kind}

    def OutputStream(self, samplerate: int, channels: int, dtype: str) -> "Card":
        if not self.opens:
            raise self.PortAudioError("Invalid sample rate")
        self.calls.append(f"open {samplerate} {channels} {dtype}")
        return self

    def write(self, pcm: Pcm) -> None:
        self.heard.append(pcm)

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def abort(self) -> None:
        self.calls.append("abort")

    def close(self) -> None:
        self.calls.append("close")


def test_it_plays_while_it_writes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    card = Card()
    monkeypatch.setitem(sys.modules, "sounddevice", card)
    path = tmp_path / "out.wav"
    assert main(["say", "Hello there.", "--play", "-o", str(path)]) == 0
    assert card.calls == ["open 24000 1 float32", "start", "stop", "close"]
    assert all(pcm.shape == (len(pcm), 1) for pcm in card.heard)
    assert len(np.concatenate(card.heard)) * 2 + 44 == path.stat().st_size


def test_it_plays_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card()
    monkeypatch.setitem(sys.modules, "sounddevice", card)
    assert main(["say", "Hello there."]) == 0
    assert card.heard


def test_an_interruption_is_silent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card()

    def interrupt(pcm: Pcm) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(card, "write", interrupt)
    monkeypatch.setitem(sys.modules, "sounddevice", card)
    assert main(["say", "Hello there."]) == 130
    assert card.calls[-2:] == ["abort", "close"]


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (None, "pip install 'legato-speech[play]'"),
        (Card(devices=False), "There is no sound card"),
        (Card(opens=False), "Invalid sample rate"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: ModuleType | None, message: str
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", module)  # None: an import fails
    assert main(["say", "Hello there."]) == 3
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("legato: error: ")
    assert message in error
    assert "-o FILE.wav" in error


def test_the_extra_for_serving_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("legato.cli.serve.find_spec", lambda name: None)
    assert main(["serve"]) == 3
    assert "pip install 'legato-speech[serve]'" in capsys.readouterr().err
