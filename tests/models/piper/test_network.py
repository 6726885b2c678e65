"""A VITS export in parts gives what it gives whole, a part sees as far as it says, and what is no VITS is refused."""

import copy
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from legato.errors import VoiceFileError
from legato.models.noise import NormalNoise
from legato.models.piper.cut import Reach, cut
from legato.models.piper.network import Local, Network
from legato.models.piper.phonemes import encode
from legato.models.piper.store import VoiceStore
from legato.models.session import Session
from tests.models.piper.test_tiny_vits import VOICES, phonemes
from tests.models.piper.tiny_vits import FLOW_KERNEL, FLOW_LAYERS, FLOWS, tiny_voice

SCALES = (0.667, 1.0, 0.8)
FLOW_REACH = FLOWS * sum(2**layer * (FLOW_KERNEL - 1) // 2 for layer in range(FLOW_LAYERS))
CASES = [(name, names) for name in VOICES for names in ("piper", "other")]
Values = dict[str, np.ndarray]


@cache
def model_of(name: str, names: str = "piper", **more: Any) -> onnx.ModelProto:
    return tiny_voice(**VOICES[name] | {"names": names} | more)[0]


@cache
def network_of(name: str, names: str = "piper", **more: Any) -> Network:
    return Network(cut(model_of(name, names, **more)))


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(case).replace(" ", "-"))
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


def feed(network: Network, ids: np.ndarray, *, scales: Sequence[float] = SCALES, speaker: int = 0) -> Values:
    given = {
        "input": ids[None],
        "input_lengths": np.array([len(ids)]),
        "scales": np.array(scales, np.float32),
        "sid": np.array([speaker]),
    }
    return {name: given[name] for name in network.inputs}


def front(network: Network, values: Values, key: int = 0) -> list[np.ndarray]:
    """Run the front; return the noises that it drew."""
    noise, drawn = NormalNoise((key,)), []

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        drawn.append(noise(shape))
        return drawn[-1]

    assert len(list(network.front(values, draw))) == 3  # up to the durations, to the frames, to the flow
    return drawn


def say(network: Network, values: Values) -> np.ndarray:
    """The front is done: flow and decoder, whole."""
    frames = network.frames(values)
    latent = network.flow.run(values, frames, 0, frames)
    return network.decoder.run(values | {network.latent: latent}, frames, 0, frames).reshape(-1)


def given_noise(model: onnx.ModelProto) -> tuple[Session, list[str]]:
    """The whole graph, but its noise comes from outside; and the names of that."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    drawing = [node for node in whole.graph.node if node.op_type == "RandomNormalLike"]
    for node in drawing:
        whole.graph.node.remove(node)
        whole.graph.input.append(helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None))
    return Session(whole.SerializeToString()), [node.output[0] for node in drawing]


def test_the_parts_equal_the_whole_graph(case: tuple[str, str]) -> None:
    network = network_of(*case)
    whole, names = given_noise(model_of(*case))
    for count, speed, speaker in ((1, 1.0, 0), (30, 0.7, 0), (61, 2.0, 1)):
        values = feed(network, phonemes(count), scales=(0.667, speed, 0.8), speaker=speaker)
        given = dict(values)
        drawn = front(network, values)
        (expected,) = whole.run(None, given | dict(zip(names, drawn, strict=True)))
        np.testing.assert_allclose(say(network, values), expected.reshape(-1), atol=1e-5, rtol=0)
        assert np.abs(expected).max() > 0.01


def test_the_parts_of_a_real_voice_equal_its_whole_graph(voices: VoiceStore) -> None:
    model, voice = voices.load("joe")
    network = Network(cut(model))
    assert network.flow.reach == Reach(32, 32, 1)  # 4 couplings of 4 convolutions, kernel 5
    assert network.decoder.reach == Reach(11, 11, 256)
    ids = encode("ðə kwˈɪk bɹˈaʊn fˈɑːks.", voice.config.phoneme_id_map)
    values = feed(network, ids)
    whole, names = given_noise(model)
    given = dict(values)
    drawn = front(network, values)
    (expected,) = whole.run(None, given | dict(zip(names, drawn, strict=True)))
    # Larger sums than in the tiny voices, and onnxruntime fuses the whole graph otherwise than its parts.
    np.testing.assert_allclose(say(network, values), expected.reshape(-1), atol=1e-4, rtol=0)


def hop_of(name: str) -> int:
    return math.prod(stride for stride, _ in VOICES[name].get("upsample", ((8, 16), (4, 8))))


def decoder_reach(name: str) -> int:
    """By hand, from HiFi-GAN's definition, in whole frames: all its layers are symmetric."""
    options = VOICES[name]
    kernels, dilations = options.get("kernels", (3, 5)), options.get("dilations", ((1, 3), (1, 3)))
    both = options.get("resblock", "1") == "1"  # a plain convolution follows each dilated one
    block = max(
        sum((step + both) * (kernel - 1) // 2 for step in steps)
        for kernel, steps in zip(kernels, dilations, strict=True)
    )
    reach = 3  # conv_post
    for stride, kernel in reversed(options.get("upsample", ((8, 16), (4, 8)))):
        # Sample t comes from the inputs i with |t - i * stride - (stride - 1) / 2| <= (kernel - 1) / 2.
        reach = (reach + block + (kernel + stride) // 2 - 1) // stride
    return reach + 3  # conv_pre


def test_flow_and_decoder_are_found(case: tuple[str, str]) -> None:
    network = network_of(*case)
    name = case[0]
    assert network.flow.reach == Reach(FLOW_REACH, FLOW_REACH, 1)
    assert network.decoder.reach == Reach(decoder_reach(name), decoder_reach(name), hop_of(name))
    values = feed(network, phonemes(20))
    front(network, values)
    frames = network.frames(values)
    assert network.flow.run(values, frames, 0, frames).shape == (1, 8, frames)
    # The decoder needs the latent, and the speaker where there are several: no other tensor of the flow.
    many = VOICES[name].get("speakers", 1) > 1
    for part, at_least in ((network.decoder, {network.latent}), (network.flow, set())):
        needed = set(part._inputs)
        assert needed >= at_least
        assert needed - {network.latent} <= values.keys()
    assert len(network.decoder._inputs) == 1 + many


def moved(part: Local, values: Values, frames: int, name: str, at: int) -> np.ndarray:
    """Which steps of the result change, by how much, when one frame of an input does. All frames at once."""
    other = values[name].copy()
    other[..., at] += 1
    before, after = (part.run(values | {name: value}, frames, 0, frames) for value in (values[name], other))
    changed = np.abs(after - before).max(axis=(0, 1))
    return changed.reshape(frames, -1).max(axis=1)


def test_each_part_sees_as_far_as_it_says(case: tuple[str, str]) -> None:
    """Another frame changes what is within reach and, to the bit, nothing beyond."""
    network = network_of(*case)
    values = feed(network, phonemes(60), scales=(0.667, 1.5, 0.8))
    front(network, values)
    frames = network.frames(values)
    values[network.latent] = network.flow.run(values, frames, 0, frames)
    for part, name in ((network.flow, network._frames_of), (network.decoder, network.latent)):
        reach, at = part.reach, frames // 2
        assert reach.left < at < frames - reach.right
        changed = np.flatnonzero(moved(part, values, frames, name, at))
        assert at - reach.right <= changed.min()
        assert changed.max() <= at + reach.left
        # Tight: the outermost frames are not imagined. A whole frame is the unit, so some of it may be unused,
        # and the last of a long chain of small factors may round away.
        assert changed.min() <= at - reach.right + 1
        assert changed.max() >= at + reach.left - 1


def test_windows_equal_the_whole_and_need_their_context(case: tuple[str, str]) -> None:
    network = network_of(*case)
    values = feed(network, phonemes(60))
    front(network, values)
    frames = network.frames(values)
    values[network.latent] = network.flow.run(values, frames, 0, frames)
    for part in (network.flow, network.decoder):
        whole = part.run(values, frames, 0, frames)
        steps = part.reach.steps
        assert whole.shape[-1] == frames * steps
        for start, stop in ((0, 1), (0, 7), (20, 21), (33, 60), (frames - 3, frames)):
            window = part.run(values, frames, start, stop)
            np.testing.assert_allclose(window, whole[..., start * steps : stop * steps], atol=1e-6, rtol=0)
        blind = copy.copy(part)
        blind.reach = Reach(part.reach.left // 2, part.reach.right // 2, steps)
        middle = frames // 2
        wrong = blind.run(values, frames, middle, middle + 1) - whole[..., middle * steps : (middle + 1) * steps]
        assert np.abs(wrong).max() > 1e-5


@pytest.mark.parametrize("names", ["piper", "other"])
def test_the_speaker_reaches_every_part(names: str) -> None:
    network = network_of("speakers", names)
    told = []
    for speaker in range(3):
        values = feed(network, phonemes(30), speaker=speaker)
        front(network, values)
        told.append((network.frames(values), say(network, values)))
    assert len({frames for frames, _ in told}) > 1
    assert len({sound.tobytes() for _, sound in told}) == 3
    # The decoder alone: the same latent, another speaker.
    values, other = (feed(network, phonemes(30), speaker=speaker) for speaker in (0, 1))
    front(network, values)
    front(network, other)
    frames = network.frames(values)
    values[network.latent] = network.flow.run(values, frames, 0, frames)
    condition = next(name for name in network.decoder._inputs if name != network.latent)
    one = network.decoder.run(values, frames, 0, frames)
    two = network.decoder.run(values | {condition: other[condition]}, frames, 0, frames)
    assert np.abs(one - two).max() > 1e-3


@pytest.mark.parametrize("names", ["piper", "other"])
def test_a_speaker_as_wide_as_there_are_frames(names: str) -> None:
    """Its embedding [1, gin] is not cut into windows, though its last axis is as long as the frames are."""
    probe = network_of("speakers", names, gin=64)
    for key in range(100):
        values = feed(probe, phonemes(20))
        front(probe, values, key)
        if probe.frames(values) == 64:
            break
    else:
        pytest.fail("no text of that length")
    values[probe.latent] = probe.flow.run(values, 64, 0, 64)
    assert any(value.shape == (1, 64) for value in values.values())
    for part in (probe.flow, probe.decoder):
        whole, steps = part.run(values, 64, 0, 64), part.reach.steps
        np.testing.assert_allclose(part.run(values, 64, 30, 32), whole[..., 30 * steps : 32 * steps], atol=1e-6)


def test_the_front_gives_a_later_part_what_it_needs(case: tuple[str, str]) -> None:
    network = network_of(*case)
    have = set(network.inputs)
    for index, (outputs, inputs, session) in enumerate(network._stages):
        assert have >= set(inputs)
        assert have.isdisjoint(outputs), "computed twice"
        have.update(outputs)
        assert session is not None or not outputs
        if index < len(network._noises):
            like, name = network._noises[index]
            assert like in have
            have.add(name)
    assert have >= set(network.flow._inputs)
    assert have | {network.latent} >= set(network.decoder._inputs)


def test_an_utterance_leaves_nothing_behind() -> None:
    network = network_of("default")
    sounds = []
    for count in (20, 30, 20):
        values = feed(network, phonemes(count))
        front(network, values)
        sounds.append(say(network, values).tobytes())
    assert sounds[0] == sounds[2]


# Other ways to write the same graph.


def changed(model: onnx.ModelProto, change: Callable[[onnx.GraphProto], None]) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    change(copy.graph)
    onnx.checker.check_model(copy)
    return copy


def assert_same(model: onnx.ModelProto) -> None:
    sounds = []
    for network in (Network(cut(model)), network_of("default")):
        values = feed(network, phonemes(40))
        front(network, values)
        sounds.append(say(network, values))
        assert network.decoder.reach == network_of("default").decoder.reach
    np.testing.assert_allclose(*sounds, atol=1e-5, rtol=0)


def weights_as_constants(graph: onnx.GraphProto) -> None:
    nodes = [helper.make_node("Constant", [], [weight.name], value=weight) for weight in graph.initializer]
    nodes += graph.node
    del graph.initializer[:], graph.node[:]
    graph.node.extend(nodes)


def no_kernel_shape(graph: onnx.GraphProto) -> None:
    for node in graph.node:
        for item in [item for item in node.attribute if item.name in ("kernel_shape", "group")]:
            node.attribute.remove(item)


def weights_through_identity(graph: onnx.GraphProto) -> None:
    """As torch writes a weight that equals another one."""
    shared = [helper.make_node("Identity", [weight.name], [f"again {weight.name}"]) for weight in graph.initializer]
    for node in graph.node:
        if node.op_type in ("Conv", "ConvTranspose"):
            node.input[1] = f"again {node.input[1]}"
    nodes = [*shared, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def squeeze_in_a_branch(graph: onnx.GraphProto) -> None:
    """As torch writes `squeeze(1)` of an axis whose length it does not know: an If that looks at it first."""
    at, squeeze = next((i, node) for i, node in enumerate(graph.node) if node.op_type == "Squeeze")
    out = [helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)]
    yes = helper.make_graph([helper.make_node("Squeeze", list(squeeze.input), ["inner"])], "yes", [], out)
    no = helper.make_graph([helper.make_node("Identity", [squeeze.input[0]], ["inner"])], "no", [], out)
    graph.initializer.append(numpy_helper.from_array(np.array(True), "always"))
    graph.node.remove(squeeze)
    graph.node.insert(at, helper.make_node("If", ["always"], list(squeeze.output), then_branch=yes, else_branch=no))


@pytest.mark.parametrize(
    "change", [weights_as_constants, no_kernel_shape, weights_through_identity, squeeze_in_a_branch]
)
def test_another_exporter(change: Callable[[onnx.GraphProto], None]) -> None:
    assert_same(changed(model_of("default"), change))


def two_upsamplings(graph: onnx.GraphProto) -> None:
    """Side by side, summed: the hop is still one stride, not the product of both."""
    up = last(graph, "ConvTranspose")
    again, both = onnx.NodeProto(), helper.make_node("Add", ["one", "two"], list(up.output))
    again.CopyFrom(up)
    again.name = "again"
    up.output[0], again.output[0] = "one", "two"
    at = list(graph.node).index(up)
    graph.node.insert(at, again)
    graph.node.insert(at + 2, both)


def test_upsamplings_side_by_side() -> None:
    model = changed(model_of("default"), two_upsamplings)
    network = Network(cut(model))
    assert network.decoder.reach == network_of("default").decoder.reach
    values = feed(network, phonemes(30))
    whole, names = given_noise(model)
    drawn = front(network, values)
    (expected,) = whole.run(None, feed(network, phonemes(30)) | dict(zip(names, drawn, strict=True)))
    np.testing.assert_allclose(say(network, values), expected.reshape(-1), atol=1e-5, rtol=0)


# What is refused.


def classifier(draw: int) -> onnx.ModelProto:
    """Some network that is no voice, with a voice's inputs."""
    chance = np.random.default_rng(draw)
    width = int(chance.integers(2, 9))
    nodes = [helper.make_node("Gather", ["table", "input"], ["x0"])]
    if chance.random() < 0.5:
        nodes += [
            helper.make_node("RandomNormalLike", ["x0"], ["dropped"]),
            helper.make_node("Mul", ["x0", "dropped"], ["x"]),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["x0"], ["x"]))
    here = "x"
    for layer in range(int(chance.integers(1, 5))):
        kind = chance.choice(["Relu", "Tanh", "Softmax", "MatMul", "Transpose"])
        inputs = [here, "square"] if kind == "MatMul" else [here]
        more = {"perm": [0, 1, 2]} if kind == "Transpose" else {}
        here = f"layer {layer}"
        nodes.append(helper.make_node(kind, inputs, [here], **more))
    nodes.append(helper.make_node("ReduceMean", [here], ["output"], axes=[1], keepdims=0))
    arrays = {"table": chance.standard_normal((40, width)), "square": chance.standard_normal((width, width))}
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "classifier",
        [
            info("input", TensorProto.INT64, ["batch", "phonemes"]),
            info("input_lengths", TensorProto.INT64, ["batch"]),
            info("scales", TensorProto.FLOAT, [3]),
        ],
        [info("output", TensorProto.FLOAT, ["batch", "classes"])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize("draw", range(20))
def test_a_classifier_is_refused(draw: int) -> None:
    with pytest.raises(VoiceFileError, match="This is not a VITS network as Piper exports it: "):
        Network(cut(classifier(draw)))


def last(graph: onnx.GraphProto, kind: str, place: str = "") -> onnx.NodeProto:
    return [node for node in graph.node if node.op_type == kind and place in node.name][-1]


def replace(node: onnx.NodeProto, **attributes: Any) -> None:
    for name, value in attributes.items():
        for item in [item for item in node.attribute if item.name == name]:
            node.attribute.remove(item)
        node.attribute.append(helper.make_attribute(name, value))


def zeros_for_noise(graph: onnx.GraphProto) -> None:
    for node in graph.node:
        if node.op_type == "RandomNormalLike":
            node.op_type = "Sub"
            node.input.append(node.input[0])
            del node.attribute[:]


def noise_in_the_durations_only(graph: onnx.GraphProto) -> None:
    node = last(graph, "RandomNormalLike")
    node.op_type = "Neg"
    del node.attribute[:]


def louder_noise(graph: onnx.GraphProto) -> None:
    replace(last(graph, "RandomNormalLike"), scale=2.0)


def uniform_noise(graph: onnx.GraphProto) -> None:
    next(node for node in graph.node if node.op_type == "RandomNormalLike").op_type = "RandomUniformLike"


def noise_in_the_decoder(graph: onnx.GraphProto) -> None:
    post = last(graph, "Conv", "dec/conv_post")
    at = list(graph.node).index(post)
    source = post.input[0]
    post.input[0] = "noisy"
    graph.node.insert(at, helper.make_node("RandomNormalLike", [source], ["hiss"]))
    graph.node.insert(at + 1, helper.make_node("Add", [source, "hiss"], ["noisy"]))


def shorter_decoder(graph: onnx.GraphProto) -> None:
    replace(last(graph, "Conv", "dec/conv_post"), pads=[0, 0])


def strided_decoder(graph: onnx.GraphProto) -> None:
    replace(last(graph, "Conv", "dec/conv_post"), strides=[2])


def odd_upsampling(graph: onnx.GraphProto) -> None:
    replace(last(graph, "ConvTranspose"), pads=[1, 1])


def flat_convolution(graph: onnx.GraphProto) -> None:
    """In two dimensions."""
    post = last(graph, "Conv", "dec/conv_post")
    at = list(graph.node).index(post)
    weight = next(item for item in graph.initializer if item.name == post.input[1])
    weight.dims.insert(2, 1)
    axis = numpy_helper.from_array(np.array([2]), "axis two")
    graph.initializer.append(axis)
    source, target = post.input[0], post.output[0]
    post.input[0], post.output[0] = "flat", "flat out"
    replace(post, kernel_shape=[1, 7], pads=[0, 3, 0, 3], strides=[1, 1], dilations=[1, 1])
    graph.node.insert(at, helper.make_node("Unsqueeze", [source, "axis two"], ["flat"]))
    graph.node.insert(at + 2, helper.make_node("Squeeze", ["flat out", "axis two"], [target]))


def ways_of_different_length(graph: onnx.GraphProto) -> None:
    post, up = last(graph, "Conv", "dec/conv_post"), last(graph, "ConvTranspose")
    at = list(graph.node).index(post)
    source = post.input[0]
    post.input[0] = "both"
    graph.node.insert(at, helper.make_node("Add", [source, up.input[0]], ["both"]))


def two_outputs(graph: onnx.GraphProto) -> None:
    graph.output.append(helper.make_tensor_value_info(last(graph, "Exp").output[0], TensorProto.FLOAT, ["a", "b", "c"]))


def attention_at_the_end(graph: onnx.GraphProto) -> None:
    """What sees all frames at once cannot be streamed."""
    tanh = last(graph, "Tanh")
    tanh.op_type = "Softmax"
    replace(tanh, axis=2)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (zeros_for_noise, "0 tensors of noise"),
        (noise_in_the_durations_only, "0 tensors of noise"),
        (louder_noise, "not standard normal"),
        (uniform_noise, "not standard normal"),
        (noise_in_the_decoder, "2 tensors of noise"),
        (shorter_decoder, "changes the number of frames"),
        (strided_decoder, "changes the number of frames"),
        (odd_upsampling, "not by its stride"),
        (flat_convolution, "2 dimensions"),
        (ways_of_different_length, "ways of different length"),
        (two_outputs, "2 outputs"),
        (attention_at_the_end, "0 tensors of noise"),
    ],
    ids=lambda item: item.__name__ if callable(item) else "",
)
def test_what_is_built_otherwise_is_refused(change: Callable[[onnx.GraphProto], None], reason: str) -> None:
    model = changed(model_of("default"), change)
    with pytest.raises(VoiceFileError, match=reason) as caught:
        Network(cut(model))
    assert caught.value.message.startswith("This is not a VITS network as Piper exports it: ")
