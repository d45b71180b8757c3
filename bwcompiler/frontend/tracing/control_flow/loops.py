"""Loops: `scan`, `fori_loop` and `while_loop` in a trace, as the region ops `loop` and `while_loop`.

A body is traced once more whenever a carried value has another dtype after the body than on entry
(`bodies`).  `scan` and `map` are counted loops: they read slices of their operands, and collect results by slice updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops, tree
from bwcompiler.errors import ShapeError, TracerError, at
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import (
    Leaf,
    Outer,
    Traced,
    added,
    as_kind,
    entry_leaf,
    parameter_name,
    promoted_kinds,
    region_graph,
    require_pure,
    require_shapes,
    require_tree,
    trace_body,
)
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of, index_handle
from bwcompiler.frontend.tracing.operands import as_tracer, value_as
from bwcompiler.frontend.tracing.promotion import Kind
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.extent import Extent, Index, add_extents, known_le, mentions_index, scale_extent
from bwcompiler.ir.op import Value, input_value
from bwcompiler.ir.source import Source
from bwcompiler.ir.types import BOOL, I64
from bwcompiler.ops.rules import zero_of

PROMOTIONS = 8                 # traces of one body: by then the dtypes of what it carries have settled


class _Carry(NamedTuple):
    """What a loop carries, on entry."""

    leaves: list[Leaf]
    treedef: tree.TreeDef

    @property
    def kinds(self) -> list[Kind]:
        return [leaf.kind for leaf in self.leaves]

    @property
    def values(self) -> list[Value]:
        return [leaf.value for leaf in self.leaves]

    def promoted(self, kinds: Sequence[Kind]) -> _Carry:
        return _Carry([leaf.promoted(kind) for leaf, kind in zip(self.leaves, kinds, strict=True)], self.treedef)

    def after(self, values: Sequence[Value]) -> Any:
        """The tree of handles after the loop."""
        return tree.unflatten(self.treedef, [leaf.handle(value) for leaf, value in zip(self.leaves, values, strict=True)])


def _entry(init: Any) -> _Carry:
    leaves, treedef = tree.flatten(init)
    return _Carry([entry_leaf(leaf) for leaf in leaves], treedef)


class _Settled(NamedTuple):
    """A traced body whose carry has settled.  carried: outputs that are carried, in the dtypes on entry; others: the other leaves."""

    carry: _Carry
    traced: Traced
    numbers: list[int]
    others: list[int]
    rest: Any


def _settle(what: str, carry: _Carry, body: Callable[[Any], Any], parameter: str, split: Callable[[Any], tuple[Any, Any]],
            name: str, source: Source | None) -> _Settled:
    """Trace the body until dtypes have settled.  split: what the body returns, as tree of leaf numbers -> the carry, and the rest."""
    for _ in range(PROMOTIONS):
        traced = trace_body(body, parameter, name, carry.treedef, [leaf.argument() for leaf in carry.leaves])
        outputs = traced.result.outputs
        whole = tree.unflatten(traced.result.output_tree, range(len(outputs)))
        kept, rest = split(whole)
        numbers, found = tree.flatten(kept)
        require_tree(f"{what}: the carry", found, carry.treedef, source)
        paths = tree.treedef_paths(carry.treedef, "the carry")
        after = [outputs[number] for number in numbers]
        require_shapes(what, carry.leaves, after, paths, source)
        kinds = promoted_kinds(what, carry.kinds, [traced.kinds[number] for number in numbers], paths, after, source)
        if kinds == carry.kinds:
            return _Settled(carry, traced, numbers, tree.leaves(rest), rest)
        carry = call(carry.promoted, kinds)
    raise TracerError(at(source, f"{what}: the dtypes of the carry do not settle"))


def _whole(found: Any) -> tuple[Any, Any]:
    return found, None


def _pair(what: str, source: Source | None) -> Callable[[Any], tuple[Any, Any]]:
    def split(found: Any) -> tuple[Any, Any]:
        if not (isinstance(found, tuple | list) and len(found) == 2):
            raise TracerError(at(source, f"{what}: the body must return a pair (carry, y)\n  hint: return carry, None"))
        return found[0], found[1]
    return split


# ----- counted loops
def fori_loop(lower: Any, upper_bound: Any, body: Callable[..., Any], init: Any) -> Any:
    """val = init; for i in range(lower, upper_bound): val = body(i, val)."""
    source = _source()
    lo, hi = extent_of(lower), extent_of(upper_bound)
    carry = call(_entry, init)
    parameter, index_name = parameter_name(body, 1, "carry"), parameter_name(body, 0, "i")
    if lo is None or hi is None:
        return _data_loop(lower, upper_bound, body, carry, parameter, source)
    count = add_extents(hi, scale_extent(lo, -1))
    empty = known_le(count, 0) is True
    index = Index(0, 0, index_name) if empty else Index(lo, add_extents(hi, -1), index_name)
    if not empty and not known_le(0, count):
        raise TracerError(at(source, f"fori_loop: the number of iterations, {count}, may be negative\n"
                             "  hint: choose bounds of which the second is never below the first"))
    first: Extent = lo if empty else index.extent()

    def run(val: Any) -> Any:
        return call_user(body, (call(index_handle, first), val), {})

    settled = _settle("fori_loop", carry, run, parameter, _whole, _name(body), source)
    if empty:
        return settled.carry.after(settled.carry.values)
    results, _ = call(_emit_loop, settled, index, 1)
    return settled.carry.after(results)


def scan(body: Callable[..., Any], init: Any, xs: Any = None, length: Any = None, reverse: bool = False) -> tuple[Any, Any]:
    """The carry after all rows of xs, and the results stacked."""
    source = _source()
    leaves, treedef = tree.flatten(xs)
    rows = [call(as_tracer, leaf) for leaf in leaves]
    count = _length(rows, tree.treedef_paths(treedef, "xs"), length, source)
    carry = call(_entry, init)
    parameter = parameter_name(body, 0, "carry")
    index = Index(0, add_extents(count, -1) if count else 0, "t")

    def run(value: Any) -> Any:
        found = [call(_row if count else _no_row, row, index) for row in rows]
        return call_user(body, (value, tree.unflatten(treedef, found)), {})

    settled = _settle("scan", carry, run, parameter, _pair("scan", source), _name(body), source)
    if count == 0:
        results, stacks = settled.carry.values, call(_stacks, settled, 0)
    else:
        results, stacks = call(_emit_loop, settled, index, -1 if reverse else 1, count)
    places = dict(zip(settled.others, stacks, strict=True))
    return settled.carry.after(results), tree.map(lambda number: fresh(places[number]), settled.rest)


def _length(rows: Sequence[Tracer], paths: Sequence[str], length: Any, source: Source | None) -> Extent:
    """How many rows there are."""
    counts: list[tuple[str, Extent]] = []
    if length is not None:
        extent = extent_of(length)
        if extent is None:
            raise TracerError(at(source, f"scan: length must be an integer, got {length!r}"))
        if known_le(0, extent) is not True:
            raise ShapeError(at(source, f"scan: length must not be negative, got {extent}"))
        counts.append(("length", extent))
    for row, path in zip(rows, paths, strict=True):
        if not row.ndim:
            raise ShapeError(at(source, f"scan: {path} has no axis to go along: its shape is ()"))
        counts.append((path, row.shape[0]))
    if not counts:
        raise TracerError(at(source, "scan: there is neither xs nor length\n  hint: scan(body, init, None, length=n)"))
    for path, count in counts:
        if count != counts[0][1]:
            raise ShapeError(at(source, f"scan: {counts[0][0]} says {counts[0][1]} iterations, but {path} says {count}"))
    return counts[0][1]


def _row(row: Tracer, index: Index) -> Tracer:
    """Element `index` of the first axis, as a copy."""
    value = value_of(row)
    rest = value.shape[1:]
    cut = ops.slice(value, starts=(index.extent(), *[0] * len(rest)), sizes=(1, *rest), steps=(1,) * value.rank)
    return fresh(ops.reshape(cut, shape=rest))


def _no_row(row: Tracer, index: Index) -> Tracer:
    """In the place of a row where there are none."""
    return fresh(ops.full(value=zero_of(row._type.dtype), shape=row._type.shape[1:], dtype=row._type.dtype))


def _stacks(settled: _Settled, count: Extent) -> list[Value]:
    """Arrays for what is collected, of zeros."""
    found = []
    for number in settled.others:
        type_ = settled.traced.result.outputs[number].type
        if mentions_index({"shape": type_.shape}):
            raise ShapeError(at(settled.traced.result.outputs[number].source or _source(),
                                f"scan: the results have shape {type_.shape}, which depends on the iteration: they cannot be stacked"))
        found.append(ops.full(value=zero_of(type_.dtype), shape=(count, *type_.shape), dtype=type_.dtype))
    return found


def _emit_loop(settled: _Settled, index: Index, step: int, count: Extent = 0) -> tuple[list[Value], list[Value]]:
    """The loop op: values of the carry after it, and the stacked results."""
    result = settled.traced.result
    outer = Outer([result])
    stacks = _stacks(settled, count)
    carried, final, read = outer.inputs(result)
    arguments = list(result.graph.inputs[:len(settled.carry.leaves)])
    held = [input_value(stack.type, "ys") for stack in stacks]
    with added() as record:
        after = as_kind([result.outputs[number] for number in settled.numbers], settled.carry.kinds)
        collected = [_collect(stack, result.outputs[number], index) for stack, number in zip(held, settled.others, strict=True)]
    body = region_graph(result, [*arguments, *held, *carried, *read], record, [*after, *collected, *final], index)
    start = [*settled.carry.values, *stacks, *outer.assigned_values()]
    looped = ops.loop(*start, *outer.read_values(), lo=index.lo, hi=index.hi, step=step, carried=len(start), body=body)
    items = [ops.item(looped, index=k) for k in range(len(start))]
    first, second = len(arguments), len(arguments) + len(stacks)
    outer.assign(items[second:])
    return items[:first], items[first:second]


def _collect(stack: Value, value: Value, index: Index) -> Value:
    """The stack with a value in the place of this iteration."""
    row = ops.reshape(value, shape=(1, *value.shape))
    return ops.slice_update(stack, row, starts=(index.extent(), *[0] * value.rank), steps=(1,) * stack.rank)


# ----- loops whose end is data
def while_loop(condition: Callable[..., Any], body: Callable[..., Any], init: Any) -> Any:
    """val = init; while condition(val): val = body(val)."""
    source = _source()
    carry = call(_entry, init)
    return _while("while_loop", condition, body, carry, parameter_name(body, 0, "carry"), source)


def _while(what: str, condition: Callable[..., Any], body: Callable[..., Any], carry: _Carry, parameter: str,
           source: Source | None) -> Any:
    settled = _settle(what, carry, body, parameter, _whole, _name(body), source)
    arguments = [leaf.argument() for leaf in settled.carry.leaves]
    tested = trace_body(condition, parameter, "condition", settled.carry.treedef, arguments)
    require_pure(f"{what}: the condition", tested.result)
    outputs = tested.result.outputs
    if len(outputs) != 1 or outputs[0].shape != ():
        shapes = ", ".join([str(output.shape) for output in outputs]) or "nothing"
        raise TracerError(at(outputs[0].source if outputs else source,
                             f"{what}: the condition must give one number that is true or false, it gives {shapes}\n"
                             "  hint: np.any(...) or np.all(...)"))
    return settled.carry.after(call(_emit_while, settled, tested))


def _emit_while(settled: _Settled, tested: Traced) -> list[Value]:
    results = [settled.traced.result, tested.result]
    outer = Outer(results)
    count = len(settled.carry.leaves)
    graphs = []
    for result in results:
        carried, final, read = outer.inputs(result)
        with added() as record:
            if result is tested.result:
                outputs = [as_truth(result.outputs[0])]
            else:
                outputs = [*as_kind([result.outputs[number] for number in settled.numbers], settled.carry.kinds), *final]
        graphs.append(region_graph(result, [*result.graph.inputs[:count], *carried, *read], record, outputs))
    start = [*settled.carry.values, *outer.assigned_values()]
    looped = ops.while_loop(*start, *outer.read_values(), carried=len(start), condition=graphs[1], body=graphs[0])
    items = [ops.item(looped, index=k) for k in range(len(start))]
    outer.assign(items[count:])
    return items[:count]


def as_truth(value: Value) -> Value:
    """value != 0."""
    if value.dtype is BOOL:
        return value
    return ops.not_equal(value, ops.full(value=zero_of(value.dtype), shape=value.shape, dtype=value.dtype))


def _data_loop(lower: Any, upper_bound: Any, body: Callable[..., Any], carry: _Carry, parameter: str, source: Source | None) -> Any:
    """A counted loop of which a bound is data: the counter is carried."""
    first, last = call(_bound, lower, source), call(_bound, upper_bound, source)
    inner = tree.unflatten(carry.treedef, range(len(carry.leaves)))
    both = _Carry([Leaf(first, int, True), *carry.leaves], tree.structure((0, inner)))
    end = fresh(last, int)

    def run(state: Any) -> Any:
        counter, value = state
        return counter + 1, call_user(body, (counter, value), {})

    return _while("fori_loop", lambda state: state[0] < end, run, both, parameter, source)[1]


def _bound(bound: Any, source: Source | None) -> Value:
    value = value_as(bound)
    if value.shape != () or not value.dtype.is_integer:
        raise TracerError(at(source, f"fori_loop: a bound must be an integer, got {value.dtype.numpy} of shape {value.shape}"))
    return value if value.dtype is I64 else ops.cast(value, dtype=I64)


def _name(fun: Callable[..., Any]) -> str:
    return str(getattr(fun, "__name__", "body"))


def _source() -> Source | None:
    region = active_region()
    return current_source(region.outer if region is not None else None)
