"""Builds small ONNX graphs from weights, among them convolutions that stream.

A convolution of reach r (it sees r rows to each side) becomes streamable by carrying the last 2r rows of its input
from one call to the next. The network's own zero padding is applied only where the sequence really begins and ends:

    first call    [r zeros][x ........]           -> n - r rows out
    later calls   [2r rows carried][x ...]        -> n rows out
    last call     [2r rows carried][x ...][r zeros] -> n + r rows out

so every row is computed once, from the rows that the whole sequence would give it, and the output lags the input by r
rows. Stacked layers add up their reaches. The same idea: kyutai's moshi, `modules/conv.py` (causal there, so no lag).

Rows are time, columns are channels, everywhere.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from legato.models.session import Session

Array = NDArray[Any]

OPSET = 17
MICROSOFT = "com.microsoft"  # fused operators of onnxruntime
IR_VERSION = 9
_END = 2**31 - 1


class Graph:
    """A graph under construction. Tensors are named by strings, as in ONNX itself."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._shared: dict[tuple[str, bytes], str] = {}
        self.states: list[tuple[int, int]] = []  # (reach, channels) of each carried input, in order

    def input(self, name: str, shape: Sequence[str | int], dtype: int = TensorProto.FLOAT) -> str:
        """Declare an input; a string in `shape` is a free dimension."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, name: str, value: str, shape: Sequence[str | int], dtype: int = TensorProto.FLOAT) -> None:
        """Expose `value` under `name`."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def constant(self, value: Array) -> str:
        """Add a weight."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def ints(self, *values: int) -> str:
        """A 1-D int64 constant; equal ones are stored once."""
        array = np.array(values, np.int64)
        key = ("i", array.tobytes())
        if key not in self._shared:
            self._shared[key] = self.constant(array)
        return self._shared[key]

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output and return that output's name."""
        return self.ops(kind, 1, *inputs, domain=domain, **attributes)[0]

    def ops(self, kind: str, outputs: int, *inputs: str, domain: str = "", **attributes: Any) -> list[str]:
        """Add a node with several outputs."""
        names = [f"t{len(self._nodes)}_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names

    def rows(self, x: str, start: int, stop: int = _END) -> str:
        """`x[start:stop]` along time."""
        return self.op("Slice", x, self.ints(start), self.ints(stop), self.ints(0))

    def depthwise(self, x: str, weight: Array, bias: Array, *, dilation: int = 1, pad: int = 0) -> str:
        """Depthwise convolution of rows [n, c] with `weight` [c, 1, k]."""
        channels, _, kernel = weight.shape
        y = self.op("Unsqueeze", self.op("Transpose", x, perm=[1, 0]), self.ints(0))
        y = self.op(
            "Conv",
            y,
            self.constant(weight),
            self.constant(bias),
            kernel_shape=[kernel],
            dilations=[dilation],
            pads=[pad, pad],
            group=channels,
        )
        return self.op("Transpose", self.op("Squeeze", y, self.ints(0)), perm=[1, 0])

    def unfold(self, x: str, kernel: int) -> str:
        """Rows [n, c] -> [n - kernel + 1, kernel * c]: each row with those after it.

        A full convolution is then one matrix product, whose sums do not depend on the number of rows.
        """
        return self.op("Concat", *[self.rows(x, j, j - kernel + 1 or _END) for j in range(kernel)], axis=1)

    def layer_norm(self, x: str, weight: Array, bias: Array) -> str:
        """Layer normalisation over channels."""
        return self.op("LayerNormalization", x, self.constant(weight), self.constant(bias), axis=-1, epsilon=1e-5)

    def gelu(self, x: str) -> str:
        """GELU, the exact one."""
        return self.op("Gelu", x, domain=MICROSOFT)

    def carry(self, x: str, ending: str, reach: int, channels: int) -> str:
        """Prepend the carried rows of `x` and, at the end of the sequence, append zeros.

        `ending` is an int64[1] tensor: 1 in the last call, else 0. Feed and fetch the states with `Streamed`.
        """
        index = len(self.states)
        self.states.append((reach, channels))
        state = self.input(f"state{index}", [f"rows{index}", channels])
        count = self.op("Mul", ending, self.ints(reach))
        zeros = self.op("ConstantOfShape", self.op("Concat", count, self.ints(channels), axis=0))
        extended = self.op("Concat", state, x, zeros, axis=0)
        self.output(f"next{index}", self.rows(extended, -2 * reach), [f"next_rows{index}", channels])
        return extended

    def build(self) -> bytes:
        """Return the serialised model."""
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="legato")
        model.ir_version = IR_VERSION
        return bytes(model.SerializeToString())


class Streamed:
    """A graph with carried states, loaded. It holds no stream: the caller keeps the states."""

    def __init__(self, graph: Graph, outputs: Sequence[str]) -> None:
        self._session = Session(graph.build())
        self._states = tuple(graph.states)
        self._inputs = [f"state{i}" for i in range(len(self._states))]
        self._fetch = [*outputs, *(f"next{i}" for i in range(len(self._states)))]
        self._count = len(outputs)
        self.reach = sum(reach for reach, _ in self._states)
        """By how many rows the output lags the input."""

    def initial(self) -> list[Array]:
        """The states of a new stream: the zeros before its first row."""
        return [np.zeros((reach, channels), np.float32) for reach, channels in self._states]

    def step(self, x: Array, states: list[Array], *, final: bool) -> tuple[list[Array], list[Array]]:
        """Push rows; return the outputs that are now certain and the states for the next step.

        The first step of a stream needs more than `reach` rows unless it is also the last; those between need two
        (one works, but onnxruntime convolves it with another kernel, which rounds differently).
        """
        feed: dict[str, Array] = {"x": x, "ending": np.array([1 if final else 0], np.int64)}
        feed.update(zip(self._inputs, states, strict=True))
        values = self._session.run(self._fetch, feed)
        return values[: self._count], values[self._count :]
