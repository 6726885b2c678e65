"""From what a configuration says in milliseconds to what a session needs in samples."""

from collections.abc import Callable

from legato.config import DeliverySection
from legato.core.chunker import ChunkSpec
from legato.core.session import Delivery, Pauses

Deliver = Callable[[int], Delivery]
"""Makes the delivery for a sample rate, which is known when the engine is loaded."""


def deliver(section: DeliverySection | None = None) -> Deliver:
    """Return the delivery that a section describes; hydraulic chunks as fast as they are taken, by default."""
    section = section or DeliverySection()
    pauses = section.pauses

    def at(sample_rate: int) -> Delivery:
        return Delivery(
            chunks=ChunkSpec.from_ms(
                sample_rate,
                minimum_ms=section.min_chunk_ms,
                maximum_ms=section.max_chunk_ms,
                first_ms=section.first_chunk_ms,
            ),
            high_water=section.waiting_ms / 1000,
            pauses=Pauses(
                phrase=pauses.phrase_ms / 1000,
                clause=pauses.clause_ms / 1000,
                sentence=pauses.sentence_ms / 1000,
                paragraph=pauses.paragraph_ms / 1000,
            ),
        )

    return at
