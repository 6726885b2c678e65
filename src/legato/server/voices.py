"""What can be asked for: models and voices."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from legato.errors import UnknownModel
from legato.runtime.service import SpeechService
from legato.wire import openai

ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
"""OpenAI's names for its own models: programs that have them built in get this server's engine."""


def voices_router(service: SpeechService) -> APIRouter:
    """Return the routes that list models and voices; 503 while they are not known yet."""
    router = APIRouter()

    @router.head("/v1/models", include_in_schema=False)
    @router.get("/v1/models", summary="The engine and its aliases")
    async def models() -> Response:
        return JSONResponse(openai.model_list(model_names(service)))

    @router.head("/v1/models/{name}", include_in_schema=False)
    @router.get("/v1/models/{name}", summary="One of them")
    async def model(name: str) -> Response:
        check_model(service, name)
        return JSONResponse(openai.model(name))

    @router.head("/v1/audio/voices", include_in_schema=False)
    @router.get("/v1/audio/voices", summary="The voices; the first is the default")
    async def voices() -> Response:
        info = service.info
        found = [
            {
                "id": voice.name,
                "name": voice.name,
                "language": voice.language,
                "description": voice.description,
                "licence": voice.licence,
                "model": info.name,
                "default": index == 0,
            }
            for index, voice in enumerate(info.voices)
        ]
        return JSONResponse({"voices": found})

    return router


def model_names(service: SpeechService) -> tuple[str, ...]:
    """Every name that `model` may have in a request.

    Raises:
        LegatoError: the engine is not loaded.
    """
    return (service.info.name, *ALIASES)


def check_model(service: SpeechService, name: str) -> None:
    """Refuse a model that this server does not have.

    Raises:
        UnknownModel: it is not there; the message lists those that are.
        LegatoError: the engine is not loaded.
    """
    names = model_names(service)
    if name not in names:
        raise UnknownModel(f"There is no model {name[:64]!a}. Models: {', '.join(names)}.", param="model")
