"""Functions that create arrays.  Inside a trace they return handles (so that `y = zeros(n); y[i] = x` works), outside ndarrays.

They are `bwcompiler.numpy.zeros` and so on, and the implementations of `like=` and the `..._like` functions for handles.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.numpy.manipulation.layout import _strings, astype, contiguous, indexed
from bwcompiler.frontend.numpy.manipulation.ranges import bounds_of, is_traced_float, known_size, of_floats, of_indices, of_size
from bwcompiler.frontend.numpy.selected.counted import arange as counted_arange
from bwcompiler.frontend.numpy.selected.counted import eye_by_count, filled_by_count, is_count
from bwcompiler.frontend.numpy.selected.counted import linspace as counted_linspace
from bwcompiler.frontend.tracing.calls import call, call_numpy
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, as_extents
from bwcompiler.frontend.tracing.operands import (
    SEQUENCES,
    _holds_tracers,
    as_tracer,
    assembled,
    cast,
    known,
    known_parts,
    materialise,
    operand,
    stack_objects,
    value_as,
)
from bwcompiler.frontend.tracing.promotion import asked, requested, strong
from bwcompiler.frontend.tracing.registry import HANDLERS, implements, refuse_options
from bwcompiler.frontend.tracing.storages.memory_order import fixed
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.storages.shapes import fortran_strides
from bwcompiler.frontend.tracing.storages.strided_views import everything_of
from bwcompiler.frontend.tracing.tracer import Tracer, fresh_array
from bwcompiler.ir.types import F64, I64, DType


def _full_traced(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    counted = filled_by_count(_full_traced, shape, fill_value, dtype)
    if counted is not None:
        return counted
    payload, kind = operand(fill_value)
    target = requested(dtype) or strong(kind)
    extents = as_extents(shape)
    if len(payload.shape) > len(extents):
        raise ShapeError(f"could not broadcast input array from shape {payload.shape} into shape {extents}")
    return fresh_array(materialise(payload, target, extents))


def _in_order(made: Any, order: Any) -> Any:
    """A new array in C or Fortran order."""
    if _strings(order, "C", "F", "A", "K") == "F" and isinstance(made, Tracer):
        made._storage.layout = fixed(fortran_strides(made.shape))
    return made


def zeros(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """np.zeros; inside a trace a traced array, so that traced values can be assigned to its elements.

    >>> import numpy as np, bwcompiler as bw
    >>> def squares(x):
    ...     y = bw.numpy.zeros(2)
    ...     for i in range(2):
    ...         y[i] = x[i] ** 2
    ...     return y.sum()
    >>> bw.grad(squares)(np.array([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    if active_region() is None:
        return np.zeros(shape, dtype, order)
    return _in_order(call(_full_traced, shape, 0, F64 if dtype is None else asked(dtype)), order)


def ones(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """np.ones; inside a trace a traced array.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: x + bw.numpy.ones(2))(np.zeros(2)).tolist()
    [1.0, 1.0]
    """
    if active_region() is None:
        return np.ones(shape, dtype, order)
    return _in_order(call(_full_traced, shape, 1, F64 if dtype is None else asked(dtype)), order)


def empty(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """np.empty; inside a trace a traced array of zeros.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: bw.numpy.empty(2) * x)(3.0).shape
    (2,)
    """
    return np.empty(shape, dtype, order) if active_region() is None else zeros(shape, dtype, order)


class _ArrayType(type):
    """`isinstance(x, ndarray)` as in NumPy, and also true for handles; a call makes an uninitialised array."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, np.ndarray | Tracer)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, np.ndarray | Tracer)

    def __call__(cls, shape: Any, dtype: Any = float, buffer: Any = None, offset: Any = 0, strides: Any = None, order: Any = None) -> Any:
        if active_region() is None or buffer is not None or strides is not None:
            return np.ndarray(shape, dtype, buffer, offset, strides, order)
        return empty(shape, dtype, "C" if order is None else order)


class ndarray(metaclass=_ArrayType):
    """np.ndarray for `isinstance` and annotations; traced arrays are instances too.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: x * isinstance(x, bw.numpy.ndarray))(np.ones(2)).tolist()
    [1.0, 1.0]
    """


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Any:
    """np.full; fill_value may be traced.  Raises ShapeError if it does not broadcast to shape.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.grad(lambda x: np.sum(bw.numpy.full(3, x)))(1.0).item()
    3.0
    """
    if active_region() is None:
        return np.full(shape, fill_value, dtype, order)
    return _in_order(call(_full_traced, shape, fill_value, dtype), order)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, order: Any = "C", *, device: Any = None,
        like: Any = None) -> Any:
    """np.eye; inside a trace a traced array.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: x * bw.numpy.eye(2))(3.0).tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    if active_region() is None:
        return np.eye(N, M, k, dtype, order)
    return _in_order(call(_eye_traced, N, N if M is None else M, k, F64 if dtype is None else asked(dtype)), order)


def _eye_traced(rows: Any, columns: Any, k: Any, dtype: DType) -> Any:
    counted = eye_by_count(_eye_traced, rows, columns, k, dtype)
    if counted is not None:
        return counted
    shape = as_extents(known_parts((rows, columns)))
    distance = ops.subtract(*[ops.iota(shape=shape, axis=axis, dtype=I64) for axis in (1, 0)])
    return fresh_array(cast(ops.equal(distance, materialise(operand(k)[0], I64, shape)), dtype))


def identity(n: int, dtype: Any = None, *, like: Any = None) -> Any:
    """np.identity; inside a trace a traced array.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: x * bw.numpy.identity(2))(3.0).tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    return eye(n, dtype=float if dtype is None else dtype)


def array(object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: Any = False, ndmin: int = 0,
          ndmax: int = 0, like: Any = None) -> Any:
    """np.array; the elements may be traced.  Nested lists are stacked, with NumPy's promotion.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: bw.numpy.array([x[1], -x[0]]))(np.array([1.0, 2.0])).tolist()
    [2.0, -1.0]
    """
    if active_region() is None:
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
    options = {"dtype": dtype, "copy": copy, "order": order, "ndmin": ndmin}
    return call_numpy(np.array, (object,), options, _array_traced, object, dtype, ndmin, bool(copy), order)


def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None) -> Any:
    """np.asarray; traced arrays and ndarrays are returned unchanged, lists become arrays as by `array`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: bw.numpy.asarray(x) * 2)(np.ones(2)).tolist()
    [2.0, 2.0]
    """
    if active_region() is None or (isinstance(a, np.ndarray) and a.dtype != np.dtype(object)):
        return np.asarray(a, dtype, order)
    return call_numpy(np.asarray, (a,), {"dtype": dtype, "order": order}, _array_traced, a, dtype, 0, bool(copy), order)


def asanyarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None) -> Any:
    """np.asanyarray; like `asarray`, but concrete subclasses of ndarray are returned unchanged.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: bw.numpy.asanyarray(x) * 2)(np.ones(2)).tolist()
    [2.0, 2.0]
    """
    if active_region() is None or isinstance(a, np.ndarray):
        return np.asanyarray(a, dtype, order)
    return asarray(a, dtype, order, copy=copy)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """np.ascontiguousarray: in C order, with at least one axis; the array itself if it already is.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: bw.numpy.ascontiguousarray(x.T))(np.ones((2, 3))).shape
    (3, 2)
    """
    return _ordered(np.ascontiguousarray, a, dtype, "C")


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """np.asfortranarray: in Fortran order, with at least one axis; the array itself if it already is.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: bw.numpy.asfortranarray(x))(np.ones((2, 3))).shape
    (2, 3)
    """
    return _ordered(np.asfortranarray, a, dtype, "F")


def _ordered(function: Any, a: Any, dtype: Any, order: str) -> Any:
    if active_region() is None or (isinstance(a, np.ndarray) and a.dtype != np.dtype(object)):
        return function(a, dtype)
    return call_numpy(function, (a,), {"dtype": dtype}, _array_traced, a, dtype, 1, False, order)


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """np.require: an array of that dtype in C or Fortran order; traced arrays can be written to, and are aligned.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: bw.numpy.require(x.T, float, "C"))(np.ones((2, 3))).shape
    (3, 2)
    """
    if active_region() is None or (isinstance(a, np.ndarray) and a.dtype != np.dtype(object)):
        return np.require(a, dtype, requirements)
    names = {str(name).upper()[:1] for name in requirements or ()}
    if names - set("CFAWOE") or {"C", "F"} <= names:
        raise ValueError(f"np.require: the requirements are C or F, A, W, O and E, got {requirements!r}")
    order = "C" if "C" in names else "F" if "F" in names else None
    if "O" in names:                                           # the array must own its data
        return array(a, dtype, order=order or "K")
    return call_numpy(np.asarray, (a,), {"dtype": dtype, "order": order}, _array_traced, a, dtype, 0, False, order)


def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """np.fromiter; the items may be traced.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: bw.numpy.fromiter((2 * x[k] for k in range(2)), float))(np.ones(3)).tolist()
    [2.0, 2.0]
    """
    items = list(iter) if count < 0 else list(itertools.islice(iter, count))
    if count > len(items):
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(items)} items.")
    return array(items, dtype) if items else zeros(0, dtype)


def _array_traced(x: Any, dtype: Any, ndmin: int, copy: bool, order: Any) -> Tracer:
    if isinstance(x, SEQUENCES) and _holds_tracers(x):
        made = as_tracer(assembled(x))
    elif isinstance(x, np.ndarray) and x.dtype == object:
        made = stack_objects(x)
    elif isinstance(x, Tracer):
        made = x
    else:
        made = as_tracer(np.array(x, dtype))
    if dtype is not None:
        made = astype(made, dtype, copy=copy)
    if copy or made._type.rank == 0:
        made = fresh_array(value_of(made))
    elif isinstance(x, Tracer) and made._storage is x._storage:
        made = contiguous(made, order)
    if made.ndim < ndmin:
        made = indexed(made, [*[None] * (ndmin - made.ndim), *everything_of(made.shape)])
    return made


def arange(*args: Any, dtype: Any = None, device: Any = None, like: Any = None, **bounds: Any) -> Any:
    """np.arange: the number of elements is static.  Of known numbers it makes a plain ndarray also inside a trace (it can index lists).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: x * bw.numpy.arange(3))(2.0).tolist()
    [0.0, 2.0, 4.0]
    """
    args = bounds_of(*args, **bounds)
    if any(isinstance(bound, IndexTracer) for bound in args):
        return of_indices(*args, dtype=dtype)
    size = call(known_size, *args) if any(isinstance(bound, Tracer) for bound in args) else None
    if size is not None:
        return call(of_size, size, *args, dtype=dtype)
    if any(map(is_count, args)):
        return call(counted_arange, *args, dtype=dtype)
    if any(map(is_traced_float, args)):
        return call(of_floats, *((0, *args) if len(args) == 1 else args), dtype=dtype)
    return np.arange(*map(known, args), dtype=dtype)


def grid(maker: Any, index: Any) -> Any:
    """np.mgrid[index] or np.ogrid[index] between traced numbers; None where there are none."""
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(part, slice) and is_traced_float(bound) for part in parts for bound in (part.start, part.stop, part.step)):
        return None
    axes = [_axis(0 if part.start is None else part.start, part.stop, 1 if part.step is None else part.step) for part in parts]
    if not isinstance(index, tuple):
        return axes[0]
    found = [np.reshape(one, tuple([-1 if k == place else 1 for k in range(len(axes))])) for place, one in enumerate(axes)]
    return tuple(found) if maker is np.ogrid else np.stack(np.broadcast_arrays(*found))


def _axis(start: Any, stop: Any, step: Any) -> Any:
    if isinstance(step, complex):
        return np.linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0, *,
             device: Any = None) -> Any:
    """np.linspace; start and stop may be traced, num is static.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.grad(lambda x: np.sum(bw.numpy.linspace(0.0, x, 3)))(2.0).item()
    1.5
    """
    if is_count(num):
        return call(counted_linspace, start, stop, num, endpoint, retstep, dtype, axis)
    made: Any = np.linspace(start, stop, num, endpoint, retstep, dtype, axis)  # type: ignore[call-overload]
    if active_region() is None or isinstance(made, tuple | Tracer):
        return made
    return array(made)


# ----- the ..._like functions
def _like(a: Any, fill_value: Any, dtype: Any, shape: Any) -> Any:
    x = as_tracer(a)
    target = requested(dtype) or x._type.dtype
    return _full_traced(x.shape if shape is None else shape, fill_value, target)


@implements(np.zeros_like)
def zeros_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *, device: Any = None) -> Any:
    return _like(a, 0, dtype, shape)


@implements(np.ones_like)
def ones_like(a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *, device: Any = None) -> Any:
    return _like(a, 1, dtype, shape)


@implements(np.empty_like)
def empty_like(prototype: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *,
               device: Any = None) -> Any:
    return _like(prototype, 0, dtype, shape)


@implements(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *,
              device: Any = None) -> Any:
    return _like(a, fill_value, dtype, shape)


# ----- np.zeros(n, like=x) and other functions with like=
implements(np.zeros)(zeros)
implements(np.ones)(ones)
implements(np.empty)(empty)
implements(np.full)(full)
implements(np.eye)(eye)
implements(np.identity)(identity)
implements(np.array)(array)
implements(np.asarray)(asarray)


@implements(np.arange)
def arange_like(*args: Any, dtype: Any = None, device: Any = None, **bounds: Any) -> Any:
    args = bounds_of(*args, **bounds)
    if any(isinstance(bound, IndexTracer) for bound in args):
        return of_indices(*args, dtype=dtype)
    size = known_size(*args)
    if size is not None:
        return of_size(size, *args, dtype=dtype)
    if any(map(is_count, args)):
        return counted_arange(*args, dtype=dtype)
    if any(isinstance(bound, Tracer) for bound in args):
        raise UnsupportedError("np.arange of a traced bound: the number of elements is not known while tracing\n"
                               "  hint: make the bound static (static_argnums)")
    return fresh_array(value_as(np.arange(*args, dtype=dtype)))


@implements(np.tri)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:
    refuse_options("np.tri", k=(isinstance(k, Tracer), False))
    return fresh_array(value_as(np.tri(N, M, k, dtype)))


HANDLERS["zeros_like"] = zeros_like
