"""The elements that the iterations of a loop append to lists (`growth`): an element's leaves are rows of arrays; one array stands for many
elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.undecided.lists.gaps import Block, Maybe
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.shared_arrays import SharedView
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, as_int64, index_handle
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.storages.region import Storage
from bwcompiler.frontend.tracing.storages.views import chain_at
from bwcompiler.frontend.tracing.tracer import Tracer, handle
from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent, substitute
from bwcompiler.ir.op import Value


class Row(NamedTuple):
    """A leaf of an appended element: a view, by `chain`, of what is a row of the buffer of a storage of the body.

    origin   what it is a copy of a part of, at another place in each iteration; nobody writes to either (`carried/kept.py`).
    """

    storage: Storage
    leaf: Tracer
    origin: Storage | None = None


class Moved(NamedTuple):
    """A leaf of an appended element: a view of an array from outside of the loop, at a place that moves with it."""

    leaf: Tracer

    def at(self, environment: Mapping[Index, Extent]) -> Tracer:
        """What it is in the iteration of that index."""
        return handle(self.leaf._storage, chain_at(self.leaf._chain, environment), self.leaf._type)


class Element(NamedTuple):
    """An appended element; its leaves are rows, views that move, the number that an index has (IndexTracer), or the same in all iterations.

    present  the truth value that says whether the iteration has appended it; None where all have.
    """

    structure: Any
    leaves: list[Any]
    present: Value | None = None


BLOCK = 12                     # elements, from which on arrays stand for them


class _Part(NamedTuple):
    """What one append has appended in all iterations: whether it has, and the leaves, as arrays whose second axis is along a block.

    structure, kinds  of an element: see Block.  each: how many elements in an iteration, of a block; 0: one element.
    """

    present: Any
    arrays: list[Any]
    structure: Any
    kinds: tuple[Any, ...]
    each: int

    def form(self) -> Any:
        """What parts have in common whose elements can be rows of one array."""
        return self.structure, self.kinds, [(array.dtype, array.shape[2:]) for array in self.arrays]


def _part(element: Element, count: int, index: Any, buffers: dict[Storage, Tracer]) -> _Part | None:
    structure, leaves, _ = element
    found = [_column(leaf, count, index, buffers) for leaf in leaves]
    if any(array is None for array in found):
        return None
    item = tree.unflatten(structure, range(len(leaves)))
    if isinstance(item, Block):
        return _Part(found[0], found[1:], tree.structure(item.value), item.kinds, item.count)
    columns = [np.expand_dims(array, 1) for array in found]
    present, values = (columns[0], columns[1:]) if type(item) is Maybe else (True, columns)
    value = item.value if type(item) is Maybe else item
    return _Part(present, values, tree.structure(value), tuple(map(_python_kind, leaves[len(leaves) - len(values):])), 0)


def block_of(elements: Sequence[Element], count: int, index: Any, buffers: dict[Storage, Tracer], iterations: Any) -> Block | None:
    """What all iterations have appended of which data decides whether they have, as arrays."""
    parts = [_part(one, count, index, buffers) for one in elements]
    first = parts[0] if parts else None
    if first is None or any(part is None or part.form() != first.form() for part in parts):
        return None
    known = [part for part in parts if part is not None]
    always = all(part.present is True for part in known)
    if not any(part.each for part in known) and ((always and iterations is None) or (
            count * len(known) < BLOCK and not isinstance(iterations, IndexTracer))):
        return None
    flags = [np.ones((count, 1), bool) if part.present is True else part.present for part in known]
    rows = [[flag, *part.arrays] for flag, part in zip(flags, known, strict=True)]
    present, *arrays = [_joined(columns) for columns in zip(*rows, strict=True)]
    if iterations is not None:
        present = np.logical_and(present, np.repeat(np.arange(count) < iterations, present.shape[0] // count))
    return Block(present, tree.unflatten(first.structure, arrays), present.shape[0], always and len(known) == 1, first.kinds)


def _joined(columns: Sequence[Any]) -> Any:
    """What the appends of each iteration have appended, one after the other."""
    whole: Any = np.concatenate([call(as_tracer, column) for column in columns], axis=1) if len(columns) > 1 else columns[0]
    return np.reshape(whole, (whole.shape[0] * whole.shape[1], *whole.shape[2:]))


def _column(leaf: Any, count: int, index: Any, buffers: dict[Storage, Tracer]) -> Any:
    """What a leaf is in all iterations, as an array; None where it is none."""
    if isinstance(leaf, Row):
        rows, chain = buffers[leaf.storage], leaf.leaf._chain
        if len(chain) == 1 and isinstance(chain[0], SharedView):
            return handle(rows._storage, (chain[0].over(rows.shape),), rows._type)
        return None if chain else rows
    if type(leaf) in (bool, int, float, complex) or isinstance(leaf, np.generic):
        return np.full(count, leaf)
    if not isinstance(leaf, IndexTracer) or index is None:
        return None
    start, second = [substitute(leaf._extent, {index: number}) for number in (0, 1)]
    step = add_extents(second, scale_extent(start, -1))
    return as_int64(call(index_handle, start)) + np.arange(count) * step if isinstance(step, int) else None


def _python_kind(leaf: Any) -> Any:
    """The type of a number of Python's, None of all else."""
    if isinstance(leaf, IndexTracer):
        return int if leaf._kind is int else None
    found = leaf.leaf._kind if isinstance(leaf, Row) else type(leaf)
    return found if isinstance(found, type) and not issubclass(found, np.generic) else None
