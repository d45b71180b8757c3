"""Results that can be taken from others that are computed anyway: a derivative often needs more of a function than its value.

    eigvalsh(a), where eigh(a) is computed   -> of eigh(a)
    eigvals(a), where eig(a) is computed     -> of eig(a)
    svdvals(a), where svd(a) is computed     -> of svd(a)
    sort(x), where the stable argsort(x) is  -> x, gathered

This runs after differentiation, like the rules for LU factors (`legal/factorization_rules.py`).  Those share parts through the values that
they make; whether vectors or positions are needed is only known for a whole graph.
"""

from __future__ import annotations

from typing import Any

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, all_values
from bwcompiler.ir.op import Op, Value
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.linalg.factorization import row, svd_parts
from bwcompiler.ops.ordering.sorting import sorted_by_positions
from bwcompiler.passes.rewriting.rewriter import Rule, attribute_key, rewrite

FACTORS = {ops.eigvalsh: ops.eigh, ops.eigvals: ops.eig, ops.svdvals: ops.svd}
Found = set[tuple[Any, ...]]


def share_results(graph: Graph) -> Graph:
    """The same computation, with eigenvalues, singular values and sorted elements read out of what is computed too."""
    values = list(all_values(graph))
    if not any(value.op in FACTORS or value.op is ops.sort for value in values):
        return graph
    sources = {*FACTORS.values(), ops.argsort}
    found = {(value.op, value.operands[0], attribute_key(value.attrs)) for value in values if value.op in sources}
    rules = {op: _reading(factors, found) for op, factors in FACTORS.items()}
    return rewrite(graph, {**rules, ops.sort: _gathering(found)})[0] if found else graph


def _reading(factors: Op, found: Found) -> Rule:
    """The rule of the values alone.  Factors of what is rewritten itself are not known by it, and computed beside the values."""
    def rule(type_: TensorType, a: Value, **attrs: Any) -> Value | None:
        if (factors, a, attribute_key(attrs)) not in found:
            return None
        made = factors(a, **attrs)
        values = svd_parts(made, *a.shape[-2:])[1] if factors is ops.svd else row(made, 0)
        return values if values.dtype is type_.dtype else ops.cast(values, dtype=type_.dtype)
    return rule


def _gathering(found: Found) -> Rule:
    """The rule of sorted elements."""
    def rule(type_: TensorType, x: Value, *, axis: int, kind: str | None) -> Value | None:
        known = (ops.argsort, x, attribute_key({"axis": axis, "kind": "stable"})) in found
        return sorted_by_positions(x, x, axis) if known else None
    return rule
