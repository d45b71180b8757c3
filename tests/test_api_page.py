"""docs/api.md, which is generated, says what the docstrings say, of every public name."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

import bwcompiler as bw

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tools" / "api_page.py"))


def test_page_is_up_to_date(tool: dict[str, Any], request: pytest.FixtureRequest) -> None:
    text = tool["page_text"]()
    if request.config.getoption("--update-golden"):
        tool["PAGE"].write_text(text, encoding="utf-8")
    current = tool["PAGE"].read_text(encoding="utf-8").splitlines()
    changed = [line for line in text.splitlines() if line not in current] + [line for line in current if line not in text.splitlines()]
    assert current == text.splitlines(), f"docs/api.md is stale; run `{tool['COMMAND']}`. Lines that differ:\n" + "\n".join(changed[:20])


def test_every_public_name_is_on_the_page(tool: dict[str, Any]) -> None:
    grouped = {name for _, names in tool["GROUPS"] for name in names}
    spaces = {name.split(".")[1] for name in tool["NAMESPACES"]}
    assert grouped | spaces == {*bw.__all__, "errors"}
    assert {f"bw.scipy.{name}" for name in bw.scipy.__all__} <= set(tool["NAMESPACES"])


def test_parts_of_the_page(tool: dict[str, Any]) -> None:
    assert tool["signature_of"](bw.nn.softmax) == "(x, axis=-1, dtype=None)"
    assert tool["first_sentence"]("What it is. More.\n\nAnd more.") == "What it is"
    assert tool["first_sentence"]("softmax of x (None: all, ...).  Errors.") == "softmax of x (None: all, ...)"
    assert "bw.errors" in tool["namespaces"]() and {"ShapeError", "SeedError"} <= set(tool["names_of"](bw.errors)) <= set(vars(bw.errors)) - {"at"}
    assert r"| `softsign(x)` | x / (1 + \|x\|) |" in tool["page_text"]()
