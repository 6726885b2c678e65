"""Takes the multiplications by zero out of VITS's relative attention.

The text encoder knows relative positions up to a window of 4 either way: 9 vectors. The export pads their table with
zeros to 2 n - 1 rows, one for each distance that n phonemes can have, and multiplies by the whole. As

    q @ pad(table).T == pad(q @ table.T)        a @ pad(table) == a[..., p : p + 9] @ table

the products need only the table: 4 of 34 ms of the text part for a sentence of 25 words. The sums are the same ones but
for the zeros, so results differ by rounding at most.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

_WIDEST = 9  # rows; a text has 5 ids at least (start, pad, one phoneme, pad, end), so the padding is never negative


@dataclass(frozen=True, slots=True)
class _Product:
    """A product with a padded table: queries by keys (`transposed`), or weights by values."""

    matmul: onnx.NodeProto
    table: onnx.TensorProto
    pads: str  # int64 [0, p, 0, 0, p, 0]
    transposed: bool


def narrow(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with every such product done on the table itself; the argument is not changed."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    products = {product.matmul.output[0]: product for product in _products(graph)}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        product = products.get(node.output[0]) if node.output else None
        nodes += [node] if product is None else _narrowed(graph, product)
    del graph.node[:]
    graph.node.extend(nodes)
    return changed


def _products(graph: onnx.GraphProto) -> Iterator[_Product]:
    constants = {tensor.name: tensor for tensor in graph.initializer}
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)

    def only_user(node: onnx.NodeProto, kind: str) -> onnx.NodeProto | None:
        found = users.get(node.output[0], [])
        return found[0] if len(found) == 1 and found[0].op_type == kind else None

    def fixed(node: onnx.NodeProto, index: int) -> list[int] | None:
        tensor = constants.get(node.input[index]) if len(node.input) > index else None
        return None if tensor is None else [int(value) for value in numpy_helper.to_array(tensor).reshape(-1)]

    for pad in graph.node:
        table = constants.get(pad.input[0]) if pad.op_type == "Pad" else None
        if table is None or len(table.dims) != 3 or table.dims[0] != 1 or table.dims[1] > _WIDEST:
            continue
        cut = only_user(pad, "Slice")
        if cut is None or fixed(cut, 1) != [0] or fixed(cut, 3) != [1] or fixed(cut, 4) not in (None, [1]):
            continue
        lifted = only_user(cut, "Unsqueeze")
        if lifted is None or fixed(lifted, 1) != [0]:
            continue
        turned = only_user(lifted, "Transpose")
        last = turned or lifted
        matmul = only_user(last, "MatMul")
        if matmul is not None and matmul.input[1] == last.output[0]:
            yield _Product(matmul, table, pad.input[1], turned is not None)


def _narrowed(graph: onnx.GraphProto, product: _Product) -> list[onnx.NodeProto]:
    """The nodes that take the product's place; their constants are added to the graph."""
    name = product.matmul.output[0]

    def constant(label: str, value: np.ndarray) -> str:
        graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), f"{name}/{label}"))
        return f"{name}/{label}"

    table = numpy_helper.to_array(product.table)[None]
    one, two = (constant(label, np.array([value], np.int64)) for label, value in (("one", 1), ("two", 2)))
    padding = helper.make_node("Slice", [product.pads, one, two], [f"{name}/padding"])
    left, _ = product.matmul.input
    if product.transposed:
        zeros = constant("zeros", np.zeros(3, np.int64))
        return [
            padding,
            helper.make_node("MatMul", [left, constant("table", table.swapaxes(2, 3))], [f"{name}/near"]),
            helper.make_node("Concat", [zeros, padding.output[0]] * 2, [f"{name}/pads"], axis=0),
            helper.make_node("Pad", [f"{name}/near", f"{name}/pads"], [name]),
        ]
    rows = constant("rows", np.array([table.shape[2]], np.int64))
    axis = constant("axis", np.array([3], np.int64))
    return [
        padding,
        helper.make_node("Add", [padding.output[0], rows], [f"{name}/stop"]),
        helper.make_node("Slice", [left, padding.output[0], f"{name}/stop", axis], [f"{name}/near"]),
        helper.make_node("MatMul", [f"{name}/near", constant("table", table)], [name]),
    ]
