"""Builds the three graphs of the voice from its weights: text, prosody, decoder.

The released file is one graph of 1,731 nodes whose int8 products take their scale from the whole input of each call
(DynamicQuantizeLinear), so a piece of a sentence is rounded differently from the whole. Here the text part keeps that,
for it always sees its whole input. Prosody and decoder use fixed, calibrated scales instead: then a row is rounded the
same whatever comes with it, and streaming is equal to whole synthesis to the last bit.
"""

from collections.abc import Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from legato.models.hibari.weights import Quantised, Weights
from legato.models.onnx_graph import MICROSOFT, Graph

Ranges = Sequence[tuple[float, float]]
"""For each int8 product in order: the lowest and the highest value that its input takes."""

PHONEME_CHANNELS = 128
PROSODY_CHANNELS = 192
DECODER_INPUT = PHONEME_CHANNELS + 2  # and pitch, energy
DECODER_CHANNELS = 256
DECODER_BLOCKS = 8
PROSODY_DILATIONS = (1, 2, 4, 8, 1, 2)
BINS = 601
SPECTRA = 5  # harmonic magnitude and phase, noise magnitude, free magnitude and phase

_HEADS = 2
_CONTENT_LAYERS = 4
_PROSODY_LAYERS = 6
_F0_SCALE = 100.0  # the network predicts pitch in units of 100 Hz
_ENERGY_SCALE = 5.0
_FEATURE_SCALE = 5.0  # pitch (as log) and energy enter the decoder divided by this


class Precision(Enum):
    """How the streamed products are computed."""

    INT8 = "int8"  # fixed scales: exact when streamed, the default
    FLOAT = "float"  # 2.2 times the cost; the reference for calibration and tests


class _Products:
    """Adds matrix products to a graph, in one precision, and remembers their inputs for calibration."""

    def __init__(self, graph: Graph, precision: Precision, ranges: Ranges) -> None:
        self._graph = graph
        self._precision = precision
        self._ranges = ranges
        self.inputs: list[str] = []

    def add(self, x: str, weight: Quantised, bias: NDArray[np.float32], gain: NDArray[np.float32] | None = None) -> str:
        """`gain * (x @ weight + bias)`; the gain, one factor per output channel, is folded in."""
        graph, index = self._graph, len(self.inputs)
        self.inputs.append(x)
        gain = np.ones(len(bias), np.float32) if gain is None else gain
        if self._precision is Precision.FLOAT:
            product = graph.op("MatMul", x, graph.constant(weight.dequantised * gain))
            return graph.op("Add", product, graph.constant(bias * gain))
        scale, zero = _affine(*self._ranges[index])
        scale_name, zero_name = graph.constant(scale), graph.constant(zero)
        return graph.op(
            "MatMulIntegerToFloat",
            graph.op("QuantizeLinear", x, scale_name, zero_name),
            graph.constant(weight.matrix),
            scale_name,
            graph.constant(weight.scale * gain),
            zero_name,
            "",  # no zero point: every weight is symmetric
            graph.constant(bias * gain),
            domain=MICROSOFT,
        )


def _affine(low: float, high: float) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Scale and zero point of the uint8 grid that covers [low, high] and has an exact zero."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255
    return np.array(scale, np.float32), np.array(round(-low / scale), np.uint8)


def text_graph(weights: Weights) -> Graph:
    """Phonemes to features and durations.

    Inputs: `ids` int64 [phonemes].
    Outputs: `content` [phonemes, 128], `prosody` [phonemes, 192], `frames` [phonemes]: 25 ms frames at speed 1, before
    rounding.
    """
    graph = Graph("hibari-text")
    ids = graph.input("ids", ["phonemes"], TensorProto.INT64)
    content = _text_encoder(
        graph,
        weights,
        ids,
        "m.text",
        _CONTENT_LAYERS,
        {
            "pw": "/convs.{}/pw{}/Transpose_output_0",
            "in": "/Transpose_2_output_0",
            "out": "/out_proj/Transpose_output_0",
            "up": "/linear1/Transpose_output_0",
            "down": "/linear2/Transpose_output_0",
        },
    )
    prosody = _text_encoder(
        graph,
        weights,
        ids,
        "pn.text",
        _PROSODY_LAYERS,
        {
            "pw": "/convs.{}/pw{}_1/Transpose_output_0",
            "in": "/Transpose_25_output_0",
            "out": "/out_proj_4/Transpose_output_0",
            "up": "/linear1_4/Transpose_output_0",
            "down": "/linear2_4/Transpose_output_0",
        },
    )
    x = graph.op("Unsqueeze", graph.op("Transpose", prosody, perm=[1, 0]), graph.ints(0))
    for layer, pad in (("pn.dur.0", 1), ("pn.dur.2", 0)):
        weight, bias = graph.constant(weights[f"{layer}.weight"]), graph.constant(weights[f"{layer}.bias"])
        x = graph.op("Conv", x, weight, bias, pads=[pad, pad])
        x = graph.gelu(x) if pad else x
    log_frames = graph.op("Reshape", x, graph.ints(-1))
    frames = graph.op("Sub", graph.op("Exp", log_frames), graph.constant(np.array(1, np.float32)))
    graph.output("content", content, ["phonemes", PHONEME_CHANNELS])
    graph.output("prosody", prosody, ["phonemes", PROSODY_CHANNELS])
    graph.output("frames", frames, ["phonemes"])
    return graph


def _text_encoder(graph: Graph, weights: Weights, ids: str, prefix: str, layers: int, names: dict[str, str]) -> str:
    """Embedding, two ConvNeXt blocks, then one pre-norm transformer layer applied `layers` times (shared weights)."""

    def product(x: str, matrix: str, bias: str, gain: NDArray[np.float32] | None = None) -> str:
        weight = weights.quantised(matrix)
        gain = np.ones(weight.matrix.shape[1], np.float32) if gain is None else gain
        return graph.op(
            "DynamicQuantizeMatMul",
            x,
            graph.constant(weight.matrix),
            graph.constant(weight.scale * gain),
            "",  # no zero point: every weight is symmetric
            graph.constant(weights[bias] * gain),
            domain=MICROSOFT,
        )

    def norm(x: str, name: str) -> str:
        return graph.layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    x = graph.op("Gather", graph.constant(weights[f"{prefix}.emb.weight"]), ids)
    for block in range(2):
        name = f"{prefix}.convs.{block}"
        kernel = weights[f"{name}.dw.weight"]
        y = norm(graph.depthwise(x, kernel, weights[f"{name}.dw.bias"], pad=kernel.shape[2] // 2), f"{name}.norm")
        y = graph.gelu(product(y, names["pw"].format(block, 1), f"{name}.pw1.bias"))
        x = graph.op("Add", x, product(y, names["pw"].format(block, 2), f"{name}.pw2.bias", weights[f"{name}.gamma"]))
    channels = weights[f"{prefix}.norm.weight"].shape[0]
    attention = f"{prefix}.attn"
    for _ in range(layers):
        qkv = product(norm(x, f"{attention}.norm1"), names["in"], f"{attention}.self_attn.in_proj_bias")
        qkv = graph.op("Unsqueeze", qkv, graph.ints(0))
        q, k, v = graph.ops("Split", 3, qkv, graph.ints(channels, channels, channels), axis=2)
        y = graph.op("MultiHeadAttention", q, k, v, domain=MICROSOFT, num_heads=_HEADS)
        y = graph.op("Squeeze", y, graph.ints(0))
        x = graph.op("Add", x, product(y, names["out"], f"{attention}.self_attn.out_proj.bias"))
        y = graph.gelu(product(norm(x, f"{attention}.norm2"), names["up"], f"{attention}.linear1.bias"))
        x = graph.op("Add", x, product(y, names["down"], f"{attention}.linear2.bias"))
    return norm(x, f"{prefix}.norm")


def prosody_graph(weights: Weights, precision: Precision, ranges: Ranges, *, observe: bool = False) -> Graph:
    """Prosody features to pitch and energy, streamed; two rows out for each row in.

    Inputs: `x` [n, 192], 25 ms frames; `ending`; carried states. Reach: 54 rows.
    Outputs: `f0` [2m] in Hz and `features` [2m, 2] for the decoder (log pitch, energy), 12.5 ms frames.
    """
    graph = Graph("hibari-prosody")
    products = _Products(graph, precision, ranges)
    x = graph.input("x", ["n", PROSODY_CHANNELS])
    ending = graph.input("ending", [1], TensorProto.INT64)
    # A 1x1 convolution: the same row by row, so it may be taken before the carry.
    x = _pointwise(graph, x, weights["pn.pro_in.weight"], weights["pn.pro_in.bias"])
    for block, dilation in enumerate(PROSODY_DILATIONS):
        x = _streamed_convnext(graph, products, weights, x, ending, "pn.pro", "pro", block, dilation)
    x = _pointwise(graph, x, weights["pn.pro_out.weight"], weights["pn.pro_out.bias"])
    # The four channels are (pitch, pitch, energy, energy) of two 12.5 ms frames.
    pitch, energy = graph.ops("Split", 2, x, graph.ints(2, 2), axis=1)
    scalar = [graph.constant(np.array(value, np.float32)) for value in (_F0_SCALE, _ENERGY_SCALE, 1, _FEATURE_SCALE)]
    f0 = graph.op("Mul", pitch, scalar[0])
    energy = graph.op("Mul", graph.op("Reshape", energy, graph.ints(-1)), scalar[1])
    # onnxruntime rounds a logarithm differently in the last few elements, which do not fill a register. So each row
    # of two fills whole registers, of any width; or the samples would depend on how many rows came at once.
    wide = graph.op("Concat", *[f0] * 8, axis=1)
    wide = graph.op("Log", graph.op("Add", graph.op("Relu", wide), scalar[2]))
    log_f0 = graph.op("Reshape", graph.op("Slice", wide, graph.ints(0), graph.ints(2), graph.ints(1)), graph.ints(-1))
    columns = [graph.op("Unsqueeze", graph.op("Div", y, scalar[3]), graph.ints(1)) for y in (log_f0, energy)]
    graph.output("f0", graph.op("Reshape", f0, graph.ints(-1)), ["m"])
    graph.output("features", graph.op("Concat", *columns, axis=1), ["m", 2])
    _expose(graph, products, observe)
    return graph


def decoder_graph(weights: Weights, precision: Precision, ranges: Ranges, *, observe: bool = False) -> Graph:
    """Frames to the parts of a spectrum, streamed.

    Inputs: `x` [n, 130], 12.5 ms frames: content, log pitch, energy; `ending`; carried states. Reach: 27 rows.
    Output: `spectra` [m, 5 * 601].
    """
    graph = Graph("hibari-decoder")
    products = _Products(graph, precision, ranges)
    x = graph.input("x", ["n", DECODER_INPUT])
    ending = graph.input("ending", [1], TensorProto.INT64)
    kernel = weights["m.dec_in.weight"]  # [256, 130, 7]
    size = kernel.shape[2]
    x = graph.unfold(graph.carry(x, ending, size // 2, DECODER_INPUT), size)
    matrix = kernel.transpose(2, 1, 0).reshape(-1, DECODER_CHANNELS)
    x = graph.op("Add", graph.op("MatMul", x, graph.constant(matrix)), graph.constant(weights["m.dec_in.bias"]))
    for block in range(DECODER_BLOCKS):
        x = _streamed_convnext(graph, products, weights, x, ending, "m.dec", "dec", block, 1)
    x = graph.layer_norm(x, weights["m.dec_norm.weight"], weights["m.dec_norm.bias"])
    spectra = products.add(x, weights.quantised("/head/Transpose_output_0"), weights["m.head.bias"])
    graph.output("spectra", spectra, ["m", SPECTRA * BINS])
    _expose(graph, products, observe)
    return graph


def _streamed_convnext(
    graph: Graph,
    products: _Products,
    weights: Weights,
    x: str,
    ending: str,
    prefix: str,
    node: str,
    block: int,
    dilation: int,
) -> str:
    """One ConvNeXt block whose depthwise convolution carries its state (Liu et al., 2022)."""
    name = f"{prefix}.{block}"
    kernel = weights[f"{name}.dw.weight"]
    channels, _, size = kernel.shape
    reach = dilation * (size // 2)
    x = graph.carry(x, ending, reach, channels)
    y = graph.depthwise(x, kernel, weights[f"{name}.dw.bias"], dilation=dilation)
    y = graph.layer_norm(y, weights[f"{name}.norm.weight"], weights[f"{name}.norm.bias"])
    y = products.add(y, weights.quantised(f"/{node}.{block}/pw1/Transpose_output_0"), weights[f"{name}.pw1.bias"])
    y = products.add(
        graph.gelu(y),
        weights.quantised(f"/{node}.{block}/pw2/Transpose_output_0"),
        weights[f"{name}.pw2.bias"],
        weights[f"{name}.gamma"],
    )
    return graph.op("Add", graph.rows(x, reach, -reach), y)


def _pointwise(graph: Graph, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
    product = graph.op("MatMul", x, graph.constant(weight[:, :, 0].T))
    return graph.op("Add", product, graph.constant(bias))


def _expose(graph: Graph, products: _Products, observe: bool) -> None:
    """Make the inputs of the products visible as `seen0`, `seen1`, … for calibration."""
    if observe:
        for index, name in enumerate(products.inputs):
            graph.output(f"seen{index}", name, [f"seen_rows{index}", f"seen_channels{index}"])
