"""Tiny Piper voices with random weights: the whole VITS graph, real in structure and small in size.

The graph follows what Piper's exporter writes (VITS, arXiv 2106.06103; HiFi-GAN, arXiv 2010.05646), module by module:

    input [B,P] -> text encoder -> h [B,C,P] -> m_p, logs_p [B,C,P]
                                   h -> durations [B,1,P] -> path [B,T,P]    noise [B,2,P] * scales[2], times scales[1]
    path @ m_p, path @ logs_p [B,C,T] -> z_p = m_p + noise [B,C,T] * exp(logs_p) * scales[0] -> flow -> z [B,C,T]
    z * mask -> HiFi-GAN decoder -> output [B,1,1,T*hop]

A voice of several speakers has one more input, `sid` [1]; its embedding g [1,gin,1] reaches the durations, the flow and
the decoder. The real voices' traps are here too: constants shared between modules, a LeakyRelu shared by the resblocks
of a stage, a flow that flips channels by a slice of step -1, and in a voice of one speaker an embedding called "sid".

Weights keep the variance of the signal and biases are not zero, so zeros within the sound differ from zeros around it.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PHONEMES = "_^$ .,?ˈːabcdefghijklmnopqrstuvwxyz"  # an index is an id; the first three are padding, start and end
SLOPE = 0.1  # of every LeakyRelu but the last
LAST_SLOPE = 0.01
LOUDNESS = 0.12  # RMS before the tanh, about
FLOWS, FLOW_LAYERS, FLOW_KERNEL = 2, 2, 5
MEAN_LOG_DURATION, SPREAD = 0.9, 0.35  # about three frames a phoneme, as in real voices

_EVERYTHING = 2**63 - 1
_OPSETS = range(13, 21)


class _Graph:
    """Collects nodes and weights; `at` names the module, which only the names="piper" style writes down."""

    def __init__(self, names: str, opset: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = opset
        self._piper = names == "piper"
        self._order = np.random.default_rng(seed + 1)
        self._numbers = iter(self._order.permutation(10_000))
        self._used: dict[str, int] = {}
        self._shared: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def _name(self, wish: str) -> str:
        if not self._piper:
            return f"n{next(self._numbers)}"
        count = self._used[wish] = self._used.get(wish, -1) + 1
        return f"{wish}_{count}" if count else wish

    def weight(self, name: str, array: np.ndarray) -> str:
        name = self._name(name)
        self._weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def const(self, value: float | Sequence[int], at: str = "") -> str:
        """A float or int64 constant of shape [] or [n]; equal ones are one tensor, as in a real export."""
        array = np.array(value, np.float32 if isinstance(value, float) else np.int64)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._shared:
            name = self._name(f"{at and '/'}{at}/Constant") + ("_output_0" if self._piper else "")
            self._shared[key] = name
            tensor = numpy_helper.from_array(array, name)
            if self._piper:
                self._weights.append(tensor)
            else:
                self._nodes.append(helper.make_node("Constant", [], [name], self._name(""), value=tensor))
        return self._shared[key]

    def op(self, kind: str, *inputs: str, at: str = "", **attributes: Any) -> str:
        return self.ops(kind, 1, *inputs, at=at, **attributes)[0]

    def ops(self, kind: str, outputs: int, *inputs: str, at: str = "", **attributes: Any) -> list[str]:
        name = self._name(f"{at and '/'}{at}/{kind}")
        made = [f"{name}_output_{i}" if self._piper else self._name("") for i in range(outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), made, name, **attributes))
        return made

    def result(self, kind: str, *inputs: str, name: str) -> None:
        """The last node: its output is the graph's."""
        self._nodes.append(helper.make_node(kind, list(inputs), [name], self._name(f"/{kind}")))

    def slice(self, x: str, start: int, stop: int, axis: int = 1, step: int = 1, at: str = "") -> str:
        return self.op("Slice", x, *(self.const([value], at) for value in (start, stop, axis, step)), at=at)

    def flip(self, x: str, at: str) -> str:
        """Reverse the channels."""
        return self.slice(x, -1, -_EVERYTHING, step=-1, at=at)

    def unsqueeze(self, x: str, axis: int, at: str = "") -> str:
        return self.op("Unsqueeze", x, self.const([axis], at), at=at)

    def size(self, x: str, axis: int, at: str = "") -> str:
        """The length of one axis, as a scalar."""
        return self.op("Gather", self.op("Shape", x, at=at), self.const(axis, at), axis=0, at=at)

    def mask(self, lengths: str, longest: str, at: str = "") -> str:
        """[B] lengths -> [B,1,longest] of ones and zeros."""
        position = self.unsqueeze(self.op("Range", self.const(0), longest, self.const(1), at=at), 0, at)
        inside = self.op("Less", position, self.unsqueeze(lengths, 1, at), at=at)
        return self.op("Cast", self.unsqueeze(inside, 1, at), to=TensorProto.FLOAT, at=at)

    def filters(self, shape: tuple[int, ...], out_axis: int, gain: float) -> np.ndarray:
        """Random filters [out,in,kernel] or [in,out,kernel], each of norm `gain`: unit noise in, RMS `gain` out."""
        weight = self.random.standard_normal(shape)
        rest = tuple(axis for axis in range(len(shape)) if axis != out_axis)
        if shape[-1] > 1:
            weight -= weight.mean(rest, keepdims=True)  # or the offsets that LeakyRelu leaves would build up
        return weight * gain / np.sqrt(np.square(weight).sum(rest, keepdims=True))

    def conv(
        self, x: str, ins: int, outs: int, kernel: int = 1, dilation: int = 1, *, at: str, gain: float = 1, bias=True
    ) -> str:
        """[B,ins,N] -> [B,outs,N]."""
        module = at.replace("/", ".")
        inputs = [x, self.weight(f"{module}.weight", self.filters((outs, ins, kernel), 0, gain))]
        if bias:
            inputs.append(self.weight(f"{module}.bias", 0.1 * self.random.standard_normal(outs)))
        pads = [dilation * (kernel - 1) // 2] * 2
        shape = {"dilations": [dilation], "group": 1, "kernel_shape": [kernel], "pads": pads, "strides": [1]}
        return self.op("Conv", *inputs, at=at, **shape)

    def upsample(self, x: str, ins: int, outs: int, stride: int, kernel: int, *, at: str) -> str:
        """[B,ins,N] -> [B,outs,N*stride]."""
        module = at.replace("/", ".")
        gain = math.sqrt(2 * stride)  # an output sees kernel/stride taps only; LeakyRelu halved the power
        weight = self.weight(f"{module}.weight", self.filters((ins, outs, kernel), 1, gain))
        bias = self.weight(f"{module}.bias", 0.1 * self.random.standard_normal(outs))
        pads = [(kernel - stride) // 2] * 2
        shape = {"dilations": [1], "group": 1, "kernel_shape": [kernel], "pads": pads, "strides": [stride]}
        return self.op("ConvTranspose", x, weight, bias, at=at, **shape)

    def normalise(self, x: str, channels: int, at: str) -> str:
        """Layer norm over the channels of [B,C,P], spelled out as torch's exporter does below opset 17."""
        axes = {"axes": [-1]} if self.opset < 18 else {}
        more = [] if self.opset < 18 else [self.const([-1], at)]
        x = self.op("Transpose", x, perm=[0, 2, 1], at=at)
        centred = self.op("Sub", x, self.op("ReduceMean", x, *more, at=at, **axes), at=at)
        power = self.op("ReduceMean", self.op("Pow", centred, self.const(2.0, at), at=at), *more, at=at, **axes)
        deviation = self.op("Sqrt", self.op("Add", power, self.const(1e-5, at), at=at), at=at)
        module = at.replace("/", ".")
        gamma = self.weight(f"{module}.gamma", np.ones(channels))
        beta = self.weight(f"{module}.beta", np.zeros(channels))
        x = self.op("Mul", self.op("Div", centred, deviation, at=at), gamma, at=at)
        return self.op("Transpose", self.op("Add", x, beta, at=at), perm=[0, 2, 1], at=at)

    def model(self, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
        nodes = self._nodes if self._piper else self._shuffled()
        graph = helper.make_graph(nodes, "main_graph", inputs, outputs, self._weights)
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=8 if self.opset < 19 else 9,
            producer_name="pytorch" if self._piper else "other",
            producer_version="2.0.0",
        )

    def _shuffled(self) -> list[onnx.NodeProto]:
        """Another order in which every tensor still comes before its use."""
        waiting, order = list(self._nodes), []
        missing = {name for node in waiting for name in node.output}
        while waiting:
            ready = [i for i, node in enumerate(waiting) if missing.isdisjoint(node.input)]
            node = waiting.pop(ready[self._order.integers(len(ready))])
            missing.difference_update(node.output)
            order.append(node)
        return order


def tiny_voice(
    *,
    seed: int = 0,
    channels: int = 8,
    upsample: Sequence[tuple[int, int]] = ((8, 16), (4, 8)),
    resblock: Literal["1", "2"] = "1",
    kernels: Sequence[int] = (3, 5),
    dilations: Sequence[Sequence[int]] = ((1, 3), (1, 3)),
    speakers: int = 1,
    gin: int = 4,
    symbols: int = 40,
    sample_rate: int = 16000,
    names: Literal["piper", "other"] = "piper",
    opset: int = 15,
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A voice and its Piper configuration; equal arguments give equal bytes.

    Args:
        seed: draws the weights.
        channels: C, the width of the text encoder, the flow and z; the decoder is 2C wide, halved by every stage.
        upsample: (stride, kernel) of each stage of the decoder; the hop is the product of the strides.
        resblock: "1" has two convolutions for each dilation (Piper's high quality), "2" has one (low and medium).
        kernels: one resblock per kernel; a stage is the mean of its resblocks.
        dilations: for each kernel, the dilations within its resblock.
        speakers: more than one adds the input `sid`.
        gin: width of the speaker embedding.
        symbols: rows of the phoneme embedding, at least len(PHONEMES).
        sample_rate: written into the configuration; the graph does not know it.
        names: "piper" names tensors as Piper's exporter does. "other" stands for another exporter: the same sums, but
            random names, another order of the nodes, and Constant nodes in place of small initializers.
        opset: 13 to 20.

    Raises:
        ValueError: the arguments describe no voice.
    """
    if resblock not in ("1", "2") or names not in ("piper", "other") or opset not in _OPSETS:
        raise ValueError(f"unknown resblock, names or opset: {resblock!r}, {names!r}, {opset!r}")
    if channels % 2 or channels < 4 or speakers < 1 or symbols < len(PHONEMES):
        raise ValueError("channels must be even and at least 4, speakers at least 1, symbols at least len(PHONEMES)")
    if not upsample or any(kernel < stride or (kernel - stride) % 2 for stride, kernel in upsample):
        raise ValueError(f"a stage must be (stride, stride + an even number): {upsample}")
    if not kernels or len(kernels) != len(dilations) or any(kernel % 2 == 0 for kernel in kernels):
        raise ValueError("every resblock needs an odd kernel and its dilations")

    graph = _Graph(names, opset, seed)
    noise_scale, length_scale, noise_w = (graph.op("Gather", "scales", graph.const(i), axis=0) for i in range(3))
    speaker = None
    if speakers > 1:
        table = graph.weight("emb_g.weight", graph.random.standard_normal((speakers, gin)))
        speaker = graph.unsqueeze(graph.op("Gather", table, "sid", at="emb_g"), -1)
    condition = (speaker, gin)

    h, mean, log_scale, text_mask = _text_encoder(graph, channels, symbols, "sid" if speakers == 1 else "enc_p.emb")
    log_duration = _log_durations(graph, h, text_mask, channels, noise_w, condition)
    path, frame_mask = _path(graph, log_duration, text_mask, length_scale)
    mean, log_scale = _expand(graph, path, mean), _expand(graph, path, log_scale)
    noise = graph.op("RandomNormalLike", mean, dtype=TensorProto.FLOAT)
    noise = graph.op("Mul", graph.op("Mul", noise, graph.op("Exp", log_scale)), noise_scale)
    z = _flow(graph, graph.op("Add", mean, noise), frame_mask, channels, condition)
    z = graph.op("Mul", z, frame_mask)
    audio = _decoder(graph, z, channels, upsample, resblock, list(zip(kernels, dilations, strict=True)), condition)
    graph.result("Unsqueeze", audio, graph.const([1]), name="output")

    info = helper.make_tensor_value_info
    inputs = [
        info("input", TensorProto.INT64, ["batch_size", "phonemes"]),
        info("input_lengths", TensorProto.INT64, ["batch_size"]),
        info("scales", TensorProto.FLOAT, [3]),
    ]
    if speakers > 1:
        inputs.append(info("sid", TensorProto.INT64, [1]))
    outputs = [info("output", TensorProto.FLOAT, ["batch_size", "time", 1, "Unsqueezeoutput_dim_3"])]
    return graph.model(inputs, outputs), _config(symbols, sample_rate, speakers)


def write(folder: Path, model: onnx.ModelProto, config: dict[str, Any], name: str = "en_US-tiny-low") -> Path:
    """Write <name>.onnx and <name>.onnx.json, as a Piper voice lies on disk, and return the path of the model."""
    path = Path(folder) / f"{name}.onnx"
    path.write_bytes(model.SerializeToString(deterministic=True))
    path.with_name(f"{name}.onnx.json").write_text(json.dumps(config, ensure_ascii=False, indent=2), encoding="utf-8")
    return path


def _config(symbols: int, sample_rate: int, speakers: int) -> dict[str, Any]:
    """The keys of a real voice's file; like it, it tells neither the hop nor the shape of the decoder."""
    return {
        "audio": {"sample_rate": sample_rate, "quality": "low"},
        "espeak": {"voice": "en-us"},
        "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8},
        "phoneme_type": "espeak",
        "phoneme_map": {},
        "phoneme_id_map": {symbol: [i] for i, symbol in enumerate(PHONEMES)},
        "num_symbols": symbols,
        "num_speakers": speakers,
        "speaker_id_map": {f"voice{i}": i for i in range(speakers)} if speakers > 1 else {},
        "piper_version": "1.0.0",
        "language": {
            "code": "en_US",
            "family": "en",
            "region": "US",
            "name_native": "English",
            "name_english": "English",
            "country_english": "United States",
        },
        "dataset": "tiny",
    }


def _text_encoder(graph: _Graph, channels: int, symbols: int, table: str) -> tuple[str, str, str, str]:
    """Phonemes [B,P] -> h, m_p, logs_p [B,C,P] and the mask [B,1,P]: one head of attention, one feed-forward layer."""
    at = "enc_p"
    weight = graph.random.standard_normal((symbols, channels)) / math.sqrt(channels)
    x = graph.op("Gather", graph.weight(table, weight), "input", at="enc_p/emb")
    x = graph.op("Mul", x, graph.const(math.sqrt(channels), at), at=at)
    x = graph.op("Transpose", x, perm=[0, 2, 1], at=at)
    mask = graph.mask("input_lengths", graph.size(x, 2, at), at)
    x = graph.op("Mul", x, mask, at=at)

    at = "enc_p/encoder/attn_layers.0"
    query, key, value = (graph.conv(x, channels, channels, at=f"{at}/conv_{part}") for part in "qkv")
    query = graph.op("Transpose", query, perm=[0, 2, 1], at=at)
    query = graph.op("Div", query, graph.const(math.sqrt(channels), at), at=at)
    both = graph.op("Mul", graph.op("Transpose", mask, perm=[0, 2, 1], at=at), mask, at=at)  # [B,P,P]
    unseen = graph.op("Equal", both, graph.const(0.0, at), at=at)
    scores = graph.op("Where", unseen, graph.const(-1e4, at), graph.op("MatMul", query, key, at=at), at=at)
    weights = graph.op("Softmax", scores, axis=-1, at=at)
    seen = graph.op("MatMul", weights, graph.op("Transpose", value, perm=[0, 2, 1], at=at), at=at)
    y = graph.conv(graph.op("Transpose", seen, perm=[0, 2, 1], at=at), channels, channels, at=f"{at}/conv_o")
    x = graph.normalise(graph.op("Add", x, y, at="enc_p/encoder"), channels, "enc_p/encoder/norm_layers_1.0")

    at = "enc_p/encoder/ffn_layers.0"
    y = graph.conv(graph.op("Mul", x, mask, at=at), channels, 2 * channels, 3, at=f"{at}/conv_1")
    y = graph.op("Mul", graph.op("Relu", y, at=at), mask, at=at)
    y = graph.op("Mul", graph.conv(y, 2 * channels, channels, 3, at=f"{at}/conv_2"), mask, at=at)
    x = graph.normalise(graph.op("Add", x, y, at="enc_p/encoder"), channels, "enc_p/encoder/norm_layers_2.0")
    h = graph.op("Mul", x, mask, at="enc_p/encoder")

    weight = graph.filters((2 * channels, channels, 1), 0, 1.0)
    bias = np.repeat([0.0, -0.5], channels)  # logs_p: the prior's scale is about exp(-0.5)
    weight[channels:] *= 0.3
    names = graph.weight("enc_p.proj.weight", weight), graph.weight("enc_p.proj.bias", bias)
    stats = graph.op("Conv", h, *names, kernel_shape=[1], pads=[0, 0], strides=[1], at="enc_p/proj")
    stats = graph.op("Mul", stats, mask, at="enc_p")
    split = graph.const([channels, channels], "enc_p")
    mean, log_scale = graph.ops("Split", 2, stats, split, axis=1, at="enc_p")
    return h, mean, log_scale, mask


def _log_durations(
    graph: _Graph, h: str, mask: str, channels: int, noise_w: str, condition: tuple[str | None, int]
) -> str:
    """From h [B,C,P] to logw [B,1,P]: noise [B,2,P] through one coupling that sees h, reversed, then an affine map."""
    at = "dp"
    speaker, gin = condition
    x = graph.conv(h, channels, channels, at="dp/pre")
    if speaker:
        x = graph.op("Add", x, graph.conv(speaker, gin, channels, at="dp/cond", gain=0.7), at=at)
    y = graph.conv(graph.op("Mul", x, mask, at=at), channels, channels, 3, at="dp/convs/convs_sep.0")
    x = graph.op("Add", x, graph.op("Relu", y, at=at), at=at)
    x = graph.op("Mul", graph.conv(x, channels, channels, at="dp/proj"), mask, at=at)

    sizes = [graph.unsqueeze(graph.size(x, axis, at), 0, at) for axis in (0, 2)]
    shape = graph.op("Concat", sizes[0], graph.const([2], at), sizes[1], axis=0, at=at)
    noise = graph.op("RandomNormalLike", graph.op("ConstantOfShape", shape, at=at), dtype=TensorProto.FLOAT, at=at)
    z = graph.op("Mul", noise, noise_w, at=at)

    at = "dp/flows.3"
    kept, moved = graph.ops("Split", 2, z, graph.const([1, 1], at), axis=1, at=at)
    y = graph.op("Add", graph.conv(kept, 1, channels, at=f"{at}/pre"), x, at=at)
    y = graph.op("Relu", graph.conv(graph.op("Mul", y, mask, at=at), channels, channels, 3, at=f"{at}/convs"), at=at)
    moved = graph.op("Sub", moved, graph.conv(y, channels, 1, at=f"{at}/proj"), at=at)
    z = graph.op("Mul", graph.op("Concat", kept, moved, axis=1, at=at), mask, at=at)
    z = graph.flip(z, "dp/flows.2")

    at = "dp/flows.0"
    offset = graph.weight("dp.flows.0.m", np.full((2, 1), -MEAN_LOG_DURATION / SPREAD))
    shrink = graph.op("Exp", graph.op("Neg", graph.weight("dp.flows.0.logs", np.full((2, 1), -math.log(SPREAD)))))
    z = graph.op("Mul", graph.op("Mul", graph.op("Sub", z, offset, at=at), shrink, at=at), mask, at=at)
    return graph.ops("Split", 2, z, graph.const([1, 1], at), axis=1, at="dp")[0]


def _path(graph: _Graph, log_duration: str, mask: str, length_scale: str) -> tuple[str, str]:
    """From logw [B,1,P] to path [B,T,P], one where frame t belongs to phoneme p, and the mask [B,1,T] of frames."""
    duration = graph.op("Mul", graph.op("Mul", graph.op("Exp", log_duration), mask), length_scale)
    duration = graph.op("Ceil", duration)
    total = graph.op("ReduceSum", duration, graph.const([1, 2]), keepdims=0)
    lengths = graph.op("Cast", graph.op("Clip", total, graph.const(1.0), ""), to=TensorProto.INT64)
    frame_mask = graph.mask(lengths, graph.op("ReduceMax", lengths, keepdims=0))
    rows = graph.unsqueeze(frame_mask, -1)
    both = graph.op("Mul", graph.unsqueeze(mask, 2), rows)  # [B,1,T,P]
    batch, frames, phonemes = (graph.size(both, axis) for axis in (0, 2, 3))

    end = graph.op("CumSum", duration, graph.const(-1))
    end = graph.op("Reshape", end, graph.unsqueeze(graph.op("Mul", batch, phonemes), 0))  # [B*P]
    last = graph.op("Cast", frames, to=TensorProto.FLOAT)
    frame = graph.unsqueeze(graph.op("Range", graph.const(0.0), last, graph.const(1.0)), 0)
    begun = graph.op("Cast", graph.op("Less", frame, graph.unsqueeze(end, 1)), to=TensorProto.FLOAT)
    shape = graph.op("Concat", *(graph.unsqueeze(size, 0) for size in (batch, phonemes, frames)), axis=0)
    begun = graph.op("Reshape", begun, shape)  # [B,P,T]: one up to the end of phoneme p
    before = graph.slice(graph.op("Pad", begun, graph.const([0, 1, 0, 0, 0, 0]), ""), 0, -1)
    path = graph.op("Transpose", graph.unsqueeze(graph.op("Sub", begun, before), 1), perm=[0, 1, 3, 2])
    path = graph.op("Mul", path, both)
    return graph.op("Squeeze", path, graph.const([1])), frame_mask


def _expand(graph: _Graph, path: str, x: str) -> str:
    """[B,C,P] -> [B,C,T]: every phoneme's column for as many frames as it lasts."""
    y = graph.op("MatMul", path, graph.op("Transpose", x, perm=[0, 2, 1]))
    return graph.op("Transpose", y, perm=[0, 2, 1])


def _flow(graph: _Graph, z: str, mask: str, channels: int, condition: tuple[str | None, int]) -> str:
    """From z_p to z [B,C,T], reversed: flip the channels, then move the second half by a WaveNet of the first."""
    half = channels // 2
    for i in reversed(range(FLOWS)):
        at = f"flow/flows.{2 * i}"
        z = graph.flip(z, f"flow/flows.{2 * i + 1}")
        kept, moved = graph.ops("Split", 2, z, graph.const([half, half], at), axis=1, at=at)
        x = graph.op("Mul", graph.conv(kept, half, channels, at=f"{at}/pre"), mask, at=at)
        x = graph.op("Mul", _wavenet(graph, x, mask, channels, condition, f"{at}/enc"), mask, at=at)
        shift = graph.op("Mul", graph.conv(x, channels, half, at=f"{at}/post"), mask, at=at)
        zeros = graph.op("ConstantOfShape", graph.op("Shape", shift, at=at), at=at)
        moved = graph.op("Sub", moved, shift, at=at)
        moved = graph.op("Mul", moved, graph.op("Exp", graph.op("Neg", zeros, at=at), at=at), at=at)
        moved = graph.op("Mul", moved, mask, at=at)
        z = graph.op("Concat", kept, moved, axis=1, at=at)
    return z


def _wavenet(graph: _Graph, x: str, mask: str, channels: int, condition: tuple[str | None, int], at: str) -> str:
    """[B,C,T] -> [B,C,T]: gated dilated convolutions, each told the speaker; the sum of their skips."""
    speaker, gin = condition
    told = graph.conv(speaker, gin, 2 * channels * FLOW_LAYERS, at=f"{at}/cond_layer", gain=0.5) if speaker else None
    skips = graph.op("ConstantOfShape", graph.op("Shape", x, at=at), at=at)
    for layer in range(FLOW_LAYERS):
        y = graph.conv(x, channels, 2 * channels, FLOW_KERNEL, 2**layer, at=f"{at}/in_layers.{layer}", gain=1.5)
        if told:
            start = 2 * channels * layer
            extra = graph.slice(told, start, start + 2 * channels, at=at)
        else:
            extra = graph.op("ConstantOfShape", graph.op("Shape", y, at=at), at=at)  # what the exporter leaves there
        y = graph.op("Add", y, extra, at=at)
        wave = graph.op("Tanh", graph.slice(y, 0, channels, at=at), at=at)
        gate = graph.op("Sigmoid", graph.slice(y, channels, _EVERYTHING, at=at), at=at)
        y = graph.op("Mul", wave, gate, at=at)
        last = layer == FLOW_LAYERS - 1
        y = graph.conv(y, channels, channels if last else 2 * channels, at=f"{at}/res_skip_layers.{layer}", gain=2)
        if not last:
            x = graph.op("Add", x, graph.slice(y, 0, channels, at=at), at=at)
            x = graph.op("Mul", x, mask, at=at)
            y = graph.slice(y, channels, _EVERYTHING, at=at)
        skips = graph.op("Add", skips, y, at=at)
    return skips


def _decoder(
    graph: _Graph,
    z: str,
    channels: int,
    upsample: Sequence[tuple[int, int]],
    resblock: str,
    blocks: Sequence[tuple[int, Sequence[int]]],
    condition: tuple[str | None, int],
) -> str:
    """HiFi-GAN: z [B,C,T] -> audio [B,1,T*hop]."""
    speaker, gin = condition
    width = 2 * channels
    x = graph.conv(z, channels, width, 7, at="dec/conv_pre")
    if speaker:
        x = graph.op("Add", x, graph.conv(speaker, gin, width, at="dec/cond", gain=0.5), at="dec")
    for stage, (stride, kernel) in enumerate(upsample):
        narrow = max(4, width // 2)
        x = graph.op("LeakyRelu", x, alpha=SLOPE, at="dec")
        x = graph.upsample(x, width, narrow, stride, kernel, at=f"dec/ups.{stage}")
        width = narrow
        first = graph.op("LeakyRelu", x, alpha=SLOPE, at=f"dec/resblocks.{stage * len(blocks)}")
        total = ""
        for i, (size, steps) in enumerate(blocks):
            at = f"dec/resblocks.{stage * len(blocks) + i}"
            y = _resblock(graph, x, first, width, size, steps, resblock, at)
            total = graph.op("Add", total, y, at="dec") if total else y
        x = graph.op("Div", total, graph.const(float(len(blocks)), "dec"), at="dec")
    x = graph.op("LeakyRelu", x, alpha=LAST_SLOPE, at="dec")
    x = graph.conv(x, width, 1, 7, at="dec/conv_post", gain=LOUDNESS, bias=False)
    return graph.op("Tanh", x, at="dec")


def _resblock(
    graph: _Graph, x: str, first: str, width: int, kernel: int, dilations: Sequence[int], kind: str, at: str
) -> str:
    """[B,width,N] -> [B,width,N]; `first` is LeakyRelu(x), which the blocks of a stage share."""
    for i, dilation in enumerate(dilations):
        y = graph.op("LeakyRelu", x, alpha=SLOPE, at=at) if i else first
        if kind == "2":
            y = graph.conv(y, width, width, kernel, dilation, at=f"{at}/convs.{i}", gain=0.7)
        else:
            y = graph.conv(y, width, width, kernel, dilation, at=f"{at}/convs1.{i}", gain=1.4)
            y = graph.op("LeakyRelu", y, alpha=SLOPE, at=at)
            y = graph.conv(y, width, width, kernel, at=f"{at}/convs2.{i}", gain=0.7)
        x = graph.op("Add", y, x, at=at)
    return x
