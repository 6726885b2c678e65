"""The reference pages say what is there: fields, addresses, codes, options; and their examples run."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import pytest

from legato.cli.main import _parser
from legato.errors import LegatoError, _classes
from legato.runtime.registry import loader
from legato.runtime.service import SpeechService
from legato.server.app import create_app
from legato.server.speech import EXPOSED_HEADERS
from legato.server.speech_request import SpeechRequest
from tests.server.live import WAIT, Live

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
HTTP, CLI, ERRORS = ((REFERENCE / f"{name}.md").read_text(encoding="utf-8") for name in ("http", "cli", "errors"))


def test_every_field_is_documented_and_nothing_else() -> None:
    section = HTTP.split("## Speech")[1].split("###")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) != []
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(SpeechRequest.model_fields)
    assert all(f"`{header}`" in HTTP for header in EXPOSED_HEADERS)


def test_every_address_is_documented() -> None:
    app = create_app(SpeechService(loader()))
    addresses = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    documented = set(re.findall(r"^\| `([A-Z]+) ([^`]+)` \|", HTTP, re.MULTILINE))
    assert documented == addresses | {("GET", "/openapi.json")}


@pytest.mark.parametrize("error", _classes(LegatoError), ids=lambda error: error.code)
def test_every_error_is_documented(error: type[LegatoError]) -> None:
    again = "yes" if error.retryable else "no"
    assert f"| `{error.code}` | `{error.__name__}` | {error.http_status} | {again} |" in ERRORS
    if error.code != "cancelled":  # nobody is there to receive it
        assert re.search(
            rf"^\| {503 if error.http_status == 503 else error.http_status} \|.*`{error.code}`", HTTP, re.MULTILINE
        )


def _options(parser: argparse.ArgumentParser) -> set[str]:
    """Of a command and of the commands under it."""
    found = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {option for inner in action.choices.values() for option in _options(inner)}
    return found


def test_every_option_is_documented() -> None:
    commands = next(action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    for name, parser in commands.choices.items():
        section = CLI.split(f"## `legato {name}")[1].split("\n## ")[0]
        assert _options(parser) - {"-h", "--help"} == set(
            re.findall(r"(?<![\w-])--?[a-z][a-z-]*", "".join(re.findall(r"^\| (`.*?) \|", section, re.M)))
        )


@pytest.mark.parametrize("code", re.findall(r"^```py\n(.*?)^```", HTTP, re.MULTILINE | re.DOTALL))
def test_the_examples_run(live: Live, code: str, tmp_path: Path) -> None:
    code = code.replace("http://127.0.0.1:8000", live.url)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=WAIT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "hello.wav").stat().st_size > 10000
