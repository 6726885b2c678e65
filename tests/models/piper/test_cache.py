"""A cut that comes from the cache is the cut that went in, or none."""

import dataclasses
from pathlib import Path

import pytest

from legato.models.piper.cache import VERSION, CutCache, default_folder
from legato.models.piper.cut import Cut, cut
from tests.models.piper.tiny_vits import tiny_voice

HASH = "0" * 64


@pytest.fixture(scope="module")
def made() -> Cut:
    return cut(tiny_voice(speakers=3)[0])


def entry_of(folder: Path) -> Path:
    return folder / "piper" / f"{HASH}-{VERSION}"


def test_what_was_written_is_read(tmp_path: Path, made: Cut) -> None:
    cache = CutCache(tmp_path / "none" / "yet")
    assert cache.read(HASH) is None
    cache.write(HASH, made)
    assert cache.read(HASH) == made
    assert cache.read("1" * 64) is None
    cache.write(HASH, made)  # again
    assert cache.read(HASH) == made
    assert [path.name for path in (tmp_path / "none" / "yet" / "piper").iterdir()] == [f"{HASH}-{VERSION}"]


@pytest.mark.parametrize("name", ["manifest.json", "0.onnx", "3.onnx"])
@pytest.mark.parametrize("damage", ["missing", "changed", "cut short", "empty"])
def test_a_damaged_entry_is_as_good_as_none(tmp_path: Path, made: Cut, name: str, damage: str) -> None:
    cache = CutCache(tmp_path)
    cache.write(HASH, made)
    file = entry_of(tmp_path) / name
    data = file.read_bytes()
    match damage:
        case "missing":
            file.unlink()
        case "changed":
            file.write_bytes(data.replace(data[:1], bytes([data[0] ^ 1]), 1))
        case "cut short":
            file.write_bytes(data[: len(data) // 2])
        case "empty":
            file.write_bytes(b"")
    assert cache.read(HASH) is None
    cache.write(HASH, made)  # and is replaced
    assert cache.read(HASH) == made


@pytest.mark.parametrize("text", ["null", "[]", "{}", '{"parts": []}', '{"parts": 3}', '{"parts": [{}]}'])
def test_a_manifest_of_another_kind_is_as_good_as_none(tmp_path: Path, made: Cut, text: str) -> None:
    cache = CutCache(tmp_path)
    cache.write(HASH, made)
    (entry_of(tmp_path) / "manifest.json").write_text(text)
    assert cache.read(HASH) is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, made: Cut) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = CutCache(tmp_path / "file")
    cache.write(HASH, made)
    assert cache.read(HASH) is None


def test_equal_means_equal(made: Cut) -> None:
    assert made != dataclasses.replace(made, latent="another")


@pytest.mark.parametrize(
    ("environment", "platform", "folder"),
    [
        ({"LEGATO_CACHE": "/c"}, "linux", Path("/c")),
        ({"XDG_CACHE_HOME": "/x"}, "linux", Path("/x/legato")),
        ({}, "linux", Path.home() / ".cache" / "legato"),
        ({"XDG_CACHE_HOME": "/x"}, "darwin", Path.home() / "Library" / "Caches" / "legato"),
        ({"LOCALAPPDATA": "/l"}, "win32", Path("/l/legato/cache")),
        ({}, "win32", Path.home() / ".cache" / "legato"),
    ],
)
def test_where_it_is(environment: dict[str, str], platform: str, folder: Path) -> None:
    assert default_folder(environment, platform) == folder
