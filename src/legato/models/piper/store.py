"""The folder of Piper voices: what was added to it can be spoken with, and nothing else.

    FOLDER/NAME/voice.onnx        the model
    FOLDER/NAME/voice.onnx.json   Piper's JSON file
    FOLDER/NAME/voice.json        our record: the SHA-256 of both, licence, where they came from, when

A voice is made in a hidden folder beside the others and renamed into place, so it is there whole or not at all.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from legato.errors import InvalidRequest, UnknownVoice, VoiceFileError
from legato.models.piper import config, loading
from legato.models.piper.config import VoiceConfig

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_RESERVED = "default"  # in a request it means an engine's first voice
_MODEL, _CONFIG, _RECORD = "voice.onnx", "voice.onnx.json", "voice.json"
_RECORD_KEYS = ("licence", "provenance", "added", "model_sha256", "config_sha256")
_RECORD_LIMIT_BYTES = 65_536
_LONGEST = {"licence": 200, "provenance": 4096}  # characters


@dataclass(frozen=True, slots=True)
class StoredVoice:
    """A voice in the store.

    Attributes:
        name: in requests, alone or as `piper:NAME`.
        model: path of the ONNX file; checked against `model_sha256` only by `VoiceStore.open` and `load`.
        config_file: path of Piper's JSON file.
        config: what is in it.
        licence: as whoever added the voice, or the package, says.
        provenance: the path it was copied from, or `package==version`.
        added: when, ISO 8601 in UTC.
        model_sha256: hexadecimal, taken when it was added.
        config_sha256: the same of the JSON file.
    """

    name: str
    model: Path
    config_file: Path
    config: VoiceConfig
    licence: str
    provenance: str
    added: str
    model_sha256: str
    config_sha256: str


@dataclass(frozen=True, slots=True)
class DamagedVoice:
    """An entry of the store that cannot be used, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PackagedVoice:
    """A voice inside an installed distribution; `licence` is "" if its metadata names none."""

    model: Path
    config_file: Path
    licence: str
    provenance: str


class VoiceStore:
    """The voices in one folder. Holds nothing but its path: every call looks anew.

    Args:
        folder: it need not exist before the first voice is added. See `default_folder`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self,
        model: Path,
        config_file: Path | None = None,
        *,
        name: str | None = None,
        licence: str,
        provenance: str,
        replace: bool = False,
    ) -> StoredVoice:
        """Check a voice and copy it into the store.

        Args:
            model: the `.onnx` file.
            config_file: its JSON file; None for the model's path with `.json` appended.
            name: for requests; None for the model's file name in lower case.
            licence: one line.
            provenance: one line.
            replace: the voice of that name, if there is one.

        Raises:
            InvalidRequest: the name is taken or no name, or a line is empty or more than a line.
            VoiceFileError: a file is missing, damaged, hostile or no Piper voice. Nothing was stored.
            OSError: the folder cannot be written.
        """
        name = _checked_name((model.stem if name is None else name).lower())
        if name == _RESERVED:
            raise InvalidRequest(f"No voice can be named {_RESERVED}. Say another name: --name NAME", param="name")
        licence, provenance = _line("licence", licence), _line("provenance", provenance)
        self._check_free(name, replace=replace)
        config_file = model.with_name(f"{model.name}.json") if config_file is None else config_file
        # Read once: what is checked is what is stored, whatever happens to the files meanwhile.
        config_data = loading.contents(config_file, config.LIMIT_BYTES)
        voice = loading.parse_config(config_data, config_file)
        model_data = loading.contents(model, loading.LIMIT_BYTES)
        loading.parse_model(model_data, voice, model)
        record = {
            "licence": licence,
            "provenance": provenance,
            "added": datetime.now(UTC).isoformat(timespec="seconds"),
            "model_sha256": sha256(model_data).hexdigest(),
            "config_sha256": sha256(config_data).hexdigest(),
        }
        self._place(
            name,
            {
                _MODEL: model_data,
                _CONFIG: config_data,
                _RECORD: json.dumps(record, ensure_ascii=False, indent=2).encode() + b"\n",
            },
            replace=replace,
        )
        return self.get(name)

    def list(self) -> tuple[StoredVoice | DamagedVoice, ...]:
        """Every entry by name. No model is read, so one with changed bytes is found only when it is opened.

        Raises:
            OSError: the folder cannot be read.
        """
        if not self.folder.is_dir():
            return ()
        found: list[StoredVoice | DamagedVoice] = []
        for name in sorted(path.name for path in self.folder.iterdir() if _NAME.fullmatch(path.name)):
            try:
                found.append(self._entry(name))
            except VoiceFileError as error:
                found.append(DamagedVoice(name, error.message))
        return tuple(found)

    def get(self, name: str) -> StoredVoice:
        """One voice, by its name or `piper:NAME`. Its model is not read.

        Raises:
            InvalidRequest: no voice can have such a name.
            UnknownVoice: it is not there; the message lists those that are.
            VoiceFileError: it is damaged.
        """
        return self._entry(self._known(name))

    def open(self, name: str) -> StoredVoice:
        """As `get`, and both files are those that were added: their SHA-256 is taken anew.

        Raises:
            LegatoError: as for `get`.
            VoiceFileError: the model is not the one that was added.
        """
        voice = self.get(name)
        _check_hash(voice.name, "model", loading.sha256(voice.model, root=voice.model.parent), voice.model_sha256)
        return voice

    def load(self, name: str) -> tuple[onnx.ModelProto, StoredVoice]:
        """Read a voice to speak with: the bytes that are hashed are the bytes that are checked and returned.

        Raises:
            LegatoError: as for `open`.
        """
        voice = self.get(name)
        data = loading.contents(voice.model, loading.LIMIT_BYTES, root=voice.model.parent)
        _check_hash(voice.name, "model", sha256(data).hexdigest(), voice.model_sha256)
        return loading.parse_model(data, voice.config, voice.model), voice

    def remove(self, name: str) -> str:
        """Delete a voice, damaged or not, and return its plain name. Nothing outside the folder is touched.

        Raises:
            InvalidRequest: no voice can have such a name.
            UnknownVoice: it is not there; the message lists those that are.
            OSError: the folder cannot be written.
        """
        name = self._known(name)
        with TemporaryDirectory(prefix=".removing-", dir=self.folder) as hidden:
            # A rename takes a symbolic link itself, and the voice is gone at once.
            (self.folder / name).rename(Path(hidden) / "old")
        return name

    def _known(self, name: str) -> str:
        name = _checked_name(name.removeprefix("piper:").lower())
        if not os.path.lexists(self.folder / name):
            names = ", ".join(voice.name for voice in self.list()) or "none"
            raise UnknownVoice(f"No Piper voice named {name} was added. Added voices: {names}.", param="voice")
        return name

    def _check_free(self, name: str, *, replace: bool) -> None:
        if not replace and os.path.lexists(self.folder / name):
            raise InvalidRequest(
                f"There is a Piper voice named {name} already. Say --replace, or another name: --name NAME",
                param="name",
            )

    def _entry(self, name: str) -> StoredVoice:
        folder = self.folder / name
        if folder.is_symlink() or not folder.is_dir():
            raise VoiceFileError(f"The voice {name} is damaged: {folder} is no folder. {_repair(name)}")
        try:
            record = _record(loading.contents(folder / _RECORD, _RECORD_LIMIT_BYTES, root=folder))
            data = loading.contents(folder / _CONFIG, config.LIMIT_BYTES, root=folder)
            _check_hash(name, "JSON file", sha256(data).hexdigest(), record["config_sha256"])
            voice = loading.parse_config(data, folder / _CONFIG)
            loading.check_file(folder / _MODEL, loading.LIMIT_BYTES, root=folder)
        except VoiceFileError as error:
            raise VoiceFileError(f"The voice {name} is damaged: {error.message} {_repair(name)}") from error
        return StoredVoice(name=name, model=folder / _MODEL, config_file=folder / _CONFIG, config=voice, **record)

    def _place(self, name: str, files: Mapping[str, bytes], *, replace: bool) -> None:
        """Write the files to a hidden folder and rename it; a voice that it replaces is moved away just before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        target = self.folder / name
        with TemporaryDirectory(prefix=".adding-", dir=self.folder) as hidden:
            new, old = Path(hidden) / "new", Path(hidden) / "old"
            new.mkdir()
            for file, data in files.items():
                (new / file).write_bytes(data)
            self._check_free(name, replace=replace)  # again: checking a model takes a while
            if not os.path.lexists(target):
                new.rename(target)
                return
            target.rename(old)
            try:
                new.rename(target)
            except OSError:
                old.rename(target)
                raise


def default_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where voices are kept: `$LEGATO_VOICES`, or `legato/voices` where the system keeps a user's data."""
    if chosen := environment.get("LEGATO_VOICES"):
        return Path(chosen).expanduser()
    data = environment.get("XDG_DATA_HOME", "")
    if not Path(data).is_absolute():  # the standard says to ignore it then
        match platform:
            case "win32":
                data = environment.get("LOCALAPPDATA") or "~/AppData/Local"
            case "darwin":
                data = "~/Library/Application Support"
            case _:
                data = "~/.local/share"
    return Path(data).expanduser() / "legato" / "voices"


def from_package(name: str) -> PackagedVoice:
    """Find the one Piper voice in an installed distribution.

    Raises:
        VoiceFileError: it is not installed, or holds no voice or several; the message lists those.
    """
    try:
        package = distribution(name)
    except (PackageNotFoundError, ValueError) as error:  # ValueError: an empty name
        raise VoiceFileError(f"No package {name[:100]!a} is installed in this Python. Install it first.") from error
    files = {str(file): Path(str(package.locate_file(file))) for file in package.files or ()}
    models = [files[file] for file in sorted(files) if file.endswith(".onnx") and f"{file}.json" in files]
    if not models:
        raise VoiceFileError(f"The package {name} holds no Piper voice: a .onnx file with its .onnx.json beside it.")
    if len(models) > 1:
        raise VoiceFileError(
            f"The package {name} holds {len(models)} voices. Add one by its path: legato voices add PATH. "
            f"They are: {', '.join(map(str, models))}"
        )
    return PackagedVoice(
        model=models[0],
        config_file=models[0].with_name(f"{models[0].name}.json"),
        licence=_licence(package),
        provenance=f"{package.name}=={package.version}",
    )


def _licence(package: Distribution) -> str:
    """What the metadata says, if that is a line: License-Expression, License, then the classifiers."""
    said = [value for key in ("License-Expression", "License") for value in package.metadata.get_all(key) or ()]
    classifiers = package.metadata.get_all("Classifier") or ()
    said += [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License :: ")]
    usable = [line.strip() for line in said if line.isprintable() and len(line) <= _LONGEST["licence"]]
    return next((line for line in usable if line not in ("", "UNKNOWN")), "")


def _line(key: str, text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > _LONGEST[key]:
        raise InvalidRequest(f"The {key} must be one line of 1 to {_LONGEST[key]} characters.", param=key)
    return text.strip()


def _record(data: bytes) -> dict[str, str]:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        record = None
    if (
        not isinstance(record, dict)
        or set(record) != set(_RECORD_KEYS)
        or not all(isinstance(value, str) and value.isprintable() for value in record.values())
    ):
        raise VoiceFileError(f"its record {_RECORD} is not one that Legato wrote.")
    return record


def _check_hash(name: str, what: str, found: str, expected: str) -> None:
    if found != expected:
        raise VoiceFileError(
            f"The {what} of the voice {name} is not the one that was added (SHA-256 {found[:16]}…, "
            f"expected {expected[:16]}…). Nothing was loaded. {_repair(name)}"
        )


def _repair(name: str) -> str:
    return f"Run: legato voices remove {name}, and add it again."


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:80]!a} cannot be the name of a voice: 1 to 64 of a-z, 0-9, - and _, the first a letter or digit. "
            "When adding one, say another: --name NAME",
            param="voice",
        )
    return name
