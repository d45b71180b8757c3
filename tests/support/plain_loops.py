"""What the loop functions mean, as plain Python over NumPy arrays: the oracle that traced loops are compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import tree


def _entry(init: Any) -> Any:
    return tree.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, init)


def scan(body: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
         checkpoint: Any = None) -> tuple[Any, Any]:
    leaves = tree.leaves(xs)
    count = len(leaves[0]) if leaves else length
    carry, found = _entry(init), {}
    for t in (reversed(range(count)) if reverse else range(count)):
        carry, found[t] = body(carry, tree.map(lambda x, t=t: np.copy(x[t])[()], xs))
    return carry, tree.map(lambda *rows: np.stack(rows), *[found[t] for t in range(count)])


def map(fun: Callable[..., Any], xs: Any) -> Any:
    return scan(lambda _, x: (None, fun(x)), None, xs)[1]


def fori_loop(lower: int, upper: int, body: Callable[..., Any], init: Any) -> Any:
    value = _entry(init)
    for i in range(int(lower), int(upper)):
        value = body(i, value)
    return value


def while_loop(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init: Any) -> Any:
    value = _entry(init)
    while cond_fun(value):
        value = body_fun(value)
    return value


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    return true_fun(*operands) if pred else false_fun(*operands)


def switch(index: int, branches: Any, *operands: Any) -> Any:
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def checkpoint(fun: Callable[..., Any], policy: Any = None) -> Callable[..., Any]:
    return fun
