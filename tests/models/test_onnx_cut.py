"""Cutting a graph: what depends on what, and that a part computes what the whole does."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from legato.models.onnx_cut import Cutter, Part, is_random, reads
from legato.models.session import Session

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, int],
    outputs: Sequence[str],
    constants: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "whole",
        [helper.make_tensor_value_info(name, kind, ["n"]) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def floats(name: str, *values: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.float32), name)


def sample() -> onnx.ModelProto:
    """Names run backwards, so that nothing can rest on their order.

    z (float), k (int64)
    y = z * weight;  x = y + two (a Constant);  w, v = split(x);  u = clip(w, "", top);  t = float(k) + u
    s = noise like t;  r = s * t;  q = -v
    """
    node = helper.make_node
    return model(
        [
            node("Constant", [], ["two"], value=floats("", 2.0)),
            node("Mul", ["two", "weight"], ["four"]),
            node("Mul", ["z", "weight"], ["y"]),
            node("Add", ["y", "four"], ["x"]),
            node("Split", ["x"], ["w", "v"], axis=0),
            node("Clip", ["w", "", "top"], ["u"]),
            node("Cast", ["k"], ["kf"], to=FLOAT),
            node("Add", ["kf", "u"], ["t"]),
            node("RandomNormalLike", ["t"], ["s"]),
            node("Mul", ["s", "t"], ["r"]),
            node("Neg", ["v"], ["q"]),
        ],
        {"z": FLOAT, "k": INT64},
        ["r", "q"],
        [floats("weight", 2.0), numpy_helper.from_array(np.float32(3.0), "top"), floats("unused", 1.0)],
    )


def made_by(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    return [node.output[0] for node in nodes]


def run(part: Part, **feed: np.ndarray) -> list[np.ndarray]:
    assert set(part.inputs) == feed.keys()
    return Session(part.model).run(part.outputs, feed)


def test_what_a_graph_has() -> None:
    cutter = Cutter(sample())
    assert cutter.graph_inputs == ("z", "k")
    assert cutter.graph_outputs == ("r", "q")
    assert cutter.constants.keys() == {"weight", "top", "unused"}
    assert cutter.producer["v"] is cutter.producer["w"]
    assert "" not in cutter.producer
    assert "weight" not in cutter.producer


def test_a_weight_that_is_listed_as_an_input_is_none() -> None:
    whole = sample()
    whole.graph.input.append(helper.make_tensor_value_info("weight", FLOAT, [1]))
    cutter = Cutter(whole)
    assert cutter.graph_inputs == ("z", "k")
    assert cutter.part(["y"], []).inputs == ("z",)


def test_dependents() -> None:
    cutter = Cutter(sample())
    assert cutter.dependents(["y"]) == {"y", "x", "w", "v", "u", "t", "s", "r", "q"}
    assert cutter.dependents(["k"]) == {"k", "kf", "t", "s", "r"}
    assert cutter.dependents(["s", "v"]) == {"s", "r", "v", "q"}
    assert cutter.dependents(["q"]) == {"q"}
    assert cutter.dependents(iter(["top"])) == {"top", "u", "t", "s", "r"}
    assert cutter.dependents([]) == set()


def test_needed_is_in_the_order_of_the_graph() -> None:
    cutter = Cutter(sample())
    assert made_by(cutter.needed(["q"])) == ["two", "four", "y", "x", "w", "q"]
    assert made_by(cutter.needed(["q", "u"], ["x"])) == ["w", "u", "q"]
    assert made_by(cutter.needed(["r"], ["t"])) == ["s", "r"]
    assert made_by(cutter.needed(["r"], ["t", "s"])) == ["r"]
    assert cutter.needed(["t"], ["t"]) == []
    assert cutter.needed(["z", "weight"]) == []


def test_what_is_fixed() -> None:
    cutter = Cutter(sample())
    fixed = {name for name in (*cutter.producer, *cutter.constants, *cutter.graph_inputs) if cutter.is_fixed(name)}
    assert fixed == {"two", "four", "weight", "top", "unused"}


@pytest.mark.parametrize("kind", ["RandomNormal", "RandomUniform", "RandomNormalLike", "Bernoulli"])
def test_what_is_drawn_is_never_fixed(kind: str) -> None:
    like = [] if kind in ("RandomNormal", "RandomUniform") else ["half"]
    shape = {} if like else {"shape": [1]}
    draw = helper.make_node(kind, like, ["drawn"], **shape)
    nodes = [draw, helper.make_node("Add", ["drawn", "half"], ["later"])]
    cutter = Cutter(model(nodes, {}, ["later"], [floats("half", 0.5)]))
    assert is_random(draw)
    assert cutter.is_fixed("half")
    assert not cutter.is_fixed("drawn")
    assert not cutter.is_fixed("later")


def test_values() -> None:
    cutter = Cutter(sample())
    np.testing.assert_array_equal(cutter.value("two"), np.float32([2]))
    np.testing.assert_array_equal(cutter.value("weight"), np.float32([2]))
    assert cutter.value("top").shape == ()
    for name in ("four", "y", "z", "", "nothing"):  # computed, given, or not there
        assert cutter.value(name) is None


def test_a_constant_in_another_form_has_no_value_but_is_fixed() -> None:
    nodes = [helper.make_node("Constant", [], ["c"], value_float=1.0), helper.make_node("Add", ["z", "c"], ["y"])]
    cutter = Cutter(model(nodes, {"z": FLOAT}, ["y"]))
    assert cutter.value("c") is None
    assert cutter.is_fixed("c")


def test_parts_compute_what_the_whole_does() -> None:
    whole = sample()
    names = ["y", "x", "w", "v", "u", "t"]
    whole.graph.output.extend(helper.make_tensor_value_info(name, FLOAT, None) for name in names)
    z, k = np.linspace(-3, 3, 8, dtype=np.float32), np.arange(4)
    values = dict(zip(names, Session(whole.SerializeToString()).run(names, {"z": z, "k": k}), strict=True))
    cutter = Cutter(sample())

    (got,) = run(cutter.part(["t"], []), z=z, k=k)
    np.testing.assert_array_equal(got, values["t"])
    v, x = run(cutter.part(["v", "x"], ["y"]), y=values["y"])  # the order asked for, not that of the graph
    np.testing.assert_array_equal(v, values["v"])
    np.testing.assert_array_equal(x, values["x"])
    (u,) = run(cutter.part(["u"], ["w"]), w=values["w"])
    np.testing.assert_array_equal(u, values["u"])
    noise = np.full(4, 0.5, np.float32)
    (r,) = run(cutter.part(["r"], ["s", "t"]), s=noise, t=values["t"])
    np.testing.assert_array_equal(r, noise * values["t"])


def test_a_part_holds_only_what_it_needs() -> None:
    cutter = Cutter(sample())
    part = cutter.part(["t"], ["u"])
    assert (part.inputs, part.outputs) == (("k", "u"), ("t",))
    graph = onnx.load_from_string(part.model).graph
    assert made_by(graph.node) == ["kf", "t"]
    assert not graph.initializer
    kinds = {item.name: item.type.tensor_type.elem_type for item in (*graph.input, *graph.output)}
    assert kinds == {"k": INT64, "u": FLOAT, "t": FLOAT}


def test_a_part_takes_other_sizes_than_the_whole_was_made_for() -> None:
    whole = sample()
    whole.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 8
    (y,) = run(Cutter(whole).part(["y"], []), z=np.ones(3, np.float32))
    np.testing.assert_array_equal(y, np.full(3, 2, np.float32))


def test_what_is_given_goes_through() -> None:
    part = Cutter(sample()).part(["t"], ["t"])
    assert (part.inputs, part.outputs) == (("t",), ("t",))


def test_the_model_is_not_changed() -> None:
    whole = sample()
    before = whole.SerializeToString(deterministic=True)
    cutter = Cutter(whole)
    cutter.part(["r"], ["x"])
    assert whole.SerializeToString(deterministic=True) == before


# A node may hold graphs (If, Loop), and these may use what is outside them.


def branches(*, draws: bool = False) -> onnx.ModelProto:
    """Then x = (y + 1) * weight, else x = -y, where y = z * weight and w = -x."""
    node = helper.make_node
    out = [helper.make_tensor_value_info("inner", FLOAT, None)]
    kind = [node("RandomNormalLike", ["y"], ["inner"])] if draws else [node("Neg", ["y"], ["inner"])]
    then = helper.make_graph(
        [node("Add", ["y", "local"], ["sum"]), node("Mul", ["sum", "weight"], ["inner"])],
        "then",
        [],
        out,
        [floats("local", 1.0)],
    )
    nodes = [
        node("Mul", ["z", "weight"], ["y"]),
        node("If", ["yes"], ["x"], then_branch=then, else_branch=helper.make_graph(kind, "else", [], out)),
        node("Neg", ["x"], ["w"]),
    ]
    return model(nodes, {"z": FLOAT, "yes": BOOL}, ["w"], [floats("weight", 2.0)])


def test_graphs_inside_a_node_use_what_is_outside() -> None:
    whole = branches()
    assert set(reads(whole.graph.node[1])) == {"yes", "y", "weight"}
    cutter = Cutter(whole)
    assert cutter.dependents(["y"]) == {"y", "x", "w"}
    assert made_by(cutter.needed(["w"])) == ["y", "x", "w"]
    assert not cutter.is_fixed("x")
    z = np.float32([1, 2])
    for yes, expected in ((True, [-6, -10]), (False, [2, 4])):
        (w,) = run(cutter.part(["w"], ["y"]), y=2 * z, yes=np.array([yes]))
        np.testing.assert_array_equal(w, np.float32(expected))


def test_what_is_drawn_inside_a_node_is_seen() -> None:
    assert not any(map(is_random, branches().graph.node))
    assert list(map(is_random, branches(draws=True).graph.node)) == [False, True, False]
