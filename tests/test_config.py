import re
from pathlib import Path

import pytest

from legato import config
from legato.config import Config
from legato.errors import ConfigError

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "configuration.md"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "legato.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_empty_file_gives_the_defaults(tmp_path: Path):
    assert config.load(write(tmp_path, "")) == Config()


def test_the_documented_file_is_the_defaults(tmp_path: Path):
    example = re.search(r"```toml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert example is not None
    loaded = config.load(write(tmp_path, example[1]))
    assert loaded.server == Config().server
    assert loaded.delivery == Config().delivery
    assert loaded.engine.name == Config().engine.name


def test_values_arrive(tmp_path: Path):
    loaded = config.load(write(tmp_path, '[server]\nport = 9\ncors_origins = ["https://a.example"]\n'))
    assert (loaded.server.port, loaded.server.cors_origins) == (9, ("https://a.example",))


def test_sections_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Config().server.port = 1  # type: ignore[misc]  # that it cannot be set is the point


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nprt = 1", "there is no key server.prt"),
        ("[serve]\nport = 1", "there is no key serve"),
        ('[server]\nport = "8000"', "server.port"),
        ("[server]\nport = 70000", "server.port"),
        ("[server]\nmax_text = 0", "server.max_text"),
        ("[delivery]\nwaiting_ms = 0.0", "delivery.waiting_ms"),
        ("[delivery]\nmax_chunk_ms = 100.0", "must not be above max_chunk_ms"),
        ("[delivery.pauses]\nsentence_ms = -1.0", "delivery.pauses.sentence_ms"),
        ("[delivery.pauses]\nsentence_ms = inf", "delivery.pauses.sentence_ms"),
        ("[server", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str):
    with pytest.raises(ConfigError, match=re.escape(said)):
        config.load(write(tmp_path, text))


def test_a_missing_file_is_said(tmp_path: Path):
    with pytest.raises(ConfigError, match="Cannot read"):
        config.load(tmp_path / "none.toml")


def test_a_file_that_is_no_text_is_said(tmp_path: Path):
    path = tmp_path / "legato.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not valid TOML"):
        config.load(path)
