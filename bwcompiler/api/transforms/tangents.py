"""Matches the caller's tangents with the arguments of a traced function, leaf by leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.api.transforms.transformed import TracedCall
from bwcompiler.errors import TangentError
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.handles import is_weak, value_of
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.op import Value

FLOAT0 = np.dtype([("float0", np.void, 0)])        # the dtype of JAX's tangents of integers


def without_float0(tangents: Any) -> Any:
    """The tangents, with None for JAX's float0 tangents of integers."""
    return tree.map(lambda leaf: None if getattr(leaf, "dtype", None) == FLOAT0 else leaf, tangents)


def matched_tangents(call: TracedCall, tangents: Sequence[Any], path: str) -> dict[int, Value]:
    """leaf number -> its tangent, if that is not None."""
    found: dict[int, Value] = {}
    for k, (numbers, tangent) in enumerate(zip(call.leaf_numbers(), tangents, strict=True)):
        for number, leaf, where in match_leaves(numbers, tangent, f"{path}[{k}]"):
            found[number] = checked_tangent(call.result, number, leaf, where)
    return dict(sorted(found.items()))


def match_leaves(numbers: Any, given: Any, path: str) -> list[tuple[int, Any, str]]:
    """(leaf number, given tangent, path) for the leaves of an argument; None stands for zeros of a whole subtree.

    Tangents of compile-time values, which have no number, are left out.
    """
    try:
        rows = tree.match_prefix(given, numbers, path)
    except ValueError as error:
        raise TangentError(f"{error}: a tangent has the structure of its primal") from None
    found = []
    for leaf, number, where in rows:
        if leaf is None or number is None:
            continue
        if not isinstance(number, int):
            raise TangentError(f"{where} is one array, but its primal is {tree.structure(number)}: a tangent has the structure of its "
                               "primal")
        found.append((number, leaf, where))
    return found


def checked_tangent(result: TraceResult, number: int, leaf: Any, path: str) -> Value:
    """A tangent as a value of its primal's type."""
    argument, name = result.graph.inputs[number], result.input_names[number]
    if not argument.dtype.is_differentiable:
        _refuse_integer(argument, name, path)
    leaf = _number_as(leaf, argument)
    value = value_of(leaf) if isinstance(leaf, Tracer) else value_as(leaf)
    if isinstance(leaf, Tracer) and is_weak(leaf) and value.dtype is not argument.dtype:
        value = ops.cast(value, dtype=argument.dtype)
    _check_type(value.shape, value.dtype.numpy, argument, name, path)
    return value


def concrete_tangent(result: TraceResult, number: int, leaf: Any, path: str) -> Any:
    """A tangent as an array of its primal's type."""
    argument, name = result.graph.inputs[number], result.input_names[number]
    if not argument.dtype.is_differentiable:
        _refuse_integer(argument, name, path)
    array = np.asarray(_number_as(leaf, argument))
    _check_type(array.shape, array.dtype, argument, name, path)
    return array


def _number_as(leaf: Any, argument: Value) -> Any:
    """Python numbers take the primal's dtype."""
    is_number = isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, np.generic)
    return np.array(leaf, argument.dtype.numpy) if is_number else leaf


def _refuse_integer(argument: Value, name: str, path: str) -> NoReturn:
    raise TangentError(f"{path}: the primal {name} has dtype {argument.dtype.numpy}: integers have no tangent\n"
                       "  hint: None in its place, or a float array as the primal")


def _check_type(shape: tuple[Any, ...], dtype: Any, argument: Value, name: str, path: str) -> None:
    if shape != argument.shape:
        raise TangentError(f"{path} has shape {shape}, but the primal {name} has shape {argument.shape}: a tangent has the shape "
                           "of its primal")
    if np.dtype(dtype).newbyteorder("=") != argument.dtype.numpy:
        raise TangentError(f"{path} has dtype {dtype}, but the primal {name} has dtype {argument.dtype.numpy}\n"
                           f"  hint: tangent.astype(np.{argument.dtype.numpy})")
