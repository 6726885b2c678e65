"""What a figure was measured on: saved beside every result."""

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("legato-speech", "numpy", "onnxruntime", "hibari-tts", "uvicorn", "starlette", "httptools", "uvloop")


def environment() -> dict[str, object]:
    """Hardware, versions and the date, without the name of the machine."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "python": sys.version.split()[0],
        "packages": {name: version(name) for name in PACKAGES},
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        facts = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
        facts = {name.strip(): value.strip() for name, value in facts.items()}
        name = facts.get("model name", platform.machine())
        return f"{name} (family {facts.get('cpu family', '?')}, model {facts.get('model', '?')})"
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError):
        return None
