"""`legato voices`: add, list, info, remove, and what each says when it cannot."""

import subprocess
import sys
from pathlib import Path

import pytest

from legato.cli.main import main
from tests.models.piper.test_loading import json_of, voice_files
from tests.models.piper.test_store import package

Capture = pytest.CaptureFixture[str]
COMMAND = [sys.executable, "-c", "import sys; from legato.cli.main import main; sys.exit(main())"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "voices"
    monkeypatch.setenv("LEGATO_VOICES", str(path))
    return path


def out(capsys: Capture, *args: str) -> str:
    assert main(["voices", *args]) == 0
    return capsys.readouterr().out


def error(capsys: Capture, code: int, *args: str) -> str:
    assert main(["voices", *args]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("legato: error: ")
    return line


def facts(text: str) -> dict[str, str]:
    return {line[:13].rstrip(): line[15:] for line in text.splitlines()}


def test_a_round_trip(capsys: Capture, tmp_path: Path, folder: Path) -> None:
    model = voice_files(tmp_path, speakers=12)
    said = out(capsys, "add", str(model), "--licence", "CC0-1.0", "--name", "Tiny")
    first, _, rest = said.split("\n", 2)
    assert first == "Added piper:tiny."
    shown = facts(rest)
    assert shown.pop("added")
    assert len(shown.pop("model SHA-256")) == len(shown.pop("JSON SHA-256")) == 64
    assert shown == {
        "name": "piper:tiny",
        "language": "en-US",
        "sample rate": "22050 Hz",
        "speakers": "12",
        "dataset": "joe",
        "quality": "medium",
        "licence": "CC0-1.0",
        "provenance": str(model),
        "folder": str(folder / "tiny"),
    }
    assert out(capsys, "info", "piper:tiny") == rest
    listed = out(capsys)
    assert listed == out(capsys, "list")
    head, *rows = listed.splitlines()
    assert head.split() == ["NAME", "LANGUAGE", "DESCRIPTION", "LICENCE", "ENGINE"]
    assert rows[0].startswith("heart  en-US")
    assert rows[0].endswith("hibari")
    assert rows[-1].startswith("tiny   en-US     joe, medium, 12 speakers, 22050 Hz  CC0-1.0")
    assert rows[-1].endswith("  piper")
    assert out(capsys, "remove", "tiny") == "Removed piper:tiny.\n"
    assert "tiny" not in out(capsys)


def test_names_of_speakers(capsys: Capture, tmp_path: Path) -> None:
    model = voice_files(tmp_path, speakers=12)
    text = json_of(model).read_text()
    for count, expected in ((2, "12 (s0, s1)"), (11, "12 (s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, ...)")):
        speakers = ", ".join(f'"s{number}": {number}' for number in range(count))
        json_of(model).write_text(text.replace('"speaker_id_map": {}', f'"speaker_id_map": {{{speakers}}}'))
        said = out(capsys, "add", str(model), "--licence", "MIT", "--replace")
        assert facts(said)["speakers"] == expected


def test_from_a_package(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path / "site", metadata="License-Expression: MIT\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    shown = facts(out(capsys, "add", "--package", "fake-voice"))
    assert (shown["name"], shown["licence"]) == ("piper:en_us-fake0-low", "MIT")
    assert shown["provenance"] == "fake-voice==1.2"
    shown = facts(out(capsys, "add", "--package", "fake-voice", "--license", "CC0-1.0", "--replace"))
    assert shown["licence"] == "CC0-1.0"


def test_a_licence_must_be_known(
    capsys: Capture, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    for source in ([str(voice_files(tmp_path))], ["--package", "fake-voice"], [str(tmp_path), "--licence", ""]):
        line = error(capsys, 2, "add", *source)
        assert "The licence of this voice is not known" in line
        assert "--licence TEXT" in line
    assert not folder.exists()


def test_what_cannot_be_done(capsys: Capture, tmp_path: Path, folder: Path) -> None:
    model = voice_files(tmp_path)
    mit = ("--licence", "MIT")
    assert "No such file" in error(capsys, 3, "add", str(tmp_path / "none.onnx"), *mit)
    assert "No package 'no-such-package'" in error(capsys, 3, "add", "--package", "no-such-package")
    assert "cannot be the name" in error(capsys, 2, "add", str(model), *mit, "--name", "../tiny")
    out(capsys, "add", str(model), *mit, "--name", "tiny")
    assert "--replace" in error(capsys, 2, "add", str(model), *mit, "--name", "tiny")
    assert "Added voices: tiny" in error(capsys, 2, "info", "joe")
    assert "Added voices: tiny" in error(capsys, 2, "remove", "joe")
    assert "cannot be the name" in error(capsys, 2, "remove", "..")
    (folder / "tiny" / "voice.onnx").write_bytes(b"")
    assert "is not the one that was added" in error(capsys, 3, "info", "tiny")
    (folder / "tiny" / "voice.onnx").unlink()
    assert "damaged" in error(capsys, 3, "info", "tiny")
    row = out(capsys).splitlines()[-1]
    assert row.split() == ["tiny", "-", "damaged:", "legato", "voices", "info", "tiny", "-", "piper"]
    model.write_bytes(model.read_bytes()[:-1])
    assert "The model was refused" in error(capsys, 3, "add", str(model), *mit)


@pytest.mark.parametrize("args", [["add"], ["add", "a.onnx", "--package", "b"], ["info"], ["remove"], ["sing"]])
def test_wrong_use(capsys: Capture, args: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["voices", *args])
    assert stopped.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(capsys: Capture, tmp_path: Path, folder: Path) -> None:
    folder.write_text("a file in its place")
    line = error(capsys, 1, "add", str(voice_files(tmp_path)), "--licence", "MIT")
    assert str(folder) in line


def test_listing_reads_no_model(capsys: Capture, tmp_path: Path, folder: Path) -> None:
    out(capsys, "add", str(voice_files(tmp_path)), "--licence", "MIT")
    (folder / "en_us-tiny-low" / "voice.onnx").write_bytes(b"no model")
    assert "joe, medium, 22050 Hz" in out(capsys)


def test_as_a_process(tmp_path: Path) -> None:
    add = [*COMMAND, "voices", "add", str(voice_files(tmp_path)), "--licence", "MIT"]
    for code in (0, 2):
        assert subprocess.run(add, capture_output=True, timeout=60, check=False).returncode == code
    done = subprocess.run([*COMMAND, "voices", "info", "en_US-tiny-low"], capture_output=True, timeout=60, check=True)
    assert b"piper:en_us-tiny-low" in done.stdout
