"""`/health`: the process lives. `/ready`: it can speak."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from legato.errors import LegatoError, NotReady
from legato.runtime.service import SpeechService, Status
from legato.server.errors import error_response
from legato.wire import openai


def health_router(service: SpeechService) -> APIRouter:
    """Return the routes for whoever watches over this process."""
    router = APIRouter()

    @router.head("/health", include_in_schema=False)
    @router.get("/health", summary="Whether the process lives")
    async def health() -> Response:
        return JSONResponse({"status": "ok"})

    @router.head("/ready", include_in_schema=False)
    @router.get("/ready", summary="Whether the voice is loaded and warm")
    async def ready() -> Response:
        if service.status is Status.READY:
            return JSONResponse({"status": service.status})
        error = _why(service)
        response = error_response(error)
        body = openai.to_json({"status": service.status, **openai.error_body(error)})
        headers = {name: value for name, value in response.headers.items() if name != "content-length"}
        return Response(body, 503, headers)

    return router


def _why(service: SpeechService) -> LegatoError:
    if service.failure is not None:
        return service.failure
    return NotReady("The voice is still loading. Try again in a second.", retry_after=1)
