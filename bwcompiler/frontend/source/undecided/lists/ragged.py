"""One of several lists of different lengths, as data say: the neighbours of a traced node, `for n in neighbours[k]`.

It is a list with gaps (`gaps`) as long as the longest, whose elements are chosen among those at the same place of the lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.undecided.kinds.choices import Options, chosen_of, is_known
from bwcompiler.frontend.source.undecided.lists.gaps import Block, has_gaps, maybe, unpacked
from bwcompiler.frontend.source.variables import is_number
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.tracer import Tracer

_LONGEST = 64
_PLAIN = (int, float)


def are_ragged(values: Sequence[Any]) -> bool:
    """Whether these are lists, or tuples, of different lengths."""
    kind = type(values[0])
    if kind not in (list, tuple) or any(type(one) is not kind or has_gaps(one) for one in values):
        return False
    return len({len(one) for one in values}) > 1 and max(map(len, values)) <= _LONGEST


def one_of(values: Sequence[Any], which: Any, choose: Callable[[list[Any], Any], Any]) -> list[Any]:
    """values[which]; choose: what gives one of the elements at a place."""
    lengths = list(map(len, values))
    columns = [[one[place] if place < len(one) else None for one in values] for place in range(max(lengths))]
    columns = [[_some(column) if one is None else one for one in column] for column in columns]
    count = call(as_tracer, np.array(lengths))[which]
    block = _block(columns, which, count)
    if block is not None:
        return unpacked([block])
    chosen = [choose(column, which) for column in columns]
    return [one if place < min(lengths) else maybe(count > place, one) for place, one in enumerate(chosen)]


def _some(column: list[Any]) -> Any:
    """An element in the place of those that are not there."""
    return next(one for one in column if one is not None)


def _block(columns: list[list[Any]], which: Any, count: Any) -> Block | None:
    """The elements as arrays, where they are numbers, tuples of numbers of the same kinds, or known things."""
    present, things = np.arange(len(columns)) < count, [one for column in columns for one in column]
    if all(map(is_known, things)):
        options = Options(things)
        places = call(as_tracer, np.array([[options.place(one) for one in column] for column in columns]))
        return Block(present, chosen_of(options, places[:, which]), len(columns), True, (None,))
    forms = {(str(tree.structure(one)), tree.key_orders(one)) for column in columns for one in column}
    rows = [[tree.leaves(one) for one in column] for column in columns]
    numbers = [leaf for column in rows for one in column for leaf in one]
    if len(forms) > 1 or not all(map(is_number, numbers)) or not numbers:
        return None
    kinds, leaves = [], []
    for number in range(len(rows[0][0])):
        table = [[one[number] for one in column] for column in rows]
        found = {leaf._kind if isinstance(leaf, Tracer) else type(leaf) for column in table for leaf in column}
        kinds.append(found.pop() if len(found) == 1 and found <= set(_PLAIN) else None)
        leaves.append(np.stack([_row(column) for column in table])[:, which])
    return Block(present, tree.unflatten(tree.structure(columns[0][0]), leaves), len(columns), True, tuple(kinds))


def _row(column: list[Any]) -> Any:
    if any(isinstance(one, Tracer) for one in column):
        return np.stack([call(as_tracer, one) for one in column])
    return call(as_tracer, np.array(column))
