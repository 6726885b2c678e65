"""Every error leaves in OpenAI's shape, whoever found it."""

import logging
import math
import traceback

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from legato.errors import InvalidRequest, LegatoError
from legato.wire import openai

_log = logging.getLogger("legato.server")

_UNROUTED = {
    404: ("not_found", "There is nothing at this address. Speech is made by POST /v1/audio/speech."),
    405: ("method_not_allowed", "This address does not take that method. The header Allow says which it takes."),
}


def add_error_handlers(app: FastAPI) -> None:
    """Make the application answer with `error_response`, also where the framework found the error."""

    @app.exception_handler(LegatoError)
    async def known(request: Request, error: LegatoError) -> Response:  # noqa: ARG001 - as every handler has it
        return error_response(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:  # noqa: ARG001 - as every handler has it
        where = error.errors()[0]["loc"]
        return error_response(InvalidRequest("The request is not valid.", param=str(where[-1]) if where else None))

    @app.exception_handler(HTTPException)
    async def unrouted(request: Request, error: HTTPException) -> Response:  # noqa: ARG001 - as every handler has it
        code, message = _UNROUTED.get(error.status_code, (InvalidRequest.code, str(error.detail)))
        body = openai.to_json(openai.error_shape(error.status_code, code, message))
        return Response(body, error.status_code, dict(error.headers or {}), "application/json")


def error_response(error: LegatoError) -> Response:
    """Return the response that tells the client of an error."""
    headers = {"cache-control": "no-store"}
    if error.retry_after is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after))
    return Response(openai.to_json(openai.error_body(error)), error.http_status, headers, "application/json")


def log_unexpected(error: BaseException, request_id: str) -> None:
    """Log the kind and the place only: the message of an unknown exception may quote the text."""
    places = traceback.extract_tb(error.__traceback__)
    place = f"{places[-1].filename}:{places[-1].lineno}" if places else "an unknown place"
    _log.error("%s failed: %s at %s", request_id, type(error).__name__, place)
