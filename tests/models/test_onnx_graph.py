"""A stack of convolutions that streams equals the whole, for any cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from legato.models.onnx_graph import Graph, Streamed

CHANNELS = 6
LAYERS = ((7, 1), (3, 4), (5, 2))  # kernel, dilation
REACH = sum(kernel // 2 * dilation for kernel, dilation in LAYERS)


def _weights() -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(5)
    return [
        (random.standard_normal((CHANNELS, 1, kernel)).astype(np.float32) / kernel, np.full(CHANNELS, 0.3, np.float32))
        for kernel, _ in LAYERS
    ]


@pytest.fixture(scope="module")
def stack() -> Streamed:
    """Depthwise, dilated, with biases, so that zeros inside differ from zeros outside; then a full convolution."""
    graph = Graph("test")
    x = graph.input("x", ["n", CHANNELS])
    ending = graph.input("ending", [1], TensorProto.INT64)
    for (kernel, dilation), (weight, bias) in zip(LAYERS, _weights(), strict=True):
        reach = kernel // 2 * dilation
        x = graph.carry(x, ending, reach, CHANNELS)
        y = graph.depthwise(x, weight, bias, dilation=dilation)
        x = graph.op("Add", graph.rows(x, reach, -reach), y)
    graph.output("y", x, ["m", CHANNELS])
    return Streamed(graph, ["y"])


def whole(x: np.ndarray) -> np.ndarray:
    """The definition: every layer sees the sequence between zeros."""
    for (kernel, dilation), (weight, bias) in zip(LAYERS, _weights(), strict=True):
        reach = kernel // 2 * dilation
        padded = np.pad(x, ((reach, reach), (0, 0)))
        taps = [padded[j * dilation : j * dilation + len(x)] * weight[:, 0, j] for j in range(kernel)]
        x = x + sum(taps) + bias
    return x


def stream(stack: Streamed, x: np.ndarray, cuts: list[int]) -> list[np.ndarray]:
    states, out = stack.initial(), []
    edges = [0, *cuts, len(x)]
    for index, (start, stop) in enumerate(pairwise(edges)):
        (y,), states = stack.step(x[start:stop], states, final=index == len(cuts))
        out.append(y)
    return out


def signal(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).standard_normal((rows, CHANNELS)).astype(np.float32)


@given(st.integers(1, 60), st.data())
@settings(deadline=None, max_examples=60)
def test_streamed_equals_whole_for_any_cut(stack: Streamed, rows: int, data: st.DataObject) -> None:
    # The first step has more rows than the reach, unless it is the last; the last one may have none.
    cuts: list[int] = []
    if rows > REACH:
        cuts = sorted(data.draw(st.sets(st.integers(REACH + 1, rows), max_size=4)))
    x = signal(rows)
    pieces = stream(stack, x, cuts)
    if all(len(piece) > 1 for piece in pieces):  # a single row is rounded differently
        assert np.array_equal(np.concatenate(pieces), stream(stack, x, [])[0])
    np.testing.assert_allclose(np.concatenate(pieces), whole(x), atol=1e-5)


def test_the_lag_is_the_reach_and_the_last_call_may_be_empty(stack: Streamed) -> None:
    assert stack.reach == REACH
    pieces = stream(stack, signal(30), [20, 30])
    assert [len(piece) for piece in pieces] == [20 - REACH, 10, REACH]


def test_states_are_explicit(stack: Streamed) -> None:
    """A state may be used again: the stream goes on from there, whatever other streams did in between."""
    x, other = signal(40), signal(41)
    (_,), states = stack.step(x[:20], stack.initial(), final=False)
    copies = [state.copy() for state in states]
    (first,), _ = stack.step(x[20:], states, final=True)
    stream(stack, other, [25])
    (second,), _ = stack.step(x[20:], states, final=True)
    assert np.array_equal(first, second)
    assert all(np.array_equal(state, copy) for state, copy in zip(states, copies, strict=True))
    assert [state.shape for state in stack.initial()] == [(k // 2 * d, CHANNELS) for k, d in LAYERS]
    # After the first call a state is what the next one needs to the left: twice the reach.
    assert [len(state) for state in states] == [2 * (k // 2) * d for k, d in LAYERS]


def test_unfolding_and_a_product_is_a_convolution() -> None:
    kernel = np.random.default_rng(1).standard_normal((4, CHANNELS, 3)).astype(np.float32)
    graph = Graph("test")
    x = graph.input("x", ["n", CHANNELS])
    graph.input("ending", [1], TensorProto.INT64)
    matrix = kernel.transpose(2, 1, 0).reshape(-1, 4)
    graph.output("y", graph.op("MatMul", graph.unfold(x, 3), graph.constant(matrix)), ["m", 4])
    rows = signal(9)
    (y,), _ = Streamed(graph, ["y"]).step(rows, [], final=True)
    expected = [sum(rows[i + j] @ kernel[:, :, j].T for j in range(3)) for i in range(7)]
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_equal_constants_are_stored_once() -> None:
    graph = Graph("test")
    assert graph.ints(1, 2) == graph.ints(1, 2)
    assert graph.ints(1, 2) != graph.ints(2, 1)
