"""The code in the documentation runs: all `python` blocks of a file in order, in one namespace.

A `text` block right after a `python` block that prints is what it prints; `--update-golden` rewrites it. A block that starts
with `# name.py` is run under that file name, so that line numbers in its output do not depend on the page around it.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    start: int  # where the text starts and ends in the page
    end: int


def blocks_of(page: str) -> list[Block]:
    return [Block(found[1], found[2], found.start(2), found.end(2)) for found in FENCE.finditer(page)]


def run_block(block: Block, page: Path, line: int, namespace: dict[str, Any]) -> str:
    """What the block prints."""
    named = re.match(r"# (\w+\.py)\n", block.text)
    name, source = (named[1], block.text) if named else (str(page), "\n" * (line - 1) + block.text)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, name, "exec"), namespace)
    return printed.getvalue()


def run_page(page: Path) -> tuple[str, list[str]]:
    """The page with the printed output that this run gives, and one line per block that differs from it."""
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "docs"}
    pieces, wrong, done, printed = [], [], 0, ""
    for block in blocks_of(text):
        line = text.count("\n", 0, block.start) + 1
        if block.language == "python":
            printed = run_block(block, page, line, namespace)
            continue
        if block.language == "text" and printed:
            expected = printed.rstrip("\n") + "\n"
            if block.text != expected:
                wrong.append(f"{page.name}:{line}: the code above prints\n{expected}")
            pieces += [text[done:block.start], expected]
            done = block.end
        printed = ""
    return "".join([*pieces, text[done:]]), wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_the_page_runs(page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    text, wrong = run_page(page)
    if request.config.getoption("--update-golden"):
        page.write_text(text, encoding="utf-8")
        return
    assert not wrong, "\n".join(wrong) + "\naccept it with --update-golden"


def test_wrong_output_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\nprint(x)\n```\n\n```text\n2\n```\n\n```text\nfree\n```\n", encoding="utf-8")
    text, wrong = run_page(page)
    assert wrong == ["page.md:7: the code above prints\n1\n"]
    assert "```text\n1\n```\n\n```text\nfree\n```" in text


def test_failing_code_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\ntext\n```python\nx / 0\n```\n", encoding="utf-8")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page)
    assert caught.traceback[-1].lineno == 5  # counted from 0: the page's own line


def test_every_page_is_found() -> None:
    assert {page.name for page in PAGES} >= {"README.md", "design.md"}
