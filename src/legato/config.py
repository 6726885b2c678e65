"""The configuration file: TOML into frozen sections. An unknown key is an error, and so is a value out of range."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from legato.errors import ConfigError

Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """What every section keeps."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ServerSection(Section):
    """`[server]`: where it listens and what it takes."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    max_text: Annotated[int, Field(ge=1)] = 20_000
    cors_origins: tuple[str, ...] = Field(default=(), strict=False)


class EngineSection(Section):
    """`[engine]`: which engine, and in `[engine.settings]` its own settings, checked when it is loaded."""

    name: str = "hibari"
    settings: dict[str, Any] = Field(default_factory=dict)


class PauseSection(Section):
    """`[delivery.pauses]`: silence between two segments at speed 1, by what ended the first."""

    phrase_ms: Milliseconds = 0.0
    clause_ms: Milliseconds = 120.0
    sentence_ms: Milliseconds = 350.0
    paragraph_ms: Milliseconds = 700.0


class DeliverySection(Section):
    """`[delivery]`: how audio is cut and how much may wait."""

    first_chunk_ms: Annotated[float, Field(gt=0)] = 150.0
    min_chunk_ms: Annotated[float, Field(gt=0)] = 150.0
    max_chunk_ms: Annotated[float, Field(gt=0)] = 800.0
    waiting_ms: Annotated[float, Field(gt=0)] = 10_000.0
    pauses: PauseSection = Field(default_factory=PauseSection)

    @model_validator(mode="after")
    def _ordered(self) -> "DeliverySection":
        if not max(self.first_chunk_ms, self.min_chunk_ms) <= self.max_chunk_ms:
            raise ValueError("first_chunk_ms and min_chunk_ms must not be above max_chunk_ms")
        return self


class Config(Section):
    """The whole file; every section and every key may be absent."""

    server: ServerSection = Field(default_factory=ServerSection)
    engine: EngineSection = Field(default_factory=EngineSection)
    delivery: DeliverySection = Field(default_factory=DeliverySection)


def load(path: Path) -> Config:
    """Read a configuration file.

    Raises:
        ConfigError: it cannot be read, is no TOML, has an unknown key or a wrong value. The message names the key.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    try:
        return Config.model_validate(data)
    except ValidationError as errors:
        first = errors.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "the file"
        if first["type"] == "extra_forbidden":
            raise ConfigError(f"{path}: there is no key {key}. See docs/reference/configuration.md.") from errors
        raise ConfigError(f"{path}: {key}: {first['msg']}.", param=key) from errors
