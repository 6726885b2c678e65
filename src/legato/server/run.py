"""Starts the server: socket first, then uvicorn, then the voice; ready is said when it is true."""

import errno
import gc
import logging
import socket
from collections.abc import Callable

import uvicorn

from legato.config import Config
from legato.errors import LegatoError
from legato.runtime.delivery import deliver
from legato.runtime.registry import loader
from legato.runtime.service import SpeechService
from legato.server.app import create_app
from legato.server.http_protocol import http_protocol
from legato.server.settings import ConnectionSettings, ServerSettings

_GRACE = 5  # seconds that running streams have to finish when the server is told to stop


def run(
    config: Config,
    *,
    connection: ConnectionSettings | None = None,
    access_log: bool = False,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until interrupted.

    Args:
        config: where to listen, what to take, which engine.
        connection: how connections are treated.
        access_log: log one line per request.
        on_ready: called with the server's URL when the voice is loaded and warm.

    Raises:
        LegatoError: the address cannot be used, or the engine cannot be loaded.
        KeyboardInterrupt: interrupted; everything is closed.
    """
    service = SpeechService(loader(config.engine.name, config.engine.settings), deliver(config.delivery))
    settings = ServerSettings(max_text=config.server.max_text, cors_origins=config.server.cors_origins)
    host, port = config.server.host, config.server.port
    listener = listen(host, port)
    failures: list[LegatoError] = []

    def loaded(failure: LegatoError | None) -> None:
        if failure is not None:
            failures.append(failure)
            server.should_exit = True
            return
        # What the engine loaded stays: to look through it again for garbage was measured at 17 ms, in someone's speech.
        gc.collect()
        gc.freeze()
        if on_ready is not None:
            on_ready(url_of(host, listener.getsockname()[1]))

    app = create_app(service, settings, on_loaded=loaded)
    server = uvicorn.Server(configure(app, connection or ConnectionSettings(), access_log=access_log))
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
    if failures:
        raise failures[0]


def configure(
    app: Callable[..., object], connection: ConnectionSettings, *, access_log: bool = False
) -> uvicorn.Config:
    """Return uvicorn's configuration; logging is left to the program."""
    return uvicorn.Config(
        app,
        loop="auto",  # uvloop where it is installed
        http=http_protocol(connection),
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # triples the cost of sending audio
        lifespan="on",
        log_config=None,
        log_level=logging.INFO if access_log else logging.WARNING,
        access_log=access_log,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        LegatoError: the address is unknown, taken or not permitted.
    """
    if not 0 <= port <= 65535:
        raise LegatoError(f"There is no port {port}. Choose one from 1 to 65535.", param="port")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, address = found[0][0], found[0][4]
        return socket.create_server((str(address[0]), int(address[1])), family=family, backlog=2048)
    except socket.gaierror:
        raise LegatoError(f"There is no address {host!a} on this machine. Try 127.0.0.1.", param="host") from None
    except OSError as error:
        raise LegatoError(_why_not(error, host, port), param="port") from None


def url_of(host: str, port: int) -> str:
    """Return where a client on this machine finds the server."""
    if host in ("", "0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _why_not(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} is already in use. Stop what uses it, or choose another port."
        case errno.EACCES:
            return f"Port {port} needs privileges. Choose one above 1023."
        case errno.EADDRNOTAVAIL:
            return f"This machine has no address {host!a}. Try 127.0.0.1."
        case _:
            return f"Cannot listen at {host!a}, port {port}: {error.strerror}."
