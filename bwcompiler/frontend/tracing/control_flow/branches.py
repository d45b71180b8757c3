"""Branches: `cond` and `switch` in a trace, as the region op `cond`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import ShapeError, TracerError, at
from bwcompiler.frontend.tracing.boundary.results import never_empty
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import Outer, Traced, added, as_kind, joined, region_graph, shown, trace_body
from bwcompiler.frontend.tracing.control_flow.loops import as_truth
from bwcompiler.frontend.tracing.operands import as_tracer, value_as
from bwcompiler.frontend.tracing.promotion import Kind
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.frontend.tracing.tracer import fresh, fresh_array
from bwcompiler.ir.op import Value
from bwcompiler.ir.source import Source
from bwcompiler.ir.types import DType


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """true_fun(*operands) if pred else false_fun(*operands); a predicate that is known while tracing chooses at once."""
    if isinstance(pred, bool | int | float | np.generic):
        return call_user(true_fun if pred else false_fun, operands, {})
    region = active_region()
    source = current_source(region.outer if region is not None else None)
    test = call(_predicate, pred, source)
    given = tree.map(_as_operand, operands)
    branches = _traced_sides(true_fun, false_fun, lambda fun: call_user(fun, given, {}))
    if sum(branch.result.only_checks for branch in branches) == 1:          # the other one has a result that tells nothing, as well
        branches = _traced_sides(true_fun, false_fun, lambda fun: never_empty(call_user(fun, given, {})))
    kinds = _unified(branches, source)
    results = call(_emit_cond, test, branches, kinds)
    leaves = []
    for number, (value, kind) in enumerate(zip(results, kinds, strict=True)):
        is_array = all(branch.result.result_kinds[number] == "array" for branch in branches)
        leaves.append(fresh_array(value) if is_array and not value.rank else fresh(value, None if isinstance(kind, DType) else kind))
    return tree.unflatten(branches[0].result.output_tree, leaves)


def _traced_sides(true_fun: Callable[..., Any], false_fun: Callable[..., Any], run: Callable[[Any], Any]) -> list[Traced]:
    return [trace_body(lambda fun=fun: run(fun), "", name) for fun, name in ((true_fun, "then"), (false_fun, "otherwise"))]


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """branches[index](*operands), the index cut to those that there are."""
    count = len(branches)
    if not count:
        raise TracerError(at(current_source(), "switch: there are no branches"))
    if isinstance(index, int | np.integer):
        return call_user(branches[min(max(int(index), 0), count - 1)], operands, {})
    if count == 1:
        return call_user(branches[0], operands, {})
    half = count // 2
    return cond(index < half, lambda *args: switch(index, branches[:half], *args),
                lambda *args: switch(index - half, branches[half:], *args), *operands)


def _as_operand(leaf: Any) -> Any:
    return call(as_tracer, leaf) if isinstance(leaf, np.ndarray) else leaf


def _predicate(pred: Any, source: Source | None) -> Value:
    value = value_as(pred)
    if value.shape != ():
        raise TracerError(at(source, f"cond: the predicate must be one number that is true or false, it has shape {value.shape}\n"
                             "  hint: np.where(condition, a, b) chooses element by element; np.any(...) and np.all(...) give one"))
    return as_truth(value)


def _unified(branches: Sequence[Traced], source: Source | None) -> list[Kind]:
    """What promotion sees of each result, whichever branch is taken; raises where the structures or shapes differ."""
    one, other = branches
    if one.result.output_tree != other.result.output_tree:
        raise TracerError(at(source, "cond: the branches return different structures: "
                             f"{_shown(one)} and {_shown(other)}"))
    for x, y, path in zip(one.result.outputs, other.result.outputs, one.paths("the result"), strict=True):
        if x.shape != y.shape:
            raise ShapeError(at(source, f"cond: {path} has shape {x.shape} in one branch and {y.shape} in the other"))
    return [joined(x, y) for x, y in zip(one.kinds, other.kinds, strict=True)]


def _shown(branch: Traced) -> str:
    return shown(branch.result.output_tree, [output.type for output in branch.result.outputs])


def _emit_cond(test: Value, branches: Sequence[Traced], kinds: Sequence[Kind]) -> list[Value]:
    outer = Outer([branch.result for branch in branches])
    graphs = []
    for branch in branches:
        carried, final, read = outer.inputs(branch.result)
        with added() as record:
            outputs = [*as_kind(branch.result.outputs, kinds), *final]
        graphs.append(region_graph(branch.result, [*carried, *read], record, outputs))
    chosen = ops.cond(test, *outer.assigned_values(), *outer.read_values(), then_branch=graphs[0], else_branch=graphs[1])
    items = [ops.item(chosen, index=k) for k in range(len(kinds) + len(outer.assigned))]
    outer.assign(items[len(kinds):])
    return items[:len(kinds)]
