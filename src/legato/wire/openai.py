"""The shapes of OpenAI's speech interface: errors, models, and events.

An event is one `data:` line of a server-sent event stream:

    speech.audio.delta  {"audio": base64}       the joined audio is the file that `stream_format: audio` would send
    speech.audio.done   {"usage": {...}}        the audio is complete
    speech.audio.error  {"error": {...}}        it is not, and nothing follows
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping

from legato.errors import LegatoError

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def error_body(error: LegatoError) -> dict[str, object]:
    """Return the body of an error response."""
    return error_shape(error.http_status, error.code, error.message, error.param)


def error_shape(status: int, code: str, message: str, param: str | None = None) -> dict[str, object]:
    """Return the body of an error response that no `LegatoError` stands for."""
    return {
        "error": {
            "message": _printable(message),
            "type": "invalid_request_error" if status < 500 else "server_error",
            "param": None if param is None else _printable(param),
            "code": code,
        }
    }


def model(name: str) -> dict[str, object]:
    """Return one entry of the list of models. When it was made is not known: 0."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "legato"}


def model_list(names: Iterable[str]) -> dict[str, object]:
    """Return the list of models."""
    return {"object": "list", "data": [model(name) for name in names]}


def audio_delta(audio: bytes) -> bytes:
    """Return the event that carries the next bytes of the audio file."""
    return event({"type": "speech.audio.delta", "audio": base64.b64encode(audio).decode("ascii")})


def audio_done(characters: int, seconds: float) -> bytes:
    """Return the event that ends a complete stream.

    There are no tokens here; the three counts that OpenAI's clients require are 0. What was spoken is said in
    characters of text and seconds of audio.
    """
    usage = {
        "input_tokens": 0,
        "output_tokens": 0,
        "total_tokens": 0,
        "characters": characters,
        "seconds": round(seconds, 6),
    }
    return event({"type": "speech.audio.done", "usage": usage})


def audio_error(error: LegatoError) -> bytes:
    """Return the event that ends an incomplete stream."""
    return event({"type": "speech.audio.error", **error_body(error)})


def event(data: Mapping[str, object]) -> bytes:
    """Return one server-sent event. JSON has no raw line break, so it is a single line."""
    return b"data: " + to_json(data) + b"\n\n"


def to_json(data: Mapping[str, object]) -> bytes:
    """Return compact JSON in ASCII, so that no text can break its encoding."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode("ascii")


def _printable(text: str) -> str:
    """Replace what strict JSON readers, terminals and headers trip over."""
    return _UNPRINTABLE.sub("?", text)
