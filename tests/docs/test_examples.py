"""Every Python example in the README and the documentation runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
CASES = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, code in enumerate(EXAMPLE.findall(page.read_text()), 1)
]


@pytest.mark.parametrize("code", CASES)
def test_example_runs(code: str, tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    missing = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert not missing
