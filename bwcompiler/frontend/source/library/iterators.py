"""NumPy's iterators over traced arrays: np.broadcast, np.ndenumerate and np.nditer, which visits elements in memory order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced, known_parts, shadow_of
from bwcompiler.frontend.tracing.tracer import Tracer

_numpy_iterator: Any = np.nditer
_FLAGS = frozenset(("multi_index", "c_index", "f_index", "refs_ok", "zerosize_ok"))


class Broadcast:
    """np.broadcast(x, y): what elements meet, and the shape of where they do."""

    def __init__(self, *arrays: Any) -> None:
        self._operands = [call(as_tracer, array) for array in arrays]
        self.shape = np.broadcast_shapes(*[operand.shape for operand in self._operands])
        self.ndim = self.nd = len(self.shape)
        self.numiter = len(arrays)
        self.size = math.prod(self.shape)


    @property
    def iters(self) -> tuple[Any, ...]:
        return tuple([np.broadcast_to(operand, self.shape).flat for operand in self._operands])

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        views = [np.broadcast_to(operand, self.shape) for operand in self._operands]
        return (tuple([view[place] for view in views]) for place in np.ndindex(*self.shape))


def broadcast(*arrays: Any) -> Any:
    return Broadcast(*arrays) if any(map(is_traced, arrays)) else np.broadcast(*arrays)


def ndenumerate(array: Any) -> Any:
    """The places of all elements, and these."""
    if not isinstance(array, Tracer):
        return np.ndenumerate(array)
    return ((place, array[place]) for place in np.ndindex(*array.shape))


class Places:
    """np.ndindex(n, m): all indices, of which a loop may be recorded."""

    def __init__(self, *shape: Any) -> None:
        self._left = np.ndindex(*known_parts(shape))
        self.shape = tuple(known_parts(shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape))
        self.is_new = True

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> tuple[int, ...]:
        self.is_new = False
        return next(self._left)

    def at(self, number: Any) -> tuple[Any, ...]:
        """The indices of a number that is traced."""
        found: list[Any] = []
        for extent in self.shape[:0:-1]:
            found.append(number % extent)
            number = number // extent
        return (number, *found[::-1])


def isfortran(array: Any) -> bool:
    return call(shadow_of, array).flags.fnc if isinstance(array, Tracer) else np.isfortran(array)


class ElementIterator:
    """np.nditer(x), or of several, in a `for`: views of one element, which can be written through where `op_flags` say so."""

    def __init__(self, op: Any, flags: Any, op_flags: Any, order: str) -> None:
        arrays = [call(as_tracer, one) for one in (op if isinstance(op, tuple | list) else (op,))]
        self.shape = np.broadcast_shapes(*[array.shape for array in arrays])
        self.operands, self.nop, self.ndim = tuple(arrays), len(arrays), len(self.shape)
        modes = [op_flags] * self.nop if not op_flags or isinstance(op_flags[0], str) else op_flags
        self._written = [not {"readwrite", "writeonly"}.isdisjoint(mode or ()) for mode in modes]
        self._views = [array if array.shape == self.shape else np.broadcast_to(array, self.shape) for array in arrays]
        # Their stand-ins have the strides of the arrays, which decide the order; no element of them is read.
        walk = _numpy_iterator([call(shadow_of, array) for array in arrays], ["multi_index", "zerosize_ok"], order=order)
        self._places: list[tuple[int, ...]] = [walk.multi_index for _ in walk]
        self._names = frozenset(flags or ())
        self.itersize = len(self._places)
        self.iterindex = 0

    @property
    def multi_index(self) -> tuple[int, ...]:
        if "multi_index" not in self._names:
            raise ValueError("Iterator is not tracking a multi-index")
        return self._places[self.iterindex]

    @property
    def index(self) -> int:
        if not self._names & {"c_index", "f_index"}:
            raise ValueError("Iterator does not have an index")
        return int(np.ravel_multi_index(self._places[self.iterindex], self.shape, order="F" if "f_index" in self._names else "C"))

    def __iter__(self) -> Iterator[Any]:
        views: Any = [*zip(self._views, self._written, strict=True)]
        for number, place in enumerate(self._places):
            self.iterindex = number
            found = tuple([view[(*place, ...)] if written else view[place] for view, written in views])
            yield found if self.nop > 1 else found[0]

    def __len__(self) -> int:
        return self.itersize

    def __enter__(self) -> ElementIterator:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> NoReturn:
        call(_refuse, f"has no {name}: write a `for` over it")
        raise AssertionError

    def __getitem__(self, number: int) -> NoReturn:
        call(_refuse, "has no elements: write a `for` over it")
        raise AssertionError


def nditer(op: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None, order: str = "K", *rest: Any, **options: Any) -> Any:
    """Over traced arrays: elements in the order of memory."""
    parts = op if isinstance(op, tuple | list) else (op,)
    if not any(map(is_traced, parts)):
        return _numpy_iterator(op, flags, op_flags, op_dtypes, order, *rest, **options)
    unknown = set(flags or ()) - _FLAGS
    if unknown or op_dtypes is not None or rest or options or any(part is None for part in parts):
        call(_refuse, f"takes the flags multi_index, c_index and f_index, op_flags and order=, not {', '.join(sorted(unknown)) or 'these'}")
    return ElementIterator(op, flags, op_flags, order)


def _refuse(why: str) -> NoReturn:
    raise UnsupportedError(f"np.nditer of traced arrays {why}\n  hint: for element in x.ravel(), or operations on the whole array")
