"""The outermost layer of a request: when it came, its name, and the last resort when something breaks."""

import asyncio
import re
import uuid
from collections.abc import Callable

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from legato.errors import LegatoError, NotReady
from legato.server.errors import error_response, log_unexpected

_GOOD_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class RequestContext:
    """Gives each request `state.requested_at` and `state.request_id`, and each response the header X-Request-Id.

    A client's own X-Request-Id is kept if it is short and plain.
    """

    def __init__(self, app: ASGIApp, clock: Callable[[], float]) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        state = scope.setdefault("state", {})
        state["requested_at"] = self._clock()
        state["request_id"] = request_id
        started = False

        async def send_named(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", []), (b"x-request-id", request_id.encode("ascii"))]
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        except ClientDisconnect:
            return  # it left while it was still sending its request
        except asyncio.CancelledError:
            # Only the server's end cancels a request. What has started is broken off by returning, see `speech`.
            if not started:
                await error_response(NotReady("The server is stopping.", retry_after=1))(scope, receive, send_named)
        except Exception as error:
            log_unexpected(error, request_id)
            if not started:
                message = f"The server failed. Its log says more about the request {request_id}."
                await error_response(LegatoError(message))(scope, receive, send_named)


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given = value.decode("latin-1")
            if _GOOD_ID.fullmatch(given):
                return str(given)
    return f"req_{uuid.uuid4().hex}"
