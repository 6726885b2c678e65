"""OpenAI's shapes."""

import base64
import json

import pytest

from legato.errors import EngineFailed, LegatoError, NotReady, UnknownVoice
from legato.wire import openai


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnknownVoice("No.", param="voice"), "invalid_request_error"),
        (EngineFailed("No."), "server_error"),
        (NotReady("No."), "server_error"),
    ],
)
def test_errors(error: LegatoError, kind: str) -> None:
    expected = {"message": "No.", "type": kind, "param": error.param, "code": error.code}
    assert openai.error_body(error) == {"error": expected}


def test_an_error_is_readable_whatever_it_names() -> None:
    body = openai.to_json(openai.error_body(UnknownVoice("a\ud800b\n", param="\udfff\x00é")))
    error = json.loads(body)["error"]
    assert (error["message"], error["param"]) == ("a?b?", "??é")


def test_events_are_one_line_each() -> None:
    delta = openai.audio_delta(bytes(range(256)))
    assert delta.startswith(b"data: ")
    assert delta.endswith(b"\n\n")
    assert delta.count(b"\n") == 2
    data = json.loads(delta.removeprefix(b"data: "))
    assert data["type"] == "speech.audio.delta"
    assert base64.b64decode(data["audio"]) == bytes(range(256))


def test_the_last_event_counts_what_there_is() -> None:
    data = json.loads(openai.audio_done(12, 1.5).removeprefix(b"data: "))
    assert data == {
        "type": "speech.audio.done",
        "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "characters": 12, "seconds": 1.5},
    }


def test_the_error_event_has_the_error() -> None:
    data = json.loads(openai.audio_error(EngineFailed("No.")).removeprefix(b"data: "))
    assert data["type"] == "speech.audio.error"
    assert data["error"]["code"] == "engine_failed"


def test_models() -> None:
    listed = openai.model_list(["a", "b"])
    assert listed == {"object": "list", "data": [openai.model("a"), openai.model("b")]}
    assert openai.model("a").keys() == {"id", "object", "created", "owned_by"}
