"""How onnxruntime is run here: one thread, no spinning, nothing printed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnxruntime
from numpy.typing import NDArray

Array = NDArray[Any]


class Session:
    """A loaded graph, run on the calling thread alone.

    One thread per step, and several steps side by side, beat one step on several threads for graphs this small:
    a pool would wake up for microseconds of work, and onnxruntime would take its size from the host, not from the
    container's quota. The arena stays on (8 % of a step is page faults without it): segments and windows are bounded,
    so it is too.
    """

    def __init__(self, model: bytes | Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            model if isinstance(model, bytes) else str(model), options, providers=["CPUExecutionProvider"]
        )

    def run(self, fetch: Sequence[str] | None, feed: Mapping[str, Array]) -> list[Array]:
        """Run the graph; `fetch=None` gives every output."""
        values: list[Array] = self._session.run(fetch, feed)
        return values
