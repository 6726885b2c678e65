"""Cuts a graph by what depends on what, so that parts of it can be run by themselves.

Nothing here looks at names of nodes: exporters choose them freely.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper, shape_inference


@dataclass(frozen=True, slots=True)
class Part:
    """Some nodes of a graph as a model of its own."""

    model: bytes
    inputs: tuple[str, ...]  # tensors that it needs, in the order of the graph
    outputs: tuple[str, ...]


def reads(node: onnx.NodeProto) -> list[str]:
    """The tensors that a node needs: its inputs, and what graphs inside it (If, Loop) take from outside."""
    names = [name for name in node.input if name]
    for graph in _inner(node):
        own = {item.name for item in (*graph.initializer, *graph.input)}
        own.update(name for inner in graph.node for name in inner.output)
        asked = [name for inner in graph.node for name in reads(inner)]
        names += [name for name in (*asked, *(item.name for item in graph.output)) if name not in own]
    return names


def is_random(node: onnx.NodeProto) -> bool:
    """Whether a node, or one inside it, draws numbers."""
    if node.op_type.startswith("Random") or node.op_type in ("Multinomial", "Bernoulli"):
        return True
    return any(is_random(inner) for graph in _inner(node) for inner in graph.node)


def _inner(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    graphs = [item.g for item in node.attribute if item.type == onnx.AttributeProto.GRAPH]
    return graphs + [graph for item in node.attribute for graph in item.graphs]


class Cutter:
    """A graph, indexed.

    Args:
        model: checked before; it is not changed.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = shape_inference.infer_shapes(model)
        graph = self._model.graph
        self.nodes: list[onnx.NodeProto] = list(graph.node)
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.graph_inputs = tuple(item.name for item in graph.input if item.name not in self.constants)
        self.graph_outputs = tuple(item.name for item in graph.output)
        self.producer = {name: node for node in self.nodes for name in node.output if name}
        self._fixed = self._find_fixed()
        self._types = {item.name: item for item in (*graph.value_info, *graph.input, *graph.output)}

    def is_fixed(self, name: str) -> bool:
        """Whether a tensor is the same in every run."""
        return name in self._fixed

    def value(self, name: str) -> NDArray[np.generic] | None:
        """The value of a constant, given as a weight or as a Constant node; None for anything else."""
        tensor = self.constants.get(name)
        if tensor is None and name in self.producer and self.producer[name].op_type == "Constant":
            values = [item.t for item in self.producer[name].attribute if item.name == "value"]
            tensor = values[0] if values else None
        return None if tensor is None else numpy_helper.to_array(tensor)

    def dependents(self, names: Iterable[str]) -> set[str]:
        """All tensors that are computed from any of these, themselves included."""
        found = set(names)
        for node in self.nodes:  # in topological order, as ONNX demands
            if any(name in found for name in reads(node)):
                found.update(name for name in node.output if name)
        return found

    def needed(self, names: Iterable[str], stop: Iterable[str] = ()) -> list[onnx.NodeProto]:
        """The nodes, in order, that compute `names` when the tensors in `stop` are given."""
        given, wanted = set(stop), set(names)
        chosen: list[onnx.NodeProto] = []
        for node in reversed(self.nodes):
            if any(name in wanted and name not in given for name in node.output):
                chosen.append(node)
                wanted.update(reads(node))
        return chosen[::-1]

    def part(self, outputs: Sequence[str], given: Sequence[str]) -> Part:
        """The nodes that compute `outputs` from `given` and the graph's inputs."""
        nodes = self.needed(outputs, given)
        made = {name for node in nodes for name in node.output}
        used = [name for node in nodes for name in reads(node)]
        loose = dict.fromkeys(name for name in (*used, *outputs) if name not in made and name not in self.constants)
        constants = [self.constants[name] for name in dict.fromkeys(used) if name in self.constants]
        graph = helper.make_graph(
            nodes,
            "part",
            [self._value(name) for name in loose],
            [self._value(name) for name in outputs],
            constants,
        )
        model = helper.make_model(graph, opset_imports=list(self._model.opset_import))
        model.ir_version = self._model.ir_version
        return Part(model.SerializeToString(), tuple(loose), tuple(outputs))

    def _find_fixed(self) -> set[str]:
        fixed = set(self.constants)
        for node in self.nodes:
            if not is_random(node) and all(name in fixed for name in reads(node)):
                fixed.update(name for name in node.output if name)
        return fixed

    def _value(self, name: str) -> onnx.ValueInfoProto:
        """The tensor's type; its shape is left open, for a part is run with other sizes than the whole."""
        known = self._types.get(name)
        kind = known.type.tensor_type.elem_type if known is not None else onnx.TensorProto.FLOAT
        return helper.make_tensor_value_info(name, kind or onnx.TensorProto.FLOAT, None)
