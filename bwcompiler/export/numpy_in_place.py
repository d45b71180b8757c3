"""`written_in_place`: the updates in a loop's body that exported code can do in place, in the array that the loop carries.

An update makes a new array in the graph, and a copy in NumPy.  In a loop this would copy the whole array in every iteration, which is
quadratic for stacks of residuals, whose size is the number of iterations.
"""

from __future__ import annotations

from collections.abc import Iterable

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value

_MADE_ANEW = ("elementwise", "reduction")          # kinds of ops whose results share no memory with their operands


def written_in_place(body: Graph, carried: int) -> dict[int, list[Value]]:
    """Per carried position the sequence of updates from the array of one iteration to that of the next.

    After an update, nothing may read the array in its old state: neither its readers, nor possible views of it.
    """
    places = {value: place for place, value in enumerate(body.body)}
    readers: dict[Value, list[Value]] = {}
    for value in body.body:
        for operand in value.operands:
            readers.setdefault(operand, []).append(value)
    found = {}
    for position, parameter in enumerate(body.inputs[:carried]):
        updates = _updates(parameter, body.outputs[position])
        before = [parameter, *updates[:-1]]
        views = {value for array in (parameter, *updates) for value in _views(array, readers)}
        if updates and body.outputs.count(updates[-1]) == 1 and views.isdisjoint(body.outputs) and all(
                _is_last(array, update, readers, places) for array, update in zip(before, updates, strict=True)):
            found[position] = updates
    return found


def _updates(parameter: Value, last: Value) -> list[Value]:
    """The updates that turn the parameter into `last`; none if there are other ops in between."""
    found = []
    while last.op in ops.WRITES and last.rank:
        found.append(last)
        last = last.operands[0]
    return found[::-1] if last is parameter else []


def _views(array: Value, readers: dict[Value, list[Value]]) -> Iterable[Value]:
    """The array and values that may share its memory, except its updates."""
    seen, waiting = {array}, [array]
    while waiting:
        value = waiting.pop()
        for reader in readers.get(value, ()):
            copied = reader.op in ops.WRITES or (reader.op.kind in _MADE_ANEW and not value.dtype.is_complex)      # x.real is a view
            if not copied and reader not in seen:
                seen.add(reader)
                waiting.append(reader)
    return seen - {array}


def _is_last(array: Value, update: Value, readers: dict[Value, list[Value]], places: dict[Value, int]) -> bool:
    """Whether the update is the last reader of an array and its views, and the value that it writes is not a view of it."""
    views = {array, *_views(array, readers)}
    return views.isdisjoint(update.operands[1:]) and all(
        reader is update or places[reader] < places[update] for view in views for reader in readers.get(view, ()))
