"""Derivatives of functions of arrays against central differences, through graphs and their interpreter (nothing is compiled)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import bwcompiler as bw
from bwcompiler import tree
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret


def interpreted(fun: Callable[..., Any], args: Sequence[Any]) -> Callable[..., list[Any]]:
    """fun's graph for arguments like these, as a function of such arguments."""
    result = trace(fun, tuple(args))

    def run(*args: Any) -> list[Any]:
        leaves = [np.asarray(leaf) for leaf in tree.leaves((args, {}))]
        with np.errstate(all="ignore"):
            return list(interpret(result.graph, [*leaves, *result.captured])[:len(result.outputs)])
    return run


def check_derivatives(fun: Callable[..., Any], *args: Any, order: int = 2, tolerance: float = 1e-6) -> None:
    """The gradient of a random linear form of fun by all float arguments equals its central difference; so does that of the gradient."""
    rng = np.random.default_rng(11)
    wrt = [k for k, arg in enumerate(args) if isinstance(arg, np.ndarray | np.floating | float) and np.asarray(arg).dtype.kind == "f"]

    def loss(*args: Any) -> Any:
        parts = tree.leaves(fun(*args))
        return sum((part * _weights(np.shape(part))).sum() for part in parts if part.dtype.kind == "f")

    _compare(loss, args, wrt, rng, tolerance, "first derivative")
    if order == 1:
        return
    directions = {k: rng.uniform(-1, 1, np.shape(args[k])) for k in wrt}

    def slope(*args: Any) -> Any:
        gradients = bw.grad(loss, argnums=tuple(wrt))(*args)
        return sum((gradient * directions[k]).sum() for k, gradient in zip(wrt, gradients, strict=True))

    _compare(slope, args, wrt, rng, tolerance * 10, "second derivative")


def _weights(shape: tuple[int, ...]) -> Any:
    return np.cos(np.arange(np.prod(shape, dtype=int)) + 1.0).reshape(shape)


def _compare(loss: Callable[..., Any], args: Sequence[Any], wrt: Sequence[int], rng: Any, tolerance: float, what: str) -> None:
    value = interpreted(loss, args)
    gradients = interpreted(bw.grad(loss, argnums=tuple(wrt)), args)(*args)
    for k, gradient in zip(wrt, gradients, strict=True):
        assert gradient.shape == np.shape(args[k]), f"argument {k}"
        if not np.size(args[k]):
            continue
        direction = rng.uniform(-1, 1, np.shape(args[k]))
        step = 1e-6 if what.startswith("first") else 1e-5

        def moved(h: float, k: int = k, direction: Any = direction) -> float:
            shifted = [arg + h * direction if j == k else arg for j, arg in enumerate(args)]
            return float(value(*shifted)[0])

        expected = (moved(step) - moved(-step)) / (2 * step)
        found = float((gradient * direction).sum())
        scale = max(1.0, abs(expected))
        assert abs(found - expected) <= tolerance * scale, f"{what} by argument {k}: {found}, central difference {expected}"
