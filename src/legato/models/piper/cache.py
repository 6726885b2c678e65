"""Keeps cut voices on disk, under the hash of the file they were cut from.

Cutting and checking a medium voice takes half of its loading time, and the same file is cut the same every time. An
entry is a folder `<sha256>-<version>` with one file a part and a manifest that has the SHA-256 of each; one that is not
complete, not intact or of another version is as good as none. A cache that cannot be written is no error.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from legato.models.onnx_cut import Part
from legato.models.piper.cut import Cut, LocalPart, Reach

VERSION = 1
"""Of the cut; raise it whenever `cut` or `narrow` makes something else of the same file."""

_MANIFEST = "manifest.json"


def default_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """`$LEGATO_CACHE`, or `legato` where the system keeps a user's caches."""
    if said := environment.get("LEGATO_CACHE"):
        return Path(said)
    if platform == "win32" and (local := environment.get("LOCALAPPDATA")):
        return Path(local) / "legato" / "cache"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / "legato"
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "legato"


class CutCache:
    """The cut voices in one folder.

    Args:
        folder: it need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "piper"

    def read(self, model_sha256: str) -> Cut | None:
        """The cut of the file with this hash; None if there is none, or none that is intact."""
        entry = self._entry(model_sha256)
        try:
            manifest = json.loads((entry / _MANIFEST).read_bytes())
            parts = [_part(entry, number, facts) for number, facts in enumerate(manifest["parts"])]
            *stages, flow, decoder = parts
            return Cut(
                inputs=tuple(manifest["inputs"]),
                latent=manifest["latent"],
                frames_of=manifest["frames_of"],
                noises=tuple((like, name) for like, name in manifest["noises"]),
                stages=tuple(stages),
                flow=_local(flow, manifest["flow"]),
                decoder=_local(decoder, manifest["decoder"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, model_sha256: str, cut: Cut) -> None:
        """Keep a cut. Quietly does nothing where the folder cannot be written."""
        parts = (*cut.stages, cut.flow.part, cut.decoder.part)
        manifest = {
            "inputs": cut.inputs,
            "latent": cut.latent,
            "frames_of": cut.frames_of,
            "noises": cut.noises,
            "parts": [
                {"inputs": part.inputs, "outputs": part.outputs, "sha256": sha256(part.model).hexdigest()}
                for part in parts
            ],
            "flow": _facts(cut.flow),
            "decoder": _facts(cut.decoder),
        }
        entry = self._entry(model_sha256)
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=".new-", dir=self._folder))
            try:
                for number, part in enumerate(parts):
                    (made / f"{number}.onnx").write_bytes(part.model)
                (made / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
                shutil.rmtree(entry, ignore_errors=True)  # one that `read` did not take
                made.rename(entry)
            finally:
                shutil.rmtree(made, ignore_errors=True)

    def _entry(self, model_sha256: str) -> Path:
        return self._folder / f"{model_sha256}-{VERSION}"


def _part(entry: Path, number: int, facts: Mapping[str, Any]) -> Part:
    data = (entry / f"{number}.onnx").read_bytes()
    if sha256(data).hexdigest() != facts["sha256"]:
        raise ValueError("a part was changed")
    return Part(data, tuple(facts["inputs"]), tuple(facts["outputs"]))


def _local(part: Part, facts: Mapping[str, Any]) -> LocalPart:
    return LocalPart(part, Reach(*facts["reach"]), tuple(facts["along"]))


def _facts(local: LocalPart) -> dict[str, Any]:
    reach = local.reach
    return {"reach": [reach.left, reach.right, reach.steps], "along": local.along}
