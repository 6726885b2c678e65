"""The command line's frame: arguments, exit codes, and errors as one line.

Exit codes: 0 done; 1 failed while speaking or serving; 2 wrong use or bad input; 3 something is missing (an extra, a
voice file, a sound card); 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import legato
from legato.cli import say, serve, voices
from legato.errors import ConfigError, InvalidRequest, LegatoError, MissingExtra, VoiceFileError

_FAILED, _WRONG, _MISSING, _INTERRUPTED = 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    if "run" not in args:
        parser.print_help()
        return 0
    try:
        args.run(args)
        sys.stdout.flush()
    except LegatoError as error:
        return _complain(error.message, _exit_code(error))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read has enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except OSError as error:
        return _complain(f"{error.filename or 'input or output'}: {error.strerror or error}.", _FAILED)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="legato",
        description="Speech that starts early and does not stop before it should.",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong use or input, 3 something is missing, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"legato {legato.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="")
    for command in (say, serve, voices):
        command.add_to(commands)
    return parser


def _exit_code(error: LegatoError) -> int:
    match error:
        case InvalidRequest() | ConfigError():
            return _WRONG
        case MissingExtra() | VoiceFileError():
            return _MISSING
        case _:
            return _FAILED


def _complain(message: str, code: int) -> int:
    print(f"legato: error: {message}", file=sys.stderr)
    return code
