"""`POST /v1/audio/speech`: OpenAI's speech request, answered while the speech is made.

    request ─► checks ─► stream ─► first Audio ─► headers and first sound together ─► ... ─► end | broken off
                  └─────────┴── an error response: nothing was sent yet

A failure after the first byte cannot change the status any more. The response is then left without its end (no last
chunk of the chunked encoding), which every HTTP client reports as an incomplete body.
"""

import asyncio
import logging
from collections import deque
from typing import Protocol

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from legato.core.events import Audio, Done, Failed
from legato.core.trace import Trace, report
from legato.errors import Cancelled, InvalidRequest, LegatoError, NothingToSpeak, TextTooLong, error_for
from legato.runtime.service import SpeechService, Stream
from legato.server.settings import ServerSettings
from legato.server.speech_request import Asked, SpeechRequest, check, parse
from legato.server.voices import check_model
from legato.wire import openai
from legato.wire.format import FORMATS, Encoder

_log = logging.getLogger("legato.server")

EXPOSED_HEADERS = ("X-Sample-Rate", "X-Channels", "X-Sample-Format")


def speech_router(service: SpeechService, settings: ServerSettings) -> APIRouter:
    """Return the route that speaks."""
    router = APIRouter()
    schema = SpeechRequest.model_json_schema()

    @router.post(
        "/v1/audio/speech",
        summary="Speak a text",
        response_class=Response,
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}},
    )
    async def speech(request: Request) -> Response:
        body = parse(await _read(request, settings.max_body_bytes))
        if body.model is not None:
            check_model(service, body.model)
        asked = check(body, settings.max_text)
        encoder = FORMATS[asked.format](service.info.sample_rate)
        return SpeechResponse(service, asked, encoder, request.state.requested_at, request.state.request_id)

    return router


async def _read(request: Request, limit: int) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise InvalidRequest("Send the request as JSON, with the header Content-Type: application/json.")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise TextTooLong(
                f"The request has more than {limit} bytes. Send the text in several requests.", param="input"
            )
    return bytes(body)


class _Frame(Protocol):
    """What is put around the encoded audio."""

    mime: str

    def audio(self, data: bytes) -> bytes: ...
    def done(self, seconds: float) -> bytes: ...
    def failed(self, error: LegatoError) -> bytes: ...


class _Bare:
    """The file itself. Its end is the end of the body; a failure is the lack of that end."""

    def __init__(self, mime: str) -> None:
        self.mime = mime

    def audio(self, data: bytes) -> bytes:
        return data

    def done(self, seconds: float) -> bytes:  # noqa: ARG002 - as every frame has it
        return b""

    def failed(self, error: LegatoError) -> bytes:  # noqa: ARG002 - as every frame has it
        return b""


class _Events:
    """Server-sent events in OpenAI's shape."""

    mime = "text/event-stream"

    def __init__(self, characters: int) -> None:
        self._characters = characters

    def audio(self, data: bytes) -> bytes:
        return openai.audio_delta(data) if data else b""

    def done(self, seconds: float) -> bytes:
        return openai.audio_done(self._characters, seconds)

    def failed(self, error: LegatoError) -> bytes:
        return openai.audio_error(error)


class SpeechResponse(Response):
    """A response that opens its stream when it is sent, and leaves it when the client does.

    Raises, from its call and before anything was sent:
        LegatoError: the engine is not ready, or cannot speak this.
    """

    def __init__(
        self, service: SpeechService, asked: Asked, encoder: Encoder, requested_at: float, request_id: str
    ) -> None:
        self.status_code = 200
        self.background = None
        self._service = service
        self._asked = asked
        self._encoder = encoder
        self._requested_at = requested_at
        self._request_id = request_id
        self._frame: _Frame = _Events(len(asked.text)) if asked.events else _Bare(encoder.mime)
        self._rate = service.info.sample_rate
        self.init_headers(
            {
                "content-type": self._frame.mime,
                "x-sample-rate": str(self._rate),
                "x-channels": "1",
                "x-sample-format": "s16le",
                "x-accel-buffering": "no",
                "cache-control": "no-store",
            }
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Speak."""
        send_speech = self._send_whole if self._asked.whole else self._send_stream
        async with self._service.stream(self._asked.options, requested_at=self._requested_at) as stream:
            leaving = asyncio.create_task(_cancel_when_gone(receive, stream))
            try:
                stream.send_text(self._asked.text)
                stream.end()
                await send_speech(stream, send)
            finally:
                leaving.cancel()
                _report(self._request_id, self._asked, stream.trace)

    async def _send_stream(self, stream: Stream, send: Send) -> None:
        encoder, frame = self._encoder, self._frame
        started = False
        async for event in stream:
            match event:
                case Audio(pcm=pcm):
                    data = encoder.push(pcm)
                    if not started:
                        data = encoder.header() + data
                        await self._start(send)
                        started = True
                    await _send_body(send, frame.audio(data))
                case Failed(code=Cancelled.code):
                    return  # nobody is there to be told
                case Failed():
                    error = _error(event)
                    if not started:
                        raise error
                    await _send_body(send, frame.failed(error))
                    return  # without an end
                case Done(samples=samples):
                    body = frame.audio(encoder.flush()) + frame.done(samples / self._rate)
                    await _send_body(send, body, more=False)

    async def _send_whole(self, stream: Stream, send: Send) -> None:
        encoder = self._encoder
        parts: deque[bytes] = deque()
        async for event in stream:
            match event:
                case Audio(pcm=pcm):
                    parts.append(encoder.push(pcm))
                case Failed(code=Cancelled.code):
                    return
                case Failed():
                    raise _error(event)
                case Done(samples=samples):
                    parts.append(encoder.flush())
                    parts.appendleft(encoder.header(samples))
        await self._start(send, sum(map(len, parts)))
        while parts:  # piece by piece, so that a slow reader is waited for
            await _send_body(send, parts.popleft())
        await _send_body(send, b"", more=False)

    async def _start(self, send: Send, length: int | None = None) -> None:
        if length is not None:
            self.headers["content-length"] = str(length)
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})


async def _send_body(send: Send, body: bytes, *, more: bool = True) -> None:
    if body or not more:
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def _cancel_when_gone(receive: Receive, stream: Stream) -> None:
    """Wait for the client to leave, then stop the engine at its next step and the response at its next event."""
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.cancel()


def _error(event: Failed) -> LegatoError:
    return error_for(event.code, event.message, param="input" if event.code == NothingToSpeak.code else None)


def _report(request_id: str, asked: Asked, trace: Trace) -> None:
    """Log one line about a stream; not its text."""
    facts = report(trace)
    _log.log(
        logging.WARNING if facts.error else logging.INFO,
        "%s %s: %d characters, %.2f s of audio, first after %s, %s",
        request_id,
        asked.format,
        len(asked.text),
        facts.audio,
        "-" if facts.ttfp is None else f"{facts.ttfp * 1000:.0f} ms",
        facts.error or ("complete" if trace.ended_at is not None and not facts.cancelled else "left"),
    )
