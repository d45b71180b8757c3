"""The table of handlers: what is asked for by name, in any module, some module has put there."""

from __future__ import annotations

import re

import bwcompiler.frontend  # noqa: F401  (whose modules fill the table)
from bwcompiler.frontend.tracing.registry import HANDLERS
from tests.support.modules import ROOT

ASKED = re.compile(r"""HANDLERS\[["']([\w.]+)["']\](?!\s*=[^=])""")


def test_handlers_that_are_asked_for_are_there() -> None:
    asked = {(name, path.name) for path in (ROOT / "bwcompiler").rglob("*.py") for name in ASKED.findall(path.read_text(encoding="utf-8"))}
    assert len(asked) > 20
    assert [(name, file) for name, file in sorted(asked) if name not in HANDLERS] == []


def test_where_a_handler_is_put_it_is_not_asked_for() -> None:
    assert ASKED.findall('HANDLERS["a"] = f\nHANDLERS["b"](x)\nHANDLERS["c"] == f') == ["b", "c"]
