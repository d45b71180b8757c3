"""Elements of lists that arrays hold, one array for each leaf: numbers, arrays of one shape and dtype, tuples of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.frontend.source.concrete.makers import note_shown
from bwcompiler.frontend.source.variables import is_number
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.shared_arrays import keep, share
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.operands import as_tracer, stack_all
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.storages.region import Storage
from bwcompiler.frontend.tracing.tracer import Tracer, fresh_array
from bwcompiler.ir.types import TensorType, dtype_of, tensor
from bwcompiler.ops.rules import zero_of

Kind = tuple[Any, TensorType]  # of a leaf: Python's type of a number, or None; dtype and shape
Form = tuple[Any, list[Kind]]  # of an element: its structure, and the kinds of its leaves
_WHY_NOT = ": it is an element of a list\n  hint: write to a copy, kept[k].copy()"


def is_integer(x: Any) -> bool:
    """Whether it is an integer or a truth value, traced or not."""
    return bool(is_number(x)) and (x.dtype.kind in "iu" if isinstance(x, Tracer | np.generic) else type(x) in (bool, int))


def form_of(x: Any) -> Form | None:
    """The structure of an element and the kinds of its leaves; None of what arrays do not hold."""
    if not isinstance(x, tuple | Tracer | np.ndarray | np.generic | float | int):
        return None
    leaves = tree.leaves(x)
    kinds = [_kind(leaf) for leaf in leaves]
    if isinstance(x, tuple) and any(map(is_integer, leaves)):
        return None
    return None if not kinds or None in kinds else (tree.structure(x), [kind for kind in kinds if kind is not None])


def _kind(leaf: Any) -> Kind | None:
    """Of a real number float and f64, whatever it is, but for floats of other dtypes; of these and of an array the type."""
    if is_number(leaf):
        kind = leaf.dtype.kind if isinstance(leaf, Tracer | np.generic) else ""
        if kind == "f" and leaf.dtype != np.float64:
            return None, tensor(dtype_of(leaf.dtype), ())
        is_real = kind in "fi" if kind else type(leaf) in (int, float)
        return (float, tensor(dtype_of(np.dtype(float)), ())) if is_real else None
    if isinstance(leaf, Tracer):
        return (None, leaf._type) if leaf._type.is_fixed and not isinstance(leaf, IndexTracer) else None
    if type(leaf) is np.ndarray and leaf.dtype.kind in "biufc":
        return None, tensor(dtype_of(leaf.dtype), leaf.shape)
    return None


def has_form(x: Any, form: Form) -> bool:
    """Whether arrays that were made for elements of a form can hold x."""
    return form_of(x) == form


def buffer(count: int, type_: TensorType) -> Tracer:
    """Zeros for so many arrays of a type, in the current region."""
    return call(lambda: fresh_array(ops.full(value=zero_of(type_.dtype), shape=(count, *type_.shape), dtype=type_.dtype)))  # type: ignore[no-any-return]


def filled(kind: Kind, count: int, places: Sequence[int], column: Sequence[Any]) -> Tracer:
    """An array of so many elements, which holds the leaves of a column at some places and zeros elsewhere."""
    for leaf in column:
        if isinstance(leaf, np.ndarray):
            note_shown(leaf)
    if kind[0] is float:
        column = [call(as_tracer, number).astype(float) for number in column]
    if len(column) == count:
        return call(stack_all, column).copy()  # type: ignore[no-any-return]
    made = buffer(count, kind[1])
    if column:
        made[np.array(places)] = call(stack_all, column)
    return made


def keep_or_note(leaf: Any, site: Site) -> None:
    """An array is put in a list, which has a copy of it: the loop at `site` is unrolled where somebody writes to the array later."""
    if isinstance(leaf, np.ndarray):
        note_shown(leaf)
    elif isinstance(leaf, Tracer):
        keep(leaf, site)


def handed_out(found: Any, kind: Any, site: Site, held: Iterable[Storage]) -> Any:
    """What is handed out: a number; or a copy of an array, which may be one of those that the list held before the loop at `site`.

    The loop is unrolled where somebody writes to the copy, or reads it after one of these was written to.
    """
    if kind is not None:
        found._kind = kind
    if not found._type.shape:
        return found
    found = found.copy()
    share(found, held, "what a list holds", _WHY_NOT, site)
    return found


def storages_of(elements: Iterable[Any]) -> list[Storage]:
    """The storages of the arrays that are elements, or parts of them."""
    return list(dict.fromkeys([leaf._storage for one in elements for leaf in tree.leaves(one) if isinstance(leaf, Tracer)]))
