"""`legato voices`: what can be spoken with."""

import argparse
from collections.abc import Sequence


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "voices",
        help="list the voices",
        description="List the voices of every installed engine. The first voice of an engine is its default.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:  # noqa: ARG001
    """Load each engine and print its voices.

    Raises:
        LegatoError: an engine cannot be loaded.
    """
    from legato.api import Voice
    from legato.runtime.registry import installed

    rows = [("NAME", "LANGUAGE", "DESCRIPTION", "LICENCE", "ENGINE")]
    for engine in installed():
        with Voice(engine=engine) as voice:
            rows += [
                (found.name, found.language, found.description, found.licence, engine) for found in voice.info.voices
            ]
    print(table(rows))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
