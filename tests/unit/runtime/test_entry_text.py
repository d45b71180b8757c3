"""The text of the native entry has the blocks that its tables and its docstrings name."""

import fnmatch
import re

import pytest

from bwcompiler.runtime.entry import guards, native_entry
from bwcompiler.runtime.entry.table import GUARDS, SOURCES


def labels(text: str) -> set[str]:
    return set(re.findall(r"^([\w.]+):", text, re.MULTILINE))


def test_every_guard_and_every_source_has_a_block():
    blocks = labels(guards.GUARDS_TEXT)
    assert {name for name in GUARDS if name != "end"} <= blocks
    assert {f"from.{name}" for name in SOURCES} <= blocks


@pytest.mark.parametrize("module, text", [(guards, guards.GUARDS_TEXT), (native_entry, native_entry.entry_text())], ids=["guards", "entry"])
def test_the_blocks_that_the_outline_names_exist(module, text):
    blocks = labels(text)
    outline = [re.sub(r"\(\w+\.py.*", "", line).rstrip() for line in module.__doc__.splitlines() if line.startswith("    ")]
    last_columns = [re.split(r" {3,}", line.strip())[1:][-1:] for line in outline]
    named = re.findall(r"[a-z_][\w.]*\*?", str(last_columns))
    assert len(named) > 5
    for label in named:
        assert any(fnmatch.fnmatchcase(block, label) for block in blocks), label
