"""Advice about an `except` around a line that raises in compiled code: it does not catch that error."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator

import numpy as np

from bwcompiler.frontend.tracing.provenance.parsed_files import parsed
from bwcompiler.ir.source import Source

TESTS = {np.linalg.LinAlgError: "np.linalg.det(a) != 0, np.linalg.eigvalsh(a)[0] > 0", IndexError: "0 <= i < n"}


def tell_of_handler(error: Exception) -> None:
    """Add to what NumPy says that an `except` around the line takes no part, and what to write instead."""
    handler = handler_around(vars(error).get("source")) if type(error) in TESTS else None
    if handler is not None:
        error.args = (f"{error.args[0]}\n  compiled code raises, but does not catch: the `except` in line {handler.line} takes no part\n"
                      f"  hint: test for it by `if` ({TESTS[type(error)]}), or catch it where the compiled function is called",)


def handler_around(source: Source | None) -> Source | None:
    """The first `except` of the innermost `try` around a line, or around a call that led to it; None where there is none."""
    while source is not None:
        tries = list(_tries(source))
        if tries:
            handler = max(tries, key=lambda node: node.lineno).handlers[0]
            return Source(source.file, handler.lineno, handler.col_offset, source.function)
        source = source.caller
    return None


def _tries(source: Source) -> Iterator[ast.Try | ast.TryStar]:
    for node in ast.walk(parsed(source.file, linecache.getlines(source.file))):
        if isinstance(node, ast.Try | ast.TryStar) and node.handlers and (
                node.body[0].lineno <= source.line <= (node.body[-1].end_lineno or node.body[-1].lineno)):
            yield node
