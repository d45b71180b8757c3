"""Which further arrays will have to be traced, besides one that was found: finding each separately would cost one more trace each."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from bwcompiler.frontend.source.syntax.analysis.filled import filled, part_of, some_of
from bwcompiler.frontend.source.syntax.definitions.lookup import definitions_at
from bwcompiler.frontend.source.variables import Names, attributes_of, open_policy
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.operands import is_traced
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.provenance.source import is_rewritten, original_code
from bwcompiler.frontend.tracing.refusals.demands import may_become_known
from bwcompiler.frontend.tracing.tracer import Tracer

_LEVELS = 3                    # of containers and objects that are looked into, for what is traced,
_MOST = 40                     # and parts of each: the others are mostly alike
_WITHOUT_PARTS = (Tracer, np.ndarray, type, FunctionType, ModuleType)


def entered(names: Sequence[str], values: Sequence[Any], around: Callable[..., Any]) -> None:
    """A function begins that fills arrays: those which its text fills with something computed of its traced parameters are traced ones.

    names, values  of its parameters; around: has the variables of functions around it.  Only these are looked at, as variables of a frame
                   that is running cannot be read safely whenever one likes.
    """
    policy = open_policy()
    if policy is None or not policy.converting or policy.foreseen is None:
        return
    cells = Names(around)
    held = [*zip(names, values, strict=True), *[(name, cells[name]) for name in cells]]
    known = frozenset(text for name, value in held for text in _traced_of(name, value))
    original = original_code(sys._getframe(1).f_code) if known else None
    if original is None:
        return
    found = [site for site in _sites(original, known) if site not in policy.unrolled]
    policy.foreseen.update(found)
    policy.unrolled.update(dict.fromkeys(found, "it is filled with traced values"))


def _traced_of(name: str, value: Any) -> list[str]:
    """What `filled` is to know of a variable: that it is traced, or which of its parts are, of an object of the user's or a dictionary."""
    parts = _parts_of(value)
    if not parts:
        return [name] if _holds_traced(value) else []
    traced = [part_of(name, part) for part, inside in parts.items() if isinstance(part, str) and _holds_traced(inside)]
    return [*traced, some_of(name)] if traced else []


def _parts_of(value: Any) -> dict[Any, Any]:
    if isinstance(value, dict):
        return value
    return {} if isinstance(value, _WITHOUT_PARTS) else attributes_of(value)


def _holds_traced(value: Any, levels: int = _LEVELS) -> bool:
    """Whether it is traced, or holds something that is.  An integer that may become known, as it is an argument, is not yet."""
    if isinstance(value, Tracer):
        return isinstance(value, IndexTracer) or not may_become_known(value)
    inside = _parts_of(value).values() or (value if isinstance(value, list | tuple) else ())
    return bool(levels) and any(_holds_traced(part, levels - 1) for part in itertools.islice(inside, _MOST))


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
    key = id(code), known
    found = _found.get(key)
    if found is None:
        if len(_found) >= _LIMIT:
            _found.clear()
        found = _found[key] = code, [
            (code.co_filename, made.lineno, made.col_offset) for node in definitions_at(code) if isinstance(node, ast.FunctionDef)
            for made in filled(node.body, known)]
    return found[1]


_LIMIT = 1 << 12
_found: dict[tuple[int, frozenset[str]], tuple[CodeType, list[Site]]] = {}         # with the code, which is kept alive: its id is a key
