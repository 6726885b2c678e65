"""The folder of voices: whole or not there, never left, and one bad entry harms no other."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from legato.errors import InvalidRequest, UnknownVoice, VoiceFileError
from legato.models.piper import loading
from legato.models.piper.store import DamagedVoice, PackagedVoice, StoredVoice, VoiceStore, default_folder, from_package
from tests.models.piper.test_loading import json_of, voice_files


@pytest.fixture
def store(tmp_path: Path) -> VoiceStore:
    return VoiceStore(tmp_path / "data" / "voices")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return voice_files(tmp_path)


def add(store: VoiceStore, model: Path, name: str | None = None, *, replace: bool = False) -> StoredVoice:
    return store.add(model, name=name, licence="CC0-1.0", provenance=str(model), replace=replace)


def left_over(store: VoiceStore) -> list[str]:
    return [path.name for path in store.folder.iterdir() if path.name.startswith(".")]


def test_a_voice_goes_in_and_out(store: VoiceStore, tiny: Path) -> None:
    assert store.list() == ()
    added = store.add(tiny, licence=" CC0-1.0 ", provenance="from/a/path ")
    assert (added.name, added.licence, added.provenance) == ("en_us-tiny-low", "CC0-1.0", "from/a/path")
    assert added.model == store.folder / "en_us-tiny-low" / "voice.onnx"
    assert added.model.read_bytes() == tiny.read_bytes()
    assert added.config_file.read_bytes() == json_of(tiny).read_bytes()
    assert added.model_sha256 == sha256(tiny.read_bytes()).hexdigest()
    assert added.config_sha256 == sha256(json_of(tiny).read_bytes()).hexdigest()
    assert added.config.sample_rate == 22050
    assert added.added.endswith("+00:00")
    for name in (added.name, f"piper:{added.name}", "EN_US-tiny-low"):
        assert store.get(name) == store.open(name) == added
    assert store.list() == (added,)
    model, voice = store.load(added.name)
    assert (model.SerializeToString(), voice) == (tiny.read_bytes(), added)
    assert sorted(path.name for path in added.model.parent.iterdir()) == ["voice.json", "voice.onnx", "voice.onnx.json"]
    assert store.remove(f"piper:{added.name}") == added.name
    assert store.list() == ()
    assert list(store.folder.iterdir()) == []


def test_the_json_file_may_lie_elsewhere(store: VoiceStore, tiny: Path, tmp_path: Path) -> None:
    other = json_of(tiny).rename(tmp_path / "other.json")
    store.add(tiny, other, licence="MIT", provenance="here")
    with pytest.raises(VoiceFileError, match=r"low\.onnx\.json: No such file"):
        add(store, tiny, "second")
    assert [voice.name for voice in store.list()] == ["en_us-tiny-low"]


def test_a_taken_name(store: VoiceStore, tiny: Path) -> None:
    first = add(store, tiny, "joe")
    with pytest.raises(InvalidRequest, match=r"named joe already\. Say --replace"):
        store.add(tiny, name="joe", licence="MIT", provenance="again")
    assert store.get("joe") == first
    assert store.add(tiny, name="joe", licence="MIT", provenance="again", replace=True).licence == "MIT"
    assert store.open("joe").provenance == "again"
    assert len(store.list()) == 1
    assert left_over(store) == []


def test_a_name_taken_while_the_model_is_checked(
    store: VoiceStore, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = loading.parse_model

    def slow(*args: object) -> object:
        (store.folder / "joe").mkdir(parents=True)
        return check(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(loading, "parse_model", slow)
    with pytest.raises(InvalidRequest, match="named joe already"):
        add(store, tiny, "joe")
    assert left_over(store) == []


def test_a_failed_replacement_brings_the_old_one_back(
    store: VoiceStore, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = add(store, tiny, "joe")
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="No space left"):
        add(store, tiny, "joe", replace=True)
    assert store.open("joe") == first
    assert left_over(store) == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../joe",
        "a/b",
        "/etc/passwd",
        "a\\b",
        "-a",
        "_a",
        "a.b",
        "a b",
        "a\0",
        "a\n",
        "é",
        "a" * 65,
        ".a",
    ],
)
def test_no_name_leaves_the_folder(store: VoiceStore, tiny: Path, name: str) -> None:
    for use in (store.get, store.open, store.load, store.remove, lambda name: add(store, tiny, name)):
        with pytest.raises(InvalidRequest, match="cannot be the name of a voice") as caught:
            use(name)
        assert caught.value.message.isprintable()
    assert not store.folder.exists()
    assert tiny.exists()


def test_the_name_that_requests_use_for_any_voice(store: VoiceStore, tiny: Path) -> None:
    with pytest.raises(InvalidRequest, match="No voice can be named default"):
        add(store, tiny, "Default")


@pytest.mark.parametrize("text", ["", "  ", "two\nlines", "\x1b[2J", "x" * 5000])
def test_licence_and_provenance_are_a_line_each(store: VoiceStore, tiny: Path, text: str) -> None:
    with pytest.raises(InvalidRequest, match="licence must be one line"):
        store.add(tiny, licence=text, provenance="here")
    with pytest.raises(InvalidRequest, match="provenance must be one line"):
        store.add(tiny, licence="MIT", provenance=text)


def test_an_unknown_voice(store: VoiceStore, tiny: Path) -> None:
    with pytest.raises(UnknownVoice, match=r"No Piper voice named joe was added\. Added voices: none"):
        store.get("piper:joe")
    add(store, tiny, "ann")
    for use in (store.get, store.open, store.load, store.remove):
        with pytest.raises(UnknownVoice, match="Added voices: ann"):
            use("joe")


def test_what_is_refused_leaves_nothing(store: VoiceStore, tiny: Path) -> None:
    tiny.write_bytes(tiny.read_bytes()[:-1])
    with pytest.raises(VoiceFileError, match="The model was refused"):
        add(store, tiny)
    assert not store.folder.exists()


def test_one_damaged_voice_harms_no_other(store: VoiceStore, tiny: Path, tmp_path: Path) -> None:
    names = "a-config b-gone c-link d-outside e-record f-list g-nul h-keys i-values j-deep k-sparse".split()
    voices = {name: add(store, tiny, name) for name in [*names, "z-good"]}
    records = {name: voice.model.with_name("voice.json") for name, voice in voices.items()}
    voices["a-config"].config_file.write_bytes(json_of(tiny).read_bytes() + b"\n")
    voices["b-gone"].model.unlink()
    voices["c-link"].model.unlink()
    voices["c-link"].model.symlink_to(voices["z-good"].model)
    voices["d-outside"].model.unlink()
    voices["d-outside"].model.symlink_to(tiny)
    records["e-record"].write_text("{")
    records["f-list"].write_text("[]")
    records["g-nul"].unlink()
    records["h-keys"].write_text("{}")
    record = json.loads(records["i-values"].read_text())
    records["i-values"].write_text(json.dumps(record | {"licence": "\x1b[2J"}))
    records["j-deep"].write_text("[" * 30_000)
    with voices["k-sparse"].model.open("r+b") as file:
        file.truncate(loading.LIMIT_BYTES + 1)
    (store.folder / "l-file").write_text("no folder")
    (store.folder / "m-linked").symlink_to(store.folder / "z-good")
    (store.folder / "n-dangling").symlink_to(tmp_path / "nowhere")
    (store.folder / "README.md").write_text("no voice")
    (store.folder / ".adding-123").mkdir()
    *damaged, good = store.list()
    assert good == voices["z-good"]
    reasons = {voice.name: voice.reason for voice in damaged if isinstance(voice, DamagedVoice)}
    expected = {
        "a-config": "JSON file .* not the one that was added",
        "b-gone": "No such file",
        "c-link": "leads out of the voice folder",
        "d-outside": "leads out of the voice folder",
        "e-record": "not one that Legato wrote",
        "f-list": "not one that Legato wrote",
        "g-nul": r"voice\.json: No such file",
        "h-keys": "not one that Legato wrote",
        "i-values": "not one that Legato wrote",
        "j-deep": "not one that Legato wrote",
        "k-sparse": "536870913 bytes",
        "l-file": "is no folder",
        "m-linked": "is no folder",
        "n-dangling": "is no folder",
    }
    assert list(reasons) == list(expected)
    for name, message in expected.items():
        for use in (store.get, store.open, store.load):
            with pytest.raises(VoiceFileError, match=message) as caught:
                use(name)
            assert caught.value.message == reasons[name]
        assert f"legato voices remove {name}" in reasons[name]
        store.remove(name)
    assert store.list() == (store.open("z-good"),)
    assert tiny.exists()


def test_changed_bytes_are_found_when_a_voice_is_opened(store: VoiceStore, tiny: Path) -> None:
    voice = add(store, tiny, "joe")
    data = bytearray(voice.model.read_bytes())
    data[-20] ^= 1
    voice.model.write_bytes(data)
    assert store.list() == (voice,)  # no model was read
    for use in (store.open, store.load):
        with pytest.raises(VoiceFileError, match=r"The model of the voice joe is not the one .* Nothing was loaded"):
            use("joe")


def test_a_damaged_voice_can_be_replaced(store: VoiceStore, tiny: Path, tmp_path: Path) -> None:
    store.folder.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (store.folder / "joe").symlink_to(elsewhere)
    add(store, tiny, "joe", replace=True)
    assert store.open("joe").model.parent.resolve() == (store.folder / "joe").resolve()
    assert (elsewhere / "kept").exists()


HOME = str(Path.home())


@pytest.mark.parametrize(
    ("environment", "platform", "folder"),
    [
        ({"LEGATO_VOICES": "/srv/voices", "XDG_DATA_HOME": "/x"}, "linux", "/srv/voices"),
        ({"LEGATO_VOICES": "~/voices"}, "win32", f"{HOME}/voices"),
        ({"LEGATO_VOICES": "", "XDG_DATA_HOME": "/x"}, "linux", "/x/legato/voices"),
        ({"XDG_DATA_HOME": "relative"}, "linux", f"{HOME}/.local/share/legato/voices"),
        ({}, "linux", f"{HOME}/.local/share/legato/voices"),
        ({}, "darwin", f"{HOME}/Library/Application Support/legato/voices"),
        ({}, "win32", f"{HOME}/AppData/Local/legato/voices"),
        ({"LOCALAPPDATA": "/c/data"}, "win32", "/c/data/legato/voices"),
    ],
)
def test_default_folder(environment: dict[str, str], platform: str, folder: str) -> None:
    assert default_folder(environment, platform) == Path(folder)


def package(site: Path, *, metadata: str = "", record: list[str] | None = None, voices: int = 1) -> None:
    """Lay out an installed distribution `fake-voice==1.2` in a folder."""
    data = site / "fake_voice" / "data"
    data.mkdir(parents=True)
    files = ["fake_voice/MODEL_CARD"]
    for number in range(voices):
        model = voice_files(data, f"en_US-fake{number}-low")
        files += [str(path.relative_to(site)) for path in (model, json_of(model))]
    info = site / "fake_voice-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: fake-voice\nVersion: 1.2\n{metadata}")
    if record is None or record:
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in record or files))


def found(monkeypatch: pytest.MonkeyPatch, site: Path) -> PackagedVoice:
    monkeypatch.syspath_prepend(site)
    return from_package("Fake_Voice")


def test_a_voice_in_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: VoiceStore) -> None:
    package(tmp_path / "site", metadata="License-Expression: CC0-1.0\nLicense: other\n")
    voice = found(monkeypatch, tmp_path / "site")
    model = tmp_path / "site/fake_voice/data/en_US-fake0-low.onnx"
    assert voice == PackagedVoice(model, json_of(model), "CC0-1.0", "fake-voice==1.2")
    stored = store.add(voice.model, voice.config_file, licence=voice.licence, provenance=voice.provenance)
    assert (stored.name, stored.provenance) == ("en_us-fake0-low", "fake-voice==1.2")


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("", ""),
        ("License: UNKNOWN\n", ""),
        ("License: MIT\n", "MIT"),
        (f"License: {'x' * 201}\nClassifier: License :: OSI Approved :: MIT License\n", "MIT License"),
        ("License: Permission is granted\n        to anyone.\nClassifier: Topic :: Software\n", ""),
    ],
)
def test_the_licence_of_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, metadata: str, licence: str) -> None:
    package(tmp_path, metadata=metadata)
    assert found(monkeypatch, tmp_path).licence == licence


def test_packages_without_one_voice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("", "no-such-package-at-all", "\x1b[2J"):
        with pytest.raises(VoiceFileError, match="is installed in this Python") as caught:
            from_package(name)
        assert caught.value.message.isprintable()
    package(tmp_path / "two", voices=2)
    with pytest.raises(VoiceFileError, match=r"holds 2 voices\. .*fake0-low\.onnx, .*fake1-low\.onnx"):
        found(monkeypatch, tmp_path / "two")
    package(tmp_path / "lone", record=["fake_voice/data/en_US-fake0-low.onnx"])
    with pytest.raises(VoiceFileError, match="holds no Piper voice"):
        found(monkeypatch, tmp_path / "lone")
    package(tmp_path / "unrecorded", record=[])
    with pytest.raises(VoiceFileError, match="holds no Piper voice"):
        found(monkeypatch, tmp_path / "unrecorded")
