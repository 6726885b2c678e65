"""The tree of errors: stable codes, and the exception that a code stands for."""

import pytest

from legato import errors
from legato.core import session
from legato.errors import LegatoError, error_for


def tree(root: type[LegatoError] = LegatoError) -> list[type[LegatoError]]:
    return [root, *(found for child in root.__subclasses__() for found in tree(child))]


ALL = [kind for kind in tree() if kind.__module__ == "legato.errors"]

HTTP = {
    "internal_error": 500,
    "invalid_request": 400,
    "nothing_to_speak": 400,
    "text_too_long": 413,
    "unknown_voice": 400,
    "unknown_model": 404,
    "unsupported_format": 400,
    "missing_extra": 500,
    "voice_file": 500,
    "bad_config": 500,
    "not_ready": 503,
    "engine_failed": 500,
    "cancelled": 499,
}
RETRYABLE = {"not_ready", "engine_failed"}


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in ALL]
    assert len(set(codes)) == len(codes)
    assert all("code" in vars(kind) for kind in ALL)


def test_codes_and_statuses_are_these() -> None:
    """They are documented and clients test them: a change here is a change of the interface."""
    found = {kind.code: kind.http_status for kind in ALL}
    assert {code: found.get(code) for code in HTTP} == HTTP
    assert {kind.code for kind in ALL if kind.retryable} >= RETRYABLE


def test_retryable_is_never_the_callers_mistake() -> None:
    assert not [kind for kind in ALL if kind.retryable and kind.http_status < 429]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.code)
def test_round_trip(kind: type[LegatoError]) -> None:
    error = error_for(kind.code, "Do this.", param="voice")
    assert type(error) is kind
    assert isinstance(error, LegatoError)
    assert (str(error), error.message, error.param, error.retry_after) == ("Do this.", "Do this.", "voice", None)


def test_an_unknown_code_is_still_a_legato_error() -> None:
    assert type(error_for("no_such_code", "?")) is LegatoError


def test_what_a_session_says_has_a_class() -> None:
    assert type(error_for(session.CANCELLED, "")) is errors.Cancelled
    assert type(error_for(session.NOTHING_TO_SPEAK, "")) is errors.NothingToSpeak


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.code)
def test_each_has_a_contract(kind: type[LegatoError]) -> None:
    assert kind.__doc__
    error = kind("Wait.", retry_after=2.5)
    assert (error.retry_after, error.param) == (2.5, None)
