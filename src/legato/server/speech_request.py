"""OpenAI's speech request: what it may hold, and what of it can be checked without the engine."""

import json
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from legato.errors import InvalidRequest, UnsupportedFormat
from legato.runtime.request import DEFAULT_VOICE, SpeechOptions, check_text, readable
from legato.wire.format import DEFAULT_FORMAT, FORMATS


class VoiceReference(BaseModel):
    """How newer OpenAI clients name a voice."""

    model_config = ConfigDict(strict=True, extra="forbid")

    id: str


class SpeechRequest(BaseModel):
    """The body. A field that is null is as good as absent; a field that is not here is an error."""

    model_config = ConfigDict(strict=True, extra="forbid")

    input: str = Field(description="The text to speak.")
    model: str | None = Field(None, description="The engine, or one of OpenAI's model names.")
    voice: str | VoiceReference | None = Field(None, description='A name, or {"id": name}; "default" is the first.')
    response_format: str | None = Field(None, description=f"{' or '.join(FORMATS)}; {DEFAULT_FORMAT} if absent.")
    speed: float | None = Field(None, description="Within the engine's range; 1 if absent.")
    seed: int | None = Field(None, description="0 to 2**63 - 1; the same seed gives the same samples.")
    stream_format: Literal["audio", "sse"] | None = Field(None, description="The file itself, or events.")
    stream: bool | None = Field(None, description="false: one whole reply with its length; true if absent.")
    instructions: str | None = Field(None, description="Not supported: must be empty.")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was checked as far as it can be without the engine."""

    text: str
    options: SpeechOptions
    format: str
    events: bool  # server-sent events instead of the file itself
    whole: bool


def parse(body: bytes) -> SpeechRequest:
    """Read the JSON of a request.

    Raises:
        InvalidRequest: it is no JSON, no object, a field is unknown, missing or of the wrong type.
    """
    try:
        data = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        # Neither the parser's message nor its cause: they may quote the text.
        raise InvalidRequest("The body is not valid JSON.") from None
    if not isinstance(data, dict):
        raise InvalidRequest("The body must be a JSON object.")
    for name in data:
        if name not in SpeechRequest.model_fields:
            raise InvalidRequest(
                f"There is no field {name[:64]!a}. Fields: {', '.join(SpeechRequest.model_fields)}.", param=name[:64]
            )
    if isinstance(data.get("input"), str):
        data["input"] = readable(data["input"])  # a lone surrogate is legal JSON and illegal everywhere else
    try:
        return SpeechRequest.model_validate(data)
    except ValidationError as errors:
        raise _invalid(errors) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _invalid(errors: ValidationError) -> InvalidRequest:
    first = errors.errors(include_url=False, include_context=False, include_input=False)[0]
    field = str(first["loc"][0]) if first["loc"] else None
    match first["type"]:
        case "missing" if field == "input":
            message = "The field input is missing: it is the text to speak."
        case _ if field == "voice":
            message = 'The field voice must be a string, or an object {"id": string}.'
        case _:
            message = f"The field {field} is wrong: {first['msg'].replace('Input should be', 'it should be')}."
    return InvalidRequest(message, param=field)


def check(body: SpeechRequest, max_text: int) -> Asked:
    """Check what needs no engine.

    Raises:
        LegatoError: it cannot be done; `param` names the field.
    """
    name = DEFAULT_FORMAT if body.response_format is None else body.response_format
    if name not in FORMATS:
        raise UnsupportedFormat(
            f"This server cannot write {name[:32]!a}. Formats: {', '.join(FORMATS)}.", param="response_format"
        )
    if body.instructions:
        raise InvalidRequest("This voice takes no instructions. Leave the field out.", param="instructions")
    events = body.stream_format == "sse"
    if events and body.stream is False:
        raise InvalidRequest("Events are always a stream. Leave the field stream out.", param="stream")
    voice = body.voice.id if isinstance(body.voice, VoiceReference) else body.voice
    options = SpeechOptions(
        voice=DEFAULT_VOICE if voice is None else voice,
        speed=1.0 if body.speed is None else body.speed,
        seed=0 if body.seed is None else body.seed,
    )
    return Asked(check_text(body.input, max_text), options, name, events, whole=body.stream is False)
