"""A Piper network that is loaded: its front, its flow and its decoder. See `cut` for what they are."""

from collections.abc import Callable, Iterator, Mapping

from legato.models.onnx_graph import Array
from legato.models.piper.cut import Cut, LocalPart
from legato.models.session import Session

Noise = Callable[[tuple[int, ...]], Array]
"""Gives the next standard normal numbers of a shape, float32."""


class Local:
    """A part that is local in time, loaded."""

    def __init__(self, local: LocalPart) -> None:
        self._session = Session(local.part.model)
        self._inputs = local.part.inputs
        self._along = frozenset(local.along)
        self.reach = local.reach

    def run(self, values: Mapping[str, Array], frames: int, start: int, stop: int) -> Array:
        """Frames [start, stop) of the result, exactly as if all `frames` were run at once.

        Inputs whose last axis is frames are cut to the window; others (a speaker, a scale) are given whole.
        """
        low, high = max(0, start - self.reach.left), min(frames, stop + self.reach.right)
        feed = {
            name: value[..., low:high] if name in self._along and value.shape[-1:] == (frames,) else value
            for name, value in ((name, values[name]) for name in self._inputs)
        }
        (result,) = self._session.run(None, feed)
        steps = self.reach.steps
        window: Array = result.reshape(*result.shape[:2], -1)[..., (start - low) * steps : (stop - low) * steps]
        return window


class Network:
    """The parts, loaded. No state of any utterance."""

    def __init__(self, cut: Cut) -> None:
        self.latent = cut.latent
        self.inputs = cut.inputs
        self._frames_of = cut.frames_of
        self._noises = cut.noises
        self._stages = [
            (part.outputs, part.inputs, Session(part.model) if part.outputs else None) for part in cut.stages
        ]
        self.flow = Local(cut.flow)
        self.decoder = Local(cut.decoder)

    def front(self, values: dict[str, Array], noise: Noise) -> Iterator[None]:
        """Run the front, a part a step.

        Args:
            values: the graph's inputs by name; what `flow` and `decoder` need is added.
            noise: draws; asked in the order of the parts.
        """
        for index, (outputs, inputs, session) in enumerate(self._stages):
            if session is not None:
                made = session.run(outputs, {name: values[name] for name in inputs})
                values.update(zip(outputs, made, strict=True))
            if index < len(self._noises):
                like, name = self._noises[index]
                values[name] = noise(values[like].shape)
            yield

    def frames(self, values: Mapping[str, Array]) -> int:
        """How many frames an utterance has, when its front is done."""
        return int(values[self._frames_of].shape[2])
