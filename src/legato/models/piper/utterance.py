"""One piece of speech going through a Piper network."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from legato.core.events import NO_AUDIO, Pcm
from legato.core.windows import WindowPlanner, WindowSpec
from legato.models.noise import NormalNoise
from legato.models.piper.config import VoiceConfig
from legato.models.piper.network import Network

Ids = NDArray[np.int64]

_GROWTH = 4  # a block is this much longer than the one before: contexts cost, and the listener has something to play


class Utterance:
    """Phoneme ids on their way to samples.

    Args:
        network: shared, and not changed.
        config: the voice's scales.
        ids: phonemes [n], with pads, as `encode` gives them.
        speaker: number of the speaker; ignored by voices with one.
        speed: 2.0 speaks twice as fast.
        key: seeds the noise.
    """

    def __init__(
        self, network: Network, config: VoiceConfig, ids: Ids, *, speaker: int, speed: float, key: tuple[int, ...]
    ) -> None:
        self._network = network
        scales = [config.noise_scale, config.length_scale / speed, config.noise_w]
        feed: dict[str, NDArray[np.generic]] = {
            "input": ids[None],
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array(scales, np.float32),
            "sid": np.array([speaker], np.int64),
        }
        self._feed = {name: feed[name] for name in network.inputs}
        self._noise = NormalNoise(key)

    def steps(self, first: int, window: int) -> Iterator[Pcm]:
        """Yield the samples, untrimmed; the steps of the front and of the flow yield none.

        How many frames a step makes changes nothing about the samples beyond the rounding of float32.

        Args:
            first: frames in the first block.
            window: frames in a later block at most; blocks grow to it.
        """
        network = self._network
        values = dict(self._feed)
        for _ in network.front(values, self._noise):
            yield NO_AUDIO
        frames = network.frames(values)
        reach = network.decoder.reach
        spec = WindowSpec(min(first, window), window, reach.left, reach.right, growth=_GROWTH)
        planner = WindowPlanner(spec)
        known = 0  # frames whose latent is there
        for block in (*planner.push(frames), *planner.flush()):
            if known < block.end:
                # More than the block needs, for the flow's context is wide; but not before there is sound.
                stop = min(frames, block.end + window) if known else block.end
                latent = network.flow.run(values, frames, known, stop)
                if not known:
                    values[network.latent] = np.zeros((*latent.shape[:2], frames), np.float32)
                values[network.latent][..., known:stop] = latent
                known = stop
                yield NO_AUDIO
            yield network.decoder.run(values, frames, block.start, block.stop).reshape(-1)
