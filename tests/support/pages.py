"""Code blocks in README and the pages of the documentation."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FENCED = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^\.\. code-block:: (?P<language>\w+)\n\n(?P<code>(?:   .*\n|\n)+)", re.MULTILINE)


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the code blocks of a page that are in any of these languages."""
    pattern = FENCED if page.suffix == ".md" else INDENTED
    found = pattern.finditer(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(match["code"]) for match in found if match["language"] in languages]
