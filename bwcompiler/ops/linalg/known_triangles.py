"""Recognises triangular matrices by the ops that computed them."""

from __future__ import annotations

from bwcompiler.ir.op import Value, is_constant
from bwcompiler.ops.creation import iota
from bwcompiler.ops.elementwise import greater_equal, less_equal, select, subtract
from bwcompiler.ops.linalg.cholesky import cholesky
from bwcompiler.ops.linalg.contraction import is_matrix_transpose


def known_triangle(a: Value) -> tuple[Value, bool, bool] | None:
    """(t, lower, transpose) as for triangular_solve, if a is known to be triangular; else None."""
    turned = is_matrix_transpose(a)
    if turned is not None:
        found = known_triangle(turned)
        return None if found is None else (found[0], found[1], not found[2])
    if a.op is cholesky:
        return a, True, False
    if a.op is select and _is_zero(a.operands[2]) and a.operands[0].op in (greater_equal, less_equal):
        lower = _keeps_lower(a.operands[0])
        return None if lower is None else (a, lower, False)
    return None


def _keeps_lower(condition: Value) -> bool | None:
    """Whether row >= column is what holds (True), or row <= column (False)."""
    left, right = condition.operands
    if left.op is subtract and _is_zero(right):                 # np.tril and np.triu compare the difference with 0
        left, right = left.operands
    rank = condition.rank
    axes = (_counted(left), _counted(right))
    if axes not in ((rank - 2, rank - 1), (rank - 1, rank - 2)):
        return None
    return (condition.op is greater_equal) == (axes[0] == rank - 2)


def _is_zero(x: Value) -> bool:
    return is_constant(x) and not x.attrs["value"]


def _counted(x: Value) -> int | None:
    """The axis along which x counts from 0."""
    return x.attrs["axis"] if x.op is iota else None
