"""Engines are found through entry points; what is wrong with one is said in words that help."""

import sys
import types
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from legato.core.engine import BatchEngine, OneByOne
from legato.engines.hibari import Hibari, HibariConfig
from legato.errors import ConfigError, LegatoError, MissingExtra, UnknownModel
from legato.runtime import registry
from legato.runtime.registry import installed, loader
from tests.runtime.fakes import FakeEngine


def install(monkeypatch: pytest.MonkeyPatch, value: str, **contents: Any) -> None:
    """Pretend that an engine named "toy" is installed, in a module that has `contents`."""
    module = types.ModuleType("legato_test_toy")
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, "legato_test_toy", module)
    monkeypatch.setattr(registry, "installed", lambda: {"toy": EntryPoint("toy", value, registry.GROUP)})


def test_hibari_is_installed_and_loads_as_a_batch_engine() -> None:
    assert "hibari" in installed()
    engine = loader()()
    assert isinstance(engine, OneByOne)
    assert isinstance(engine, BatchEngine)
    assert engine.info.name == "hibari"


def test_unknown_engine() -> None:
    with pytest.raises(UnknownModel, match=r"no engine 'parrot'\. Engines: .*hibari") as caught:
        loader("parrot")
    assert (caught.value.param, caught.value.http_status) == ("model", 404)


def test_no_engine_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "installed", dict)
    with pytest.raises(UnknownModel, match="Engines: none"):
        loader()


def test_a_batch_engine_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "legato_test_toy:Toy", Toy=FakeEngine)
    assert isinstance(loader("toy")(), FakeEngine)


def test_missing_module(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "legato_no_such_module:Toy")
    with pytest.raises(MissingExtra, match=r"toy needs the module legato_no_such_module.*'legato-speech\[toy\]'"):
        loader("toy")()


def test_a_module_that_is_missing_only_when_the_engine_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> None:
        import legato_no_such_module  # noqa: F401

    install(monkeypatch, "legato_test_toy:make", make=make)
    with pytest.raises(MissingExtra, match="legato_no_such_module"):
        loader("toy")()


def test_an_entry_point_that_gives_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "legato_test_toy:make", make=object)
    with pytest.raises(LegatoError, match="legato_test_toy:make gives neither an Engine nor a BatchEngine"):
        loader("toy")()


def test_settings_reach_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    kind = type("Toy", (FakeEngine,), {"Config": HibariConfig, "__init__": lambda self, config: made.append(config)})
    install(monkeypatch, "legato_test_toy:Toy", Toy=kind)
    loader("toy", {"window_frames": 7})()
    assert made == [HibariConfig(window_frames=7)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"colour": 1}, "no setting 'colour'. Settings: first_frames"),
        ({"first_frames": 0}, "first_frames and window_frames must be 1 or more"),
        ({"first_frames": "many"}, "first_frames"),
        ({"first_frames": 1.5}, "first_frames"),
        ({"silence_dbfs": 1}, "silence_dbfs must be"),
        ({"tail_ms": -1}, "must be from 0 to 1000"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        loader("hibari", settings)()


def test_an_engine_without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "legato_test_toy:Toy", Toy=FakeEngine)
    with pytest.raises(ConfigError, match=r"no setting 'a'\. Settings: none"):
        loader("toy", {"a": 1})()


def test_the_entry_point_in_pyproject_is_the_engine() -> None:
    assert installed()["hibari"].load() is Hibari
