"""BW_CHECK=nan: where the first nan or infinity of a run came from.

A result of compiled code that is not finite is followed back: the interpreter computes the values of the graph again, and the way goes from
a bad element to a bad operand of what made it (in a choice, to the branch that was chosen), up to a value whose operands are sound.
So what a `where` masks is no finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import at
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.graph_interpreter import interpret
from bwcompiler.ir.graph_printer import names_in_text
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TupleType

SHOWN = 4                      # elements of an operand in a message


def check_finite(graph: Graph, arguments: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise FloatingPointError where a result is not finite, with what made it: op, index, operands and the user's line.

    arguments   all inputs of the graph as they were before the call.
    """
    for number, result in enumerate(results):
        array = np.asarray(result)
        if array.dtype.kind in "fc" and not np.isfinite(array).all():
            raise FloatingPointError(_message(graph, arguments, number, array))


def _message(graph: Graph, arguments: Sequence[Any], number: int, array: Any) -> str:
    """What to tell the user."""
    index = _first(array)
    head = f"BW_CHECK=nan: result {number} of {graph.name}{_place(index)} is {array[index]}"
    graph = graph.replace(body=live_values(graph.body, graph.outputs))
    known = dict(zip(graph.inputs, [np.asarray(argument) for argument in arguments], strict=True))
    known.update(zip(graph.body, interpret(graph.replace(outputs=graph.body), list(known.values())), strict=True))
    value = graph.outputs[number]
    if isinstance(known[value], tuple) or np.isfinite(known[value]).all():
        return f"{head}; the interpreter computes {known[value][index]} there"
    return f"{head}\n{_description(graph, *_origin(known, value, _first(known[value])), known)}"


def _origin(known: dict[Value, Any], value: Value, index: tuple[int, ...]) -> tuple[Value, tuple[int, ...]]:
    """The first value on the way back whose operands are sound, and the index of an element of it that is not."""
    while True:
        bad = _bad_operand(known, value, index, np.isnan(known[value][index]))
        if bad is None:
            break
        value, index = bad
    if np.isnan(known[value][index]):              # made of an infinity that was computed? then that is where it began
        infinite = _bad_operand(known, value, index, False)
        if infinite is not None:
            first = _origin(known, *infinite)
            if first[0].op.kind not in ("input", "constant"):
                return first
    return value, index


def _bad_operand(known: dict[Value, Any], value: Value, index: tuple[int, ...], is_nan: bool) -> tuple[Value, tuple[int, ...]] | None:
    """An operand that is nan (or just not finite), and where."""
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
    """The index of the first element that is not finite; of a nan, if there is one."""
    if bad is None:
        bad = np.isnan(array) if np.isnan(array).any() else ~np.isfinite(array)
    return tuple([int(k) for k in np.argwhere(bad)[0]])


def _place(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _description(graph: Graph, value: Value, index: tuple[int, ...], known: dict[Value, Any]) -> str:
    names = names_in_text(graph)
    found = known[value][index]
    if value in graph.inputs:
        kind = "an array from outside" if value in graph.inputs[len(graph.inputs) - graph.captured:] else "the argument"
        return at(value.source, f"{kind} {names[value]}{_place(index)} is {found}")
    of = f", which belongs to the derivative of {_forward_name(value.forward, names)}" if value.forward is not None else ""
    lines = [f"{names[value]}{_place(index)} = {found} is made by {value.op.name}{of}"]
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
