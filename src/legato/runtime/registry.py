"""Finds installed engines through their entry points (group `legato.engines`)."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from legato.core.engine import BatchEngine, Engine, OneByOne
from legato.errors import ConfigError, LegatoError, MissingExtra, UnknownModel

GROUP = "legato.engines"
DEFAULT_ENGINE = "hibari"


def installed() -> dict[str, EntryPoint]:
    """Engines by name, not loaded."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def engine_of(voice: object) -> str:
    """The engine that a voice's name asks for: what stands before the colon, or the default one."""
    name, colon, _ = voice.partition(":") if isinstance(voice, str) else ("", "", "")
    return name if colon and name in installed() else DEFAULT_ENGINE


def loader(name: str = DEFAULT_ENGINE, settings: Mapping[str, Any] | None = None) -> Callable[[], BatchEngine]:
    """Return a function that loads the engine; call it on the thread that will own it.

    Args:
        name: of the engine.
        settings: for the dataclass that is the engine's `Config`; checked when it is loaded.

    Raises:
        UnknownModel: no such engine is installed; the message lists those that are.
    """
    engines = installed()
    if name not in engines:
        raise UnknownModel(f"There is no engine {name[:64]!a}. Engines: {', '.join(engines) or 'none'}.", param="model")
    return lambda: _load(engines[name], settings or {})


def _load(point: EntryPoint, settings: Mapping[str, Any]) -> BatchEngine:
    try:
        kind = point.load()
        engine = kind(_config(point.name, kind, settings)) if settings else kind()
    except ImportError as error:
        raise MissingExtra(
            f"The engine {point.name} needs the module {error.name}. Run: pip install 'legato-speech[{point.name}]'"
        ) from error
    if isinstance(engine, BatchEngine):
        return engine
    if isinstance(engine, Engine):
        return OneByOne(engine)
    raise LegatoError(f"The entry point {point.value} gives neither an Engine nor a BatchEngine.")


def _config(name: str, kind: Any, settings: Mapping[str, Any]) -> Any:
    """The engine's `Config` from what a configuration file says."""
    config: Any = getattr(kind, "Config", None)
    known = [item.name for item in fields(config)] if is_dataclass(config) else []
    known.sort(key=lambda name: name not in config.__annotations__)  # its own before those it shares
    for key in settings:
        if key not in known:
            raise ConfigError(f"The engine {name} has no setting {key!a}. Settings: {', '.join(known) or 'none'}.")
    try:
        # By way of JSON, whose strict mode still takes a mapping for a dataclass.
        return TypeAdapter(config).validate_json(to_json(settings), strict=True)
    except ValidationError as errors:
        first = errors.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise ConfigError(f"The engine {name}: {key or 'its settings'}: {first['msg']}.", param=key or None) from errors
