"""Which further arrays will have to be traced, besides one that was found: finding each separately would cost one more trace each."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from bwcompiler.frontend.source.syntax.filled import filled
from bwcompiler.frontend.source.syntax.lookup import definitions_at
from bwcompiler.frontend.tracing.operands import is_traced
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.source import is_rewritten, original_code


def foreseen() -> list[Site]:
    """Where the functions that are running make arrays which their texts fill with something computed of what is traced now."""
    found: list[Site] = []
    known: set[str] = set()                        # names of traced values in bodies of the function whose own frame comes behind them
    for frame in _captured_frames():
        known.update(name for name, value in frame.f_locals.items() if _is_traced(value))
        original = original_code(frame.f_code)
        if original is not None:
            found += _sites(original, frozenset(known))
            known.clear()
    return found


def _captured_frames() -> Iterator[FrameType]:
    """Frames of the user's functions, innermost first."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if is_rewritten(frame.f_code):
            yield frame
        frame = frame.f_back


def _is_traced(value: Any) -> bool:
    """Whether it is traced, or holds something that is: an element, or an attribute of an object of the user's."""
    if is_traced(value) or isinstance(value, type | FunctionType | ModuleType):
        return is_traced(value)
    return is_traced(tuple(getattr(value, "__dict__", {}).values()))


def _sites(code: CodeType, known: frozenset[str]) -> list[Site]:
    """Of a function."""
    return [(code.co_filename, made.lineno, made.col_offset) for node in definitions_at(code) if isinstance(node, ast.FunctionDef)
            for made in filled(node.body, known)]
