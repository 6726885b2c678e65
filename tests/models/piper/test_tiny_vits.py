"""The tiny voices are sound: they follow Piper's interface, speak at every length and answer to every control."""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.models.piper.tiny_vits import PHONEMES, tiny_voice, write

STILL = (0.0, 1.0, 0.0)  # no noise: the same sound every time
VOICES: dict[str, dict[str, Any]] = {
    "default": {},
    "seed": {"seed": 7},
    "medium": {
        "upsample": ((8, 16), (8, 16), (4, 8)),
        "resblock": "2",
        "kernels": (3, 5, 7),
        "dilations": ((1, 2), (2, 6), (3, 12)),
    },
    "high": {"upsample": ((4, 8), (2, 4), (2, 4)), "kernels": (3, 7), "dilations": ((1, 3, 5), (1, 3, 5))},
    "speakers": {"speakers": 3, "gin": 6},
    "foreign": {"speakers": 2, "names": "other", "resblock": "2", "upsample": ((5, 11), (3, 7), (2, 4))},
    "one resblock": {"kernels": (5,), "dilations": ((1, 2, 4),), "upsample": ((6, 12),)},
    "opset 13": {"opset": 13},
    "opset 18": {"opset": 18, "names": "other"},
}


@dataclass(frozen=True)
class Voice:
    options: dict[str, Any]
    model: onnx.ModelProto
    config: dict[str, Any]

    @property
    def hop(self) -> int:
        return math.prod(stride for stride, _ in self.options.get("upsample", ((8, 16), (4, 8))))

    @property
    def speakers(self) -> int:
        return self.options.get("speakers", 1)

    @cached_property
    def z(self) -> onnx.NodeProto:
        """The node before the decoder: the first product on the way back from the sound."""
        made_by = {name: node for node in self.model.graph.node for name in node.output}
        node = made_by["output"]
        while node.op_type != "Mul":
            node = made_by[node.input[0]]
        return node

    @cached_property
    def session(self) -> onnxruntime.InferenceSession:
        """Runs the model with z as a second output."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        model.graph.output.append(onnx.ValueInfoProto(name=self.z.output[0]))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def run(self, ids: np.ndarray, scales=STILL, speaker: int = 0, length: int | None = None) -> list[np.ndarray]:
        """Sound [1,1,1,T*hop] and z [1,C,T]."""
        feeds = {
            "input": ids[None],
            "input_lengths": np.array([length or len(ids)]),
            "scales": np.array(scales, np.float32),
        }
        if self.speakers > 1:
            feeds["sid"] = np.array([speaker])
        return self.session.run(None, feeds)

    def say(self, ids: np.ndarray, scales=STILL, speaker: int = 0, length: int | None = None) -> np.ndarray:
        return self.run(ids, scales, speaker, length)[0][0, 0, 0]


def phonemes(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, len(PHONEMES), count)


@pytest.fixture(scope="module", params=VOICES, ids=lambda name: name.replace(" ", "-"))
def voice(request: pytest.FixtureRequest) -> Voice:
    options = VOICES[request.param]
    return Voice(options, *tiny_voice(**options))


@pytest.fixture(scope="module")
def many() -> Voice:
    options = VOICES["speakers"]
    return Voice(options, *tiny_voice(**options))


def test_the_model_is_valid_and_small(voice: Voice) -> None:
    onnx.checker.check_model(voice.model, full_check=True)
    assert voice.model.ByteSize() < 200_000
    names = ["input", "input_lengths", "scales"] + ["sid"] * (voice.speakers > 1)
    assert [value.name for value in voice.model.graph.input] == names
    assert [value.name for value in voice.model.graph.output] == ["output"]


@pytest.mark.parametrize("count", [1, 2, 13, 60])
def test_it_speaks_at_every_length(voice: Voice, count: int) -> None:
    sound, z = voice.run(phonemes(count), (0.667, 1.0, 0.8))
    assert sound.dtype == np.float32
    assert sound.shape == (1, 1, 1, z.shape[2] * voice.hop)
    assert z.shape[2] >= count
    assert np.isfinite(sound).all()
    assert 0.005 < sound.std() < 0.3
    assert np.abs(sound).max() < 0.995
    assert 0.2 < z.std() < 3


def test_the_decoder_hangs_on_a_product_of_two_dynamic_tensors(voice: Voice) -> None:
    fixed = {weight.name for weight in voice.model.graph.initializer}
    fixed |= {node.output[0] for node in voice.model.graph.node if node.op_type == "Constant"}
    assert len(voice.z.input) == 2
    assert fixed.isdisjoint(voice.z.input)


def test_without_noise_it_repeats_itself_and_with_noise_it_does_not(voice: Voice) -> None:
    ids = phonemes(30)
    assert np.array_equal(voice.say(ids), voice.say(ids))
    first, second = (voice.say(ids, (0.667, 1.0, 0.0)) for _ in range(2))
    assert first.shape == second.shape
    assert not np.allclose(first, second, atol=1e-2)
    assert len({len(voice.say(ids, (0.0, 1.0, 0.8))) for _ in range(10)}) > 1


def test_a_longer_length_scale_lasts_longer(voice: Voice) -> None:
    lengths = [len(voice.say(phonemes(30), (0.0, scale, 0.0))) for scale in (0.5, 1.0, 1.5, 3.0)]
    assert lengths == sorted(set(lengths))


def test_every_phoneme_is_heard(voice: Voice) -> None:
    ids = phonemes(20)
    other = ids.copy()
    other[10] = (ids[10] + 1) % len(PHONEMES)
    assert voice.say(ids).tobytes() != voice.say(other).tobytes()


def test_padding_is_silent(voice: Voice) -> None:
    ids = phonemes(20)
    np.testing.assert_allclose(voice.say(np.append(ids, [5, 6, 7]), length=20), voice.say(ids), atol=1e-5)


def test_speakers_differ_in_the_front_and_in_the_decoder(many: Voice) -> None:
    ids = phonemes(30)
    sounds = [many.say(ids, speaker=speaker).tobytes() for speaker in range(3)]
    assert len(set(sounds)) == 3
    lengths = {len(sound) for sound in sounds}
    assert len(lengths) > 1

    # Give the decoder alone another speaker: the same z, another sound.
    decoder = onnx.ModelProto()
    decoder.CopyFrom(many.model)
    (gather,) = [node for node in decoder.graph.node if "sid" in node.input]
    (spread,) = [node for node in decoder.graph.node if gather.output[0] in node.input]
    (told,) = [node for node in decoder.graph.node if spread.output[0] in node.input and "/dec/" in node.name]
    told.input[0] = "g"
    decoder.graph.input.append(onnx.helper.make_tensor_value_info("g", onnx.TensorProto.FLOAT, [1, 6, 1]))
    decoder.graph.output.append(onnx.ValueInfoProto(name=many.z.output[0]))
    session = onnxruntime.InferenceSession(decoder.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {
        "input": ids[None],
        "input_lengths": np.array([30]),
        "scales": np.array(STILL, np.float32),
        "sid": np.array([0]),
    }
    (one, z), (two, same) = (session.run(None, feeds | {"g": np.full((1, 6, 1), g, np.float32)}) for g in (1, -1))
    np.testing.assert_array_equal(z, same)
    assert np.abs(one - two).max() > 0.01


def test_names_change_nothing_but_names() -> None:
    options = {"seed": 3, "speakers": 2}
    ours, theirs = (Voice(options, *tiny_voice(**options, names=names)) for names in ("piper", "other"))
    ids = phonemes(30)
    np.testing.assert_allclose(ours.say(ids, speaker=1), theirs.say(ids, speaker=1), atol=1e-6)
    shared = {name for node in ours.model.graph.node for name in (*node.input, *node.output)}
    shared &= {name for node in theirs.model.graph.node for name in (*node.input, *node.output)}
    assert shared - {""} == {"input", "input_lengths", "scales", "sid", "output"}
    kinds = [[node.op_type for node in voice.model.graph.node] for voice in (ours, theirs)]
    kinds[1] = [kind for kind in kinds[1] if kind != "Constant"]
    assert kinds[0] != kinds[1]
    assert sorted(kinds[0]) == sorted(kinds[1])


@pytest.mark.parametrize("names", ["piper", "other"])
def test_equal_arguments_give_equal_voices(names: str) -> None:
    first, second, other = (tiny_voice(seed=seed, names=names) for seed in (1, 1, 2))
    assert first == second
    assert first[0] != other[0]


def test_it_lies_on_disk_as_piper_voices_do(tmp_path: Path) -> None:
    model, config = tiny_voice(speakers=2, symbols=64, sample_rate=22050)
    path = write(tmp_path, model, config)
    assert onnx.load(path) == model
    read = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
    assert read == config
    assert (read["audio"]["sample_rate"], read["num_symbols"], read["num_speakers"]) == (22050, 64, 2)
    assert read["speaker_id_map"] == {"voice0": 0, "voice1": 1}
    assert read["inference"].keys() == {"noise_scale", "length_scale", "noise_w"}
    assert [read["phoneme_id_map"][mark] for mark in "_^$"] == [[0], [1], [2]]
    assert set("abcdefghijklmnopqrstuvwxyzˈː.,? ") <= read["phoneme_id_map"].keys()


@pytest.mark.parametrize(
    "wrong",
    [
        {"channels": 7},
        {"symbols": 10},
        {"speakers": 0},
        {"opset": 11},
        {"resblock": "3"},
        {"names": "none"},
        {"kernels": (3,)},
        {"kernels": (4, 5)},
        {"upsample": ()},
        {"upsample": ((8, 15),)},
        {"upsample": ((8, 4),)},
    ],
)
def test_an_impossible_voice_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|need|unknown"):
        tiny_voice(**wrong)
