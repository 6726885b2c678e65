"""`legato serve`: the HTTP server."""

import argparse
import logging
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from legato.errors import MissingExtra

if TYPE_CHECKING:
    from legato.config import Config

_NEEDED = ("fastapi", "uvicorn", "httptools", "websockets")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "serve",
        help="serve speech over HTTP",
        description="Serve speech over HTTP, in the shape of OpenAI's speech interface.",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML; the options here go before it")
    parser.add_argument("--host", metavar="ADDRESS", help="where to listen; 127.0.0.1, only this machine")
    parser.add_argument("--port", type=int, metavar="N", help="8000; 0 for any free one")
    parser.add_argument("--engine", metavar="NAME", help="the engine that speaks; hibari")
    parser.add_argument("--max-text", type=_positive, metavar="N", help="characters of one text at most; 20000")
    parser.add_argument(
        "--cors-origin", action="append", metavar="URL", help="web pages that may call it; may be repeated; none"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="log every request; never its text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Serve until interrupted.

    Raises:
        LegatoError: something is missing, the address cannot be used, or the voice cannot be loaded.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"Serving needs more packages ({missing[0]}): pip install 'legato-speech[serve]'")
    from legato.server import run as server

    logging.basicConfig(
        level=logging.INFO if args.verbose else logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    config = _config(args)
    if config.server.host not in _LOOPBACK:
        print("legato: whoever reaches this address can use the server: it asks for no password.", file=sys.stderr)
    server.run(config, access_log=args.verbose, on_ready=_announce)


def _config(args: argparse.Namespace) -> "Config":
    """Return the file's values, or the defaults, under what the command line says."""
    from legato.config import Config, load

    config = Config() if args.config is None else load(args.config)
    server = {
        "host": args.host,
        "port": args.port,
        "max_text": args.max_text,
        "cors_origins": None if args.cors_origin is None else tuple(args.cors_origin),
    }
    given = {name: value for name, value in server.items() if value is not None}
    engine = {} if args.engine is None else {"name": args.engine}
    return config.model_copy(
        update={"server": config.server.model_copy(update=given), "engine": config.engine.model_copy(update=engine)}
    )


def _announce(url: str) -> None:
    print(f"Legato is ready at {url} - try:", flush=True)
    print(
        f"  curl {url}/v1/audio/speech -H 'Content-Type: application/json' -d '{{\"input\": \"Hello there.\"}}' "
        "-o hello.wav",
        flush=True,
    )


def _positive(value: str) -> int:
    number = int(value)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number
