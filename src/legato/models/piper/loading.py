"""Reads the two files of a Piper voice. Both are untrusted: nothing is run, or given to onnxruntime, before all checks.

An ONNX file can name other files to be read as weights (external data), and operators from elsewhere (custom domains,
local functions). A Piper voice needs neither, so a file with one of them is refused whole, wherever in it they stand.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

import onnx
from google.protobuf.message import DecodeError

from legato.errors import VoiceFileError
from legato.models.piper import config
from legato.models.piper.config import VoiceConfig

LIMIT_BYTES = 512 * 2**20
"""Largest model: those of the highest quality have some 115 MB."""

_DOMAINS = ("", "ai.onnx")
_INPUTS = {
    "input": onnx.TensorProto.INT64,
    "input_lengths": onnx.TensorProto.INT64,
    "scales": onnx.TensorProto.FLOAT,
}
_SPEAKER = {"sid": onnx.TensorProto.INT64}
_TENSOR_TYPES = {
    getattr(onnx.TensorProto, name)
    for name in "FLOAT FLOAT16 DOUBLE BOOL INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64".split()
}
_REFUSED = {
    "FunctionProto": "it defines functions of its own",
    "TrainingInfoProto": "it holds training information",
    "SparseTensorProto": "it holds sparse tensors, which may unpack to any size",
}
_ORT_MARK = b"ORTM"  # at byte 4 it makes onnxruntime read the file in another format than the one checked here


def read(model_path: Path, config_path: Path, *, root: Path | None = None) -> tuple[onnx.ModelProto, VoiceConfig]:
    """Check and read a voice.

    Args:
        model_path: the `.onnx` file.
        config_path: the `.onnx.json` file.
        root: a folder that both must lie in, after symbolic links are followed; None for anywhere.

    Raises:
        VoiceFileError: a file is missing, truncated, hostile or no Piper voice. The message names the file.
    """
    voice = parse_config(contents(config_path, config.LIMIT_BYTES, root=root), config_path)
    return parse_model(contents(model_path, LIMIT_BYTES, root=root), voice, model_path), voice


def sha256(path: Path, *, root: Path | None = None) -> str:
    """Hexadecimal SHA-256 of a model or its JSON file, read in small pieces.

    Raises:
        VoiceFileError: as for `contents`.
    """
    with _opened(path, LIMIT_BYTES, root) as (file, _):
        return hashlib.file_digest(file, "sha256").hexdigest()


def contents(path: Path, limit_bytes: int, *, root: Path | None = None) -> bytes:
    """The bytes of a regular file.

    Raises:
        VoiceFileError: it cannot be read, is larger than `limit_bytes`, no regular file, or outside `root`.
    """
    with _opened(path, limit_bytes, root) as (file, size):
        return file.read(size)


def check_file(path: Path, limit_bytes: int, *, root: Path | None = None) -> None:
    """Check a file as `contents` does, and read nothing.

    Raises:
        VoiceFileError: as for `contents`.
    """
    with _opened(path, limit_bytes, root):
        pass


def parse_config(data: bytes, path: Path) -> VoiceConfig:
    """Check and read the JSON file; `path` is for messages.

    Raises:
        VoiceFileError: see `legato.models.piper.config.parse`.
    """
    try:
        return config.parse(data)
    except VoiceFileError as error:
        raise VoiceFileError(f"{_shown(path)}: {error.message}") from error


def parse_model(data: bytes, voice: VoiceConfig, path: Path) -> onnx.ModelProto:
    """Check and read the model; `path` is for messages.

    Raises:
        VoiceFileError: it is truncated, hostile, no Piper voice, or not the one that `voice` describes.
    """
    try:
        return _model(data, voice)
    except VoiceFileError as error:
        raise VoiceFileError(f"{_shown(path)}: {error.message}") from error


@contextmanager
def _opened(path: Path, limit_bytes: int, root: Path | None) -> Iterator[tuple[BufferedReader, int]]:
    """Open a regular file and give its size; a pipe or device is not waited for."""
    try:
        real = path.resolve(strict=True)
        if root is not None and not real.is_relative_to(root.resolve()):
            raise VoiceFileError(f"{_shown(path)} leads out of the voice folder {_shown(root)}. Nothing was loaded.")
        with open(real, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise VoiceFileError(f"{_shown(path)} is not a regular file. Nothing was loaded.")
            if status.st_size > limit_bytes:
                raise VoiceFileError(
                    f"{_shown(path)} has {status.st_size} bytes, more than the {limit_bytes} of the largest voice. "
                    "Nothing was loaded."
                )
            yield file, status.st_size
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle of links, up to Python 3.12
        reason = getattr(error, "strerror", None) or "its symbolic links go in a circle"
        raise VoiceFileError(f"Cannot read the voice file {_shown(path)}: {reason}.") from error


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _model(data: bytes, voice: VoiceConfig) -> onnx.ModelProto:
    if _ORT_MARK in data[:64]:
        _refuse("it is in onnxruntime's own format, or pretends to be")
    try:
        model = onnx.load_from_string(data)
    except DecodeError:
        _refuse("it is truncated, damaged or no ONNX file; download it again")
    # What this version of ONNX does not know, another one might: it goes no further.
    model.DiscardUnknownFields()
    for message in _messages(model):
        _check(message)
    if not model.graph.node or not model.opset_import:
        _refuse("it is truncated or empty; download it again")
    _check_interface(model.graph, voice)
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, RuntimeError, ValueError) as error:  # ValueError: names that are no UTF-8
        # The words are partly the file's own: escaped, so that they cannot steer a terminal.
        _refuse(f"ONNX's checker says {' '.join(str(error).split())[:200]!a}")
    return model


def _messages(message: Any) -> Iterator[Any]:
    """Yield a protobuf message and all those inside it, known place or not. Protobuf bounds the depth (100)."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from _messages(inner)


def _check(message: Any) -> None:
    match kind := message.DESCRIPTOR.name:
        case "TensorProto":
            if message.data_location != onnx.TensorProto.DEFAULT or message.external_data:
                _refuse("it takes weights from another file (external data)")
            if message.data_type not in _TENSOR_TYPES:
                _refuse(f"it holds a tensor of type {message.data_type}, which no voice needs")
        case "NodeProto" | "OperatorSetIdProto":
            if message.domain not in _DOMAINS:
                _refuse(f"it needs operators from {message.domain[:64]!a}; only ONNX's own are allowed")
        case _ if kind in _REFUSED:
            _refuse(_REFUSED[kind])


def _check_interface(graph: Any, voice: VoiceConfig) -> None:
    """Check what goes in and out, and that the JSON file is this model's."""
    expected = _INPUTS | (_SPEAKER if voice.num_speakers > 1 else {})
    found = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    if found.keys() ^ expected.keys() == _SPEAKER.keys():
        _refuse(f"its inputs do not fit the JSON file, which says num_speakers = {voice.num_speakers}")
    if found != expected:
        _refuse(f"it is no Piper voice: its inputs are not {', '.join(expected)} of the usual types")
    if [value.type.tensor_type.elem_type for value in graph.output] != [onnx.TensorProto.FLOAT]:
        _refuse("it is no Piper voice: it must have one output, of float samples")
    rows = {tensor.name: tensor.dims[0] for tensor in graph.initializer if tensor.dims}
    for node in graph.node:
        if node.op_type == "Gather" and list(node.input[1:]) == ["input"] and node.input[0] in rows:
            symbols = rows[node.input[0]]
            if max(map(max, voice.phoneme_id_map.values())) >= symbols:
                _refuse(f"it knows {symbols} phonemes, fewer than the JSON file: that belongs to another voice")


def _refuse(problem: str) -> NoReturn:
    raise VoiceFileError(f"The model was refused, and nothing was loaded: {problem}.")


def _shown(path: Path) -> str:
    """A path for a message; a name may hold what steers a terminal."""
    text = str(path)
    return text if text.isprintable() else ascii(text)
