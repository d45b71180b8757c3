"""BW_CHECK=nan: where the first nan or infinity of a run came from.

A non-finite result of compiled code is traced back to its origin: the interpreter recomputes the values of the graph, and the search goes
from a non-finite element to a non-finite operand of the op that computed it (for `where`, to the selected operand), until it reaches a
value whose operands are all finite.  So elements that a `where` masks are not reported.  The search also goes through loops, from
iteration to iteration, and through branches (`_through`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import at
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.graph_interpreter import Environment, concrete_attributes, interpret
from bwcompiler.ir.texts.graph_printer import names_in_text
from bwcompiler.ir.types import TupleType
from bwcompiler.ops.calls.region import loop_indices

SHOWN = 4                      # elements of an operand in a message
KEPT_BYTES = 1 << 28           # limit for the saved states of all iterations of a loop


def check_finite(graph: Graph, arguments: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise FloatingPointError if a result is not finite, with its origin: op, index, operands and the user's line.

    arguments   all inputs of the graph as they were before the call.
    """
    for number, result in enumerate(results):
        array = np.asarray(result)
        if array.dtype.kind in "fc" and not np.isfinite(array).all():
            raise FloatingPointError(_message(graph, arguments, number, array))


def _message(graph: Graph, arguments: Sequence[Any], number: int, array: Any) -> str:
    """The message of the error for a non-finite element of a result."""
    index = _first(array)
    head = f"BW_CHECK=nan: result {number} of {graph.name}{_place(index)} is {array[index]}"
    run = _Run.of(graph, [np.asarray(argument) for argument in arguments], {})
    array = run.known[graph.outputs[number]]
    if isinstance(array, tuple) or np.isfinite(array).all():
        return f"{head}; the interpreter computes {array[index]} there"
    return f"{head}\n{_description(run.origin(graph.outputs[number], _first(array)))}"


class _Run(NamedTuple):
    """One evaluation of a graph: `known` has all its values.  where: a description of the iterations and branches that enclose it."""

    graph: Graph
    known: dict[Value, Any]
    environment: Environment
    where: tuple[str, ...] = ()

    @staticmethod
    def of(graph: Graph, arguments: Sequence[Any], environment: Environment, where: tuple[str, ...] = ()) -> _Run:
        graph = graph.replace(body=live_values(graph.body, graph.outputs))
        known = dict(zip(graph.inputs, arguments, strict=True))
        known.update(zip(graph.body, interpret(graph.replace(outputs=graph.body), arguments, environment), strict=True))
        return _Run(graph, known, environment, where)

    def origin(self, value: Value, index: tuple[int, ...]) -> _Finding:
        """The first value on the way back whose operands are finite, and the index of a non-finite element of it."""
        known = self.known
        while True:
            if value.op is ops.item and value.operands[0].op in _REGIONS:
                inside = _through(self, value, index)
                if isinstance(inside, _Finding):
                    return inside
                value, index = inside
                continue
            bad = _bad_operand(known, value, index, np.isnan(known[value][index]))
            if bad is None:
                break
            value, index = bad
        if np.isnan(known[value][index]):          # a nan computed from an infinity: the infinity is the origin
            infinite = _bad_operand(known, value, index, False)
            if infinite is not None:
                first = self.origin(*infinite)
                if first.value.op.kind not in ("input", "constant"):
                    return first
        return _Finding(self, value, index)


class _Finding(NamedTuple):
    """The origin of a nan or infinity."""

    run: _Run
    value: Value
    place: tuple[int, ...]


# ----- loops and branches
def _through(run: _Run, item: Value, index: tuple[int, ...]) -> _Finding | tuple[Value, tuple[int, ...]]:
    """The origin of a result inside its loop or branch; or the operand of the loop or branch that was already not finite."""
    region = item.operands[0]
    place: int = item.attrs["index"]
    carried = region.attrs.get("carried", 0)
    for inner in _REGIONS[region.op](run, region):
        found = inner.origin(inner.graph.outputs[place], index)
        inputs = inner.graph.inputs
        if found.run is not inner or found.value not in inputs:
            return found
        place, index = inputs.index(found.value), found.place
        if place >= carried:
            break
    operand: Value = region.operands[place + (region.op is ops.cond)]
    return operand, index


def _iterations(run: _Run, region: Value) -> Iterator[_Run]:
    """The iterations of a counted loop, last first."""
    attrs = concrete_attributes(region, run.environment)
    numbers = loop_indices(attrs["lo"], attrs["hi"], attrs["step"])
    body: Graph = region.attrs["body"]
    assert body.index is not None
    yield from _backwards(run, region, [{**run.environment, body.index: number} for number in numbers], numbers)


def _rounds(run: _Run, region: Value) -> Iterator[_Run]:
    """The iterations of a loop with a data-dependent end, last first."""
    body, condition, carried = region.attrs["body"], region.attrs["condition"], region.attrs["carried"]
    arrays, count = [run.known[operand] for operand in region.operands], 0
    while bool(interpret(condition, arrays, run.environment)[0]):
        arrays[:carried] = interpret(body, arrays, run.environment)
        count += 1
    yield from _backwards(run, region, [run.environment] * count, range(count))


def _backwards(run: _Run, region: Value, environments: Sequence[Environment], numbers: Sequence[int]) -> Iterator[_Run]:
    """The iterations, last first; if the states are large, only every n-th is kept and those between are recomputed."""
    body, carried, count = region.attrs["body"], region.attrs["carried"], len(environments)
    arrays = [run.known[operand] for operand in region.operands]
    start, fixed = arrays[:carried], arrays[carried:]
    stride = 1 if count * sum([array.nbytes for array in start]) <= KEPT_BYTES else math.isqrt(count)

    def after(state: Sequence[Any], number: int) -> list[Any]:
        return interpret(body, [*state, *fixed], environments[number])

    kept, state = [start], start
    for number in range(1, count):
        state = after(state, number - 1)
        if number % stride == 0:
            kept.append(state)
    for segment in reversed(range(-(-count // stride))):
        first, states = segment * stride, [kept[segment]]
        while first + len(states) < min(first + stride, count):
            states.append(after(states[-1], first + len(states) - 1))
        for number, state in reversed(list(enumerate(states, first))):
            where = (*run.where, f"iteration {numbers[number]} of {_named(region)}")
            yield _Run.of(body, [*state, *fixed], environments[number], where)


def _branch(run: _Run, region: Value) -> Iterator[_Run]:
    predicate, *arrays = [run.known[operand] for operand in region.operands]
    name = "then_branch" if predicate else "else_branch"
    yield _Run.of(region.attrs[name], arrays, run.environment, (*run.where, f"the branch of {_named(region)} for {bool(predicate)}"))


def _body(run: _Run, region: Value) -> Iterator[_Run]:
    yield _Run.of(region.attrs["body"], [run.known[operand] for operand in region.operands], run.environment, run.where)


def _named(region: Value) -> str:
    return f"the {region.op.name.replace('_', ' ')}{f' in {region.source.short}' if region.source is not None else ''}"


_REGIONS = {ops.loop: _iterations, ops.while_loop: _rounds, ops.cond: _branch, ops.checkpoint: _body}


def _bad_operand(known: dict[Value, Any], value: Value, index: tuple[int, ...], is_nan: bool) -> tuple[Value, tuple[int, ...]] | None:
    """An operand with a nan (or only an infinity), and the index of that element."""
    operands = value.operands
    if value.op is ops.select:
        operands = operands[1:2] if known[operands[0]][index] else operands[2:]
    for operand in operands:
        array = known[operand]
        if isinstance(array, tuple) or array.dtype.kind not in "fc":
            continue
        bad = np.isnan(array) if is_nan else ~np.isfinite(array)
        if value.op.kind == "elementwise":
            if bad[index]:
                return operand, index
        elif bad.any():
            return operand, _first(array, bad)
    return None


def _first(array: Any, bad: Any = None) -> tuple[int, ...]:
    """The index of the first nan, or without one of the first element that is not finite."""
    if bad is None:
        bad = np.isnan(array) if np.isnan(array).any() else ~np.isfinite(array)
    return tuple([int(k) for k in np.argwhere(bad)[0]])


def _place(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _description(finding: _Finding) -> str:
    run, value, index = finding
    graph, known = run.graph, run.known
    names = names_in_text(graph)
    found = known[value][index]
    if value in graph.inputs:
        kind = "an array from outside" if value in graph.inputs[len(graph.inputs) - graph.captured:] else "the argument"
        return at(value.source, f"{kind} {names[value]}{_place(index)} is {found}")
    of = f", which belongs to the derivative of {_forward_name(value.forward, names)}" if value.forward is not None else ""
    lines = [f"{names[value]}{_place(index)} = {found} was computed by {value.op.name}{of}"]
    lines[0] += "".join([f", in {where}" for where in reversed(run.where)])
    lines += [f"    {_operand(operand, value, index, known[operand], names)}" for operand in value.operands]
    return at(value.source, "\n".join(lines))


def _forward_name(value: Value, names: dict[Value, str]) -> str:
    where = f" ({value.source.short})" if value.source is not None else ""
    return f"{names.get(value, value.label)}{where}"


def _operand(operand: Value, value: Value, index: tuple[int, ...], array: Any, names: dict[Value, str]) -> str:
    if isinstance(operand.type, TupleType):
        return f"of {names[operand]}: {operand.type}"
    if value.op.kind == "elementwise":
        return f"of {names[operand]}{_place(index)} = {array[index]}"
    flat = array.ravel()
    shown = ", ".join(str(element) for element in flat[:SHOWN]) + (", ..." if flat.size > SHOWN else "")
    if flat.size > SHOWN and flat.dtype.kind != "c":
        shown += f" ({flat.min()} to {flat.max()})"
    return f"of {names[operand]}: {operand.type} = {shown}"
