"""What an audio format is, and those that Legato writes.

A new format is one file with a class that follows `Encoder`, and one line in `FORMATS`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from legato.core.events import Pcm
from legato.wire.pcm import PcmEncoder
from legato.wire.wav import WavEncoder


class Encoder(Protocol):
    """Writes one mono stream in one format: `header`, then each `push`, then `flush`, joined in this order.

    The joined bytes do not depend on how the samples were cut into pushes. A push returns whole frames of the format
    as early as the format can give them.
    """

    @property
    def mime(self) -> str:
        """The Content-Type."""
        ...

    def header(self, samples: int | None = None) -> bytes:
        """Return the bytes before the audio, for a stream of `samples` samples; None if nobody knows how many.

        It may be asked last, when the length is known, and put in front: it does not depend on what was pushed.
        """
        ...

    def push(self, pcm: Pcm) -> bytes:
        """Encode the next samples; return what is complete, maybe nothing."""
        ...

    def flush(self) -> bytes:
        """The audio has ended: return the rest."""
        ...


FORMATS: Final[Mapping[str, Callable[[int], Encoder]]] = MappingProxyType({"wav": WavEncoder, "pcm": PcmEncoder})
"""By the name that OpenAI's `response_format` has; each is called with the sample rate in Hz."""

DEFAULT_FORMAT: Final = "wav"
