"""Names that rewritten code passes to `runtime`: of the variables of a loop or branch, and of parameters of its bodies."""

from __future__ import annotations

from typing import NamedTuple

ITEM = "__bw_item__"           # what a loop takes next, before its target is bound
FOUND = "__bw_found__"         # what a comprehension makes


class Variables(NamedTuple):
    """Names of a loop or branch: that its body binds, that an iteration takes from the one before, read afterwards; `x` in `x[k] = y`;
    those that each iteration binds to something computed; and those that hold lists which nothing else can hold."""

    stored: tuple[str, ...]
    carried: tuple[str, ...]
    results: tuple[str, ...]
    changed: tuple[str, ...] = ()
    rebound: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
