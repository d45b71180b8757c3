"""Handles of loop indices: integers that are affine in the indices of enclosing loops, so that slices can use them.

`i`, `i + 1`, `n - 2 * i` inside a loop body are `IndexTracer`s: traced integers (weak, like Python's) that also know their
extent.  So `x[i, :i + 1]` is a slice with symbolic start and size, a view as in NumPy; comparisons that the bounds of the
indices decide are plain booleans.  All other operations make ordinary traced integers of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import Storage, active_region, escaped, open_region
from bwcompiler.frontend.tracing.tracer import ScalarTracer, handle
from bwcompiler.ir.extent import Affine, Extent, add_extents, known_le, scale_extent


def _combined(name: str, inner: Callable[[Extent, Extent], Extent | None], reflected: bool = False) -> Callable[[Any, Any], Any]:
    """An operator that gives an index handle where the result is affine, else what it gives for traced integers."""
    otherwise = getattr(ScalarTracer, f"__{'r' if reflected else ''}{name}__")

    def method(self: IndexTracer, other: Any) -> Any:
        extent = extent_of(other)
        if extent is None:
            return otherwise(self, other)
        mine = self.extent()
        found = inner(extent, mine) if reflected else inner(mine, extent)
        return otherwise(self, other) if found is None else call(index_handle, found, _is_int64(self) or _is_int64(other))
    return method


def _is_int64(x: Any) -> bool:
    return x._kind is not int if isinstance(x, IndexTracer) else isinstance(x, np.integer)


def _compared(name: str, decide: Callable[[Extent, Extent], bool | None]) -> Callable[[Any, Any], Any]:
    """A comparison: a plain boolean where the bounds of the indices decide it."""
    otherwise = getattr(ScalarTracer, f"__{name}__")

    def method(self: IndexTracer, other: Any) -> Any:
        extent = extent_of(other)
        found = None if extent is None else decide(self.extent(), extent)
        return otherwise(self, other) if found is None else np.bool_(found)
    return method


def _product(x: Extent, y: Extent) -> Extent | None:
    if isinstance(y, int):
        return scale_extent(x, y)
    return scale_extent(y, x) if isinstance(x, int) else None


def _difference(x: Extent, y: Extent) -> Extent:
    return add_extents(x, scale_extent(y, -1))


def _remainder(x: Extent, y: Extent) -> Extent | None:
    """x % y where that is one number for all values of the indices in x."""
    return x.constant % y if isinstance(x, Affine) and isinstance(y, int) and _are_multiples(x, y) else None


def _quotient(x: Extent, y: Extent) -> Extent | None:
    """x // y where that is affine."""
    if not (isinstance(x, Affine) and isinstance(y, int) and _are_multiples(x, y)):
        return None
    found: Extent = x.constant // y
    for index, factor in x.terms:
        found = add_extents(found, scale_extent(index.extent(), factor // y))
    return found


def _are_multiples(x: Affine, y: int) -> bool:
    """Whether what the indices add to x are multiples of y."""
    return y > 0 and all(factor % y == 0 for _, factor in x.terms)


def _less(x: Extent, y: Extent) -> bool | None:
    return known_le(add_extents(x, 1), y)


def _equal(x: Extent, y: Extent) -> bool | None:
    if x == y:
        return True
    return False if _less(x, y) or _less(y, x) else None


def _not(found: bool | None) -> bool | None:
    return None if found is None else not found


class IndexTracer(ScalarTracer):
    """A traced integer that is affine in loop indices: weak, as Python's are, or one of NumPy's 64-bit ones."""

    __slots__ = ("_extent",)

    def __init__(self, storage: Storage, extent: Affine, is_int64: bool) -> None:
        super().__init__(storage, (), storage.type, storage.type.dtype if is_int64 else int)
        self._extent = extent

    def extent(self) -> Affine:
        """The extent; raises EscapedTracerError outside of the loop."""
        region = self._storage.region
        if region.closed or not region.encloses(active_region()):
            raise escaped(self._storage)
        return self._extent

    __add__, __radd__ = _combined("add", add_extents), _combined("add", add_extents, True)
    __sub__, __rsub__ = _combined("sub", _difference), _combined("sub", _difference, True)
    __mul__, __rmul__ = _combined("mul", _product), _combined("mul", _product, True)
    __iadd__, __isub__, __imul__ = __add__, __sub__, __mul__
    __mod__, __floordiv__ = _combined("mod", _remainder), _combined("floordiv", _quotient)
    __le__ = _compared("le", known_le)
    __lt__ = _compared("lt", _less)
    __ge__ = _compared("ge", lambda x, y: known_le(y, x))
    __gt__ = _compared("gt", lambda x, y: _less(y, x))
    __eq__ = _compared("eq", _equal)
    __ne__ = _compared("ne", lambda x, y: _not(_equal(x, y)))
    __hash__ = ScalarTracer.__hash__

    def __neg__(self) -> Any:
        return call(index_handle, scale_extent(self.extent(), -1), _is_int64(self))

    def __pos__(self) -> Any:
        return self


def index_handle(extent: Extent, is_int64: bool = False) -> Any:
    """The handle of an extent; a Python integer, or one of NumPy's, where it is one."""
    if isinstance(extent, int):
        return np.int64(extent) if is_int64 else extent
    storage = Storage(open_region(), ops.index_value(extent=extent))
    storage.writable = False
    return IndexTracer(storage, extent, is_int64)


def shape_as_numbers(shape: tuple[Extent, ...]) -> tuple[Any, ...]:
    """The extents of an array as the user's code reads them."""
    return tuple([call(index_handle, extent) for extent in shape])


HANDLERS["shape_as_numbers"] = shape_as_numbers


def as_extents(shape: Any) -> tuple[Any, ...]:
    """Sizes that are given, integers and indices of loops, as extents; raises what Python says of anything else."""
    given = tuple(shape) if isinstance(shape, tuple | list) or (isinstance(shape, np.ndarray) and shape.ndim) else (shape,)
    return tuple([_as_extent(size) for size in given])


def _as_extent(size: Any) -> Extent:
    if isinstance(size, IndexTracer):
        found = size.extent()
        if not known_le(0, found):
            raise UnsupportedError(f"an array of {found} elements along an axis: that may be negative, as far as bounds of loops say\n"
                                   "  hint: choose the bounds of the loop such that it never is")
        return found
    return size if isinstance(size, Affine) else operator.index(size)


def as_int64(x: Any) -> Any:
    """An integer or index as NumPy's 64-bit integer."""
    if isinstance(x, IndexTracer):
        return IndexTracer(x._storage, x.extent(), True)
    if isinstance(x, ScalarTracer):
        found = handle(x._storage, x._chain, x._type)
        found._kind = x._type.dtype
        return found
    return np.int64(x)


def index_like(index: IndexTracer, extent: Extent) -> Any:
    """The handle of another extent, of the same kind of integers."""
    return index_handle(extent, _is_int64(index))


def extent_of(x: Any) -> Extent | None:
    """The extent that an integer or an index handle stands for; None for all else."""
    if isinstance(x, IndexTracer):
        return x.extent()
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        return int(x)
    return None
