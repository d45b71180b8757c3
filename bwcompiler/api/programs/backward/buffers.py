"""The caller's buffers (`into=`) to which gradients are added, and the number that scales these gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.api.programs.backward.seeds import match_tree
from bwcompiler.errors import SignatureError
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult


def match_buffers(into: Any, traced: TraceResult, argument_numbers: Sequence[Any], wrt: Sequence[int]) -> dict[int, Any]:
    """Leaf number -> buffer; `argument_numbers` has the tree of leaf numbers of every argument."""
    if into is None:
        return {}
    if not isinstance(into, tuple | list) or len(into) != len(argument_numbers):
        raise SignatureError(f"into must have one entry per argument ({len(argument_numbers)}), None where there is no buffer\n"
                             "  hint: a tuple, into=(buffer,)")
    found: dict[int, Any] = {}
    for numbers, buffers in zip(argument_numbers, into, strict=True):
        if buffers is None:
            continue
        pairs = match_tree(numbers, buffers, "into")
        for number, (buffer, path) in zip(tree.leaves(numbers), pairs, strict=True):
            if buffer is not None:
                _check_buffer(buffer, traced, number, path, wrt)
                found[number] = buffer
    return found


def _check_buffer(buffer: Any, traced: TraceResult, number: int, path: str, wrt: Sequence[int]) -> None:
    type_, name = traced.argument_types[number].type, traced.input_names[number]
    if number not in wrt:
        raise SignatureError(f"{path}: a buffer was given for {name}, which is not differentiated (wrt)")
    if not isinstance(buffer, np.ndarray) or buffer.shape != type_.shape or buffer.dtype != type_.dtype.numpy:
        got = f"shape {np.shape(buffer)} and dtype {getattr(buffer, 'dtype', type(buffer).__name__)}"
        raise SignatureError(f"{path}: the buffer for {name} must be an array of shape {type_.shape} and dtype "
                             f"{type_.dtype.numpy}, got {got}")
    if not buffer.flags.writeable:
        raise ValueError(f"{path}: the buffer for {name} is read-only")


def check_scale(scale: Any, buffers: dict[int, Any]) -> None:
    """Raise SignatureError unless scale is None, or a number that is given together with buffers."""
    if scale is None:
        return
    if isinstance(scale, bool) or not isinstance(scale, int | float | np.integer | np.floating):
        raise SignatureError(f"scale={scale!r} is of type {type(scale).__name__}; it must be a number")
    if not buffers:
        raise SignatureError("scale= goes with into=: it scales what is added to the buffers")


def refuse_shared_buffers(arrays: Sequence[Any]) -> None:
    """Raise SignatureError if two buffers share an element."""
    for k, buffer in enumerate(arrays):
        for other in arrays[:k]:
            if np.may_share_memory(buffer, other) and _share(buffer, other):
                raise SignatureError("two buffers given as into= share memory; their sums would depend on the order of writing")


def _share(buffer: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays share an element; two columns of a matrix do not.  True if the decision would take too long."""
    try:
        return np.shares_memory(buffer, other, max_work=1000)  # type: ignore[arg-type]     # NumPy's stub knows -1 and 0 only
    except np.exceptions.TooHardError:
        return True
