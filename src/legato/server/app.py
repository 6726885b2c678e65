"""The application: routes, errors, and the service's life."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

import legato
from legato.errors import LegatoError
from legato.runtime.service import SpeechService
from legato.server.context import RequestContext
from legato.server.errors import add_error_handlers
from legato.server.health import health_router
from legato.server.settings import ServerSettings
from legato.server.speech import EXPOSED_HEADERS, speech_router
from legato.server.voices import voices_router


def create_app(
    service: SpeechService,
    settings: ServerSettings | None = None,
    *,
    on_loaded: Callable[[LegatoError | None], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> FastAPI:
    """Return the ASGI application. Its lifespan starts the service and ends it; one process, one service.

    Args:
        service: not started yet.
        settings: how requests are treated.
        on_loaded: called once on the event loop, with None when the first request can be served, or with the reason
            why none ever will.
        clock: the service's.
    """
    settings = settings or ServerSettings()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with service:
            waiting = asyncio.create_task(_tell(service, on_loaded)) if on_loaded else None
            try:
                yield
            finally:
                if waiting is not None:
                    waiting.cancel()
                    with suppress(asyncio.CancelledError):
                        await waiting

    app = FastAPI(
        title="Legato",
        version=legato.__version__,
        lifespan=lifespan,
        docs_url=None,  # the page would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    add_error_handlers(app)
    app.include_router(speech_router(service, settings))
    app.include_router(voices_router(service))
    app.include_router(health_router(service))
    app.add_middleware(RequestContext, clock=clock)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-Id"],
            expose_headers=[*EXPOSED_HEADERS, "X-Request-Id", "Retry-After"],
        )
    return app


async def _tell(service: SpeechService, on_loaded: Callable[[LegatoError | None], None]) -> None:
    try:
        await service.ready()
    except LegatoError as error:
        on_loaded(error)
    else:
        on_loaded(None)
