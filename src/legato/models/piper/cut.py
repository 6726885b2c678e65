"""A VITS network exported by Piper, cut into parts that can be run with given noise and in windows.

    text, durations ─► expansion to frames ─► flow ─► latent ─► decoder (HiFi-GAN) ─► samples
    └─ the front: whole, once a segment ──┘   └── local in time: in windows, with exact context ──┘

The export draws its noise inside (RandomNormalLike). Here every such node is a border between two parts and its output
an input of the next, so that the noise comes from a seed. Flow and decoder are found by what they are made of: going
back from the output, everything works on a neighbourhood of frames (convolutions) or on each frame alone. What comes
before is the front. The decoder begins at the latest tensor from which only convolutions, activations and sums follow.
How far a result can see follows from kernels, strides and paddings, and is the context that a window needs.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import helper

from legato.errors import VoiceFileError
from legato.models.onnx_cut import Cutter, Part, is_random, reads
from legato.models.piper.attention import narrow

_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_EACH_FRAME = frozenset(
    {"Add", "Cast", "Div", "Exp", "Identity", "LeakyRelu", "Log", "Mul", "Neg", "Pow", "Relu", "Shape", "Sigmoid"}
    | {"Softplus", "Sqrt", "Squeeze", "Sub", "Tanh", "Unsqueeze"}
)
_SUMS = frozenset({"Add", "Sub"})
_CHANNELS = 1  # the axis of [batch, channels, frames]
_NOISE = "RandomNormalLike"
_TEXT = ("input", "input_lengths")  # what runs along the frames depends on them; a speaker or a scale does not
_FOREIGN = "This is not a VITS network as Piper exports it"


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a part sees, in frames before and after, and how many steps it gives for a frame."""

    left: int
    right: int
    steps: int = 1


@dataclass(frozen=True, slots=True)
class LocalPart:
    """A part that is local in time: its graph, how far it sees, and which of its inputs may run along the frames."""

    part: Part
    reach: Reach
    along: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A network in parts, not loaded.

    Attributes:
        inputs: of the whole graph.
        latent: the tensor between flow and decoder.
        frames_of: the tensor of noise whose last axis is frames.
        noises: for each border between two stages, the tensor whose shape the noise has, and the noise.
        stages: the front, one more than there are noises; one without outputs has nothing to do.
        flow: from the front to the latent.
        decoder: from the latent to samples.
    """

    inputs: tuple[str, ...]
    latent: str
    frames_of: str
    noises: tuple[tuple[str, str], ...]
    stages: tuple[Part, ...]
    flow: LocalPart
    decoder: LocalPart


def cut(model: onnx.ModelProto) -> Cut:
    """Take a network apart.

    Args:
        model: checked before; it is not changed.

    Raises:
        VoiceFileError: it is not built like a VITS network.
    """
    cutter = Cutter(narrow(model))
    if len(cutter.graph_outputs) != 1:
        raise VoiceFileError(f"{_FOREIGN}: it has {len(cutter.graph_outputs)} outputs instead of one.")
    (output,) = cutter.graph_outputs
    border = _border(cutter, output, _is_local)
    noises = _noises(cutter, border)
    entering = [node.output[0] for node in noises if node.output[0] in border]
    if len(entering) != 1:
        raise VoiceFileError(f"{_FOREIGN}: {len(entering)} tensors of noise enter its flow instead of one.")
    moving = cutter.dependents(node.output[0] for node in noises)
    latents = [name for name in _border(cutter, output, _is_generator) if name in moving]
    if len(latents) != 1 or latents[0] in border:
        raise VoiceFileError(f"{_FOREIGN}: its decoder cannot be told from its flow.")
    along = cutter.dependents(_TEXT)
    return Cut(
        inputs=cutter.graph_inputs,
        latent=latents[0],
        frames_of=entering[0],
        noises=tuple((node.input[0], node.output[0]) for node in noises),
        stages=tuple(_stages(cutter, noises, border)),
        flow=_local(cutter, latents[0], border, along),
        decoder=_local(cutter, output, [latents[0], *border], along),
    )


def _noises(cutter: Cutter, border: Sequence[str]) -> list[onnx.NodeProto]:
    """The nodes that draw, all of the one kind that can be given from outside."""
    drawing = [node for node in cutter.needed(border) if is_random(node)]
    for node in drawing:
        attributes = _attributes(node)
        if node.op_type != _NOISE or attributes.get("mean", 0.0) != 0 or attributes.get("scale", 1.0) != 1:
            raise VoiceFileError(f"{_FOREIGN}: it draws numbers that are not standard normal ({node.op_type}).")
    return drawing


def _local(cutter: Cutter, output: str, given: Sequence[str], along: Collection[str]) -> LocalPart:
    part = cutter.part([output], given)
    return LocalPart(part, _reach(cutter, output, given, along), tuple(name for name in part.inputs if name in along))


def _border(cutter: Cutter, output: str, inside: Callable[[Cutter, onnx.NodeProto], bool]) -> list[str]:
    """The tensors at which what is `inside` begins, going back from an output."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [output]
    while waiting:
        name = waiting.pop()
        if not name or name in seen or cutter.is_fixed(name):
            continue
        seen.add(name)
        node = cutter.producer.get(name)
        if node is not None and inside(cutter, node):
            waiting += node.input
        else:
            found[name] = None
    return list(found)


def _is_generator(cutter: Cutter, node: onnx.NodeProto) -> bool:
    """Whether a HiFi-GAN generator has such nodes: convolutions, activations, sums, scalings by a constant."""
    moving = sum(bool(name) and not cutter.is_fixed(name) for name in node.input)
    alone = moving == 1 and node.op_type in _CONVOLUTIONS | _EACH_FRAME
    return node.op_type in _SUMS or (alone and _is_local(cutter, node))


def _is_local(cutter: Cutter, node: onnx.NodeProto) -> bool:
    """Whether a node works on each frame alone, or on a fixed neighbourhood of frames."""
    if node.op_type in _CONVOLUTIONS:
        return all(cutter.is_fixed(name) for name in node.input[1:] if name)
    attributes = _attributes(node)
    match node.op_type:
        case "Concat" | "Split":
            return bool(attributes.get("axis", 0) == _CHANNELS)
        case "Gather":
            return bool(attributes.get("axis", 0) == _CHANNELS) and cutter.is_fixed(node.input[1])
        case "Slice":
            axes = cutter.value(node.input[3]) if len(node.input) > 3 else None
            return axes is not None and list(axes) == [_CHANNELS]
        case "ConstantOfShape":  # zeros like another tensor
            shape = cutter.producer.get(node.input[0])
            return shape is not None and shape.op_type == "Shape"
        case kind:
            return kind in _EACH_FRAME


def _stages(cutter: Cutter, noises: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> list[Part]:
    """The front, cut before each noise: part k needs the noises before it, and gives what later parts need."""
    depends = [cutter.dependents(node.output) for node in noises]
    drawn = [node.output[0] for node in noises]

    def stage(name: str) -> int:
        return max((index + 1 for index, tensors in enumerate(depends) if name in tensors), default=0)

    nodes = [node for node in cutter.needed(outputs) if node.op_type != _NOISE]
    made = {name for node in nodes for name in node.output if name and not cutter.is_fixed(name)}
    last_use: dict[str, int] = {}
    for node in nodes:
        for name in reads(node):
            last_use[name] = max(stage(node.output[0]), last_use.get(name, 0))
    for index, node in enumerate(noises):
        last_use[node.input[0]] = max(index + 1, last_use.get(node.input[0], 0))
    for name in outputs:
        last_use[name] = len(noises) + 1
    parts: list[Part] = []
    given = list(drawn)
    for index in range(len(noises) + 1):
        gives = [name for name, last in last_use.items() if name in made and stage(name) == index < last]
        parts.append(cutter.part(gives, given))
        given += gives
    return parts


def _reach(cutter: Cutter, output: str, given: Sequence[str], along: Collection[str]) -> Reach:
    """Follow what a result depends on, from the output back to those given that run along the frames.

    For each tensor: how many of its own steps before and after a run of frames are needed, and how many steps of the
    result stand for one of its own. A convolution with kernel k, dilation d and padding p adds p before and
    d (k - 1) - p after. In a transposed one with stride s, step t comes from the inputs (t + p - k + 1)/s to (t + p)/s.
    """
    needs = {output: Reach(0, 0)}
    for node in reversed(cutter.needed([output], given)):
        known = [needs[name] for name in node.output if name in needs]
        if not known:
            continue
        need = _wider(known)
        if node.op_type in _CONVOLUTIONS:
            need = _widen(cutter, node, need)
        for name in node.input:
            if name in along:
                needs[name] = _wider([need, needs.get(name, need)])
    return _wider([needs[name] for name in given if name in needs])


def _wider(needs: Sequence[Reach]) -> Reach:
    """What several uses of a tensor need together."""
    steps = {need.steps for need in needs}
    if len(steps) != 1:
        raise VoiceFileError(f"{_FOREIGN}: ways of different length lead through its decoder.")
    return Reach(max(need.left for need in needs), max(need.right for need in needs), *steps)


def _widen(cutter: Cutter, node: onnx.NodeProto, need: Reach) -> Reach:
    """What the input of a convolution must hold, for its output to hold `need`."""
    attributes = _attributes(node)
    weight = cutter.value(node.input[1])
    sizes = attributes.get("kernel_shape", () if weight is None else weight.shape[2:])
    if len(sizes) != 1:
        raise VoiceFileError(f"{_FOREIGN}: a convolution in its decoder has {len(sizes)} dimensions instead of one.")
    before, after = attributes.get("pads", [0, 0])
    (dilation,), (stride,) = attributes.get("dilations", [1]), attributes.get("strides", [1])
    span = dilation * (sizes[0] - 1)
    if node.op_type == "Conv":
        if stride != 1 or before + after != span:
            raise VoiceFileError(f"{_FOREIGN}: a convolution in its decoder changes the number of frames.")
        return Reach(need.left + before, need.right + after, need.steps)
    extra = attributes.get("output_padding", [0])[0]
    if span + 1 + extra - before - after != stride:
        raise VoiceFileError(f"{_FOREIGN}: an upsampling in its decoder is not by its stride.")
    left, right = (need.left + span - before) // stride, (need.right + before - 1) // stride + 1
    return Reach(max(0, left), max(0, right), need.steps * stride)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {item.name: helper.get_attribute_value(item) for item in node.attribute}
