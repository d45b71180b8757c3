"""NumPy's functions on sequences of traced arrays (`mean([x, y])`, `r_[x, 0:3]`), which NumPy itself does not dispatch.

`bwcompiler.numpy` has them; they call NumPy's own functions unless an argument is traced, or is a sequence of traced arrays:
NumPy dispatches only on some arguments (not on the indices of `take(A, y)`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.manipulation.creation import arange
from bwcompiler.frontend.numpy.manipulation.joining import concatenate
from bwcompiler.frontend.tracing.calls import call, call_function, call_numpy
from bwcompiler.frontend.tracing.indexing.masked_selection import holds_selection
from bwcompiler.frontend.tracing.operands import SEQUENCES, as_tracer, is_traced, operand, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.registry import FUNCTIONS
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.tracer import Tracer, fresh

# Creation functions make traced arrays inside a trace, whatever their arguments: they can be assigned to.
_MAKERS = (np.zeros_like, np.ones_like, np.empty_like, np.full_like)


def on_sequences(function: Any) -> Callable[..., Any] | None:
    """The function of `bwcompiler.numpy` for one of NumPy's; None if NumPy's own works."""
    if function not in FUNCTIONS:
        return None

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if active_region() is not None and (function in _MAKERS or any(is_traced(arg) for arg in (*args, *kwargs.values()))) and (
                not holds_selection(*args, *kwargs.values())):
            return call_function(function, *args, **kwargs)
        if function is np.piecewise and active_region() is not None:
            return _piecewise(*args, **kwargs)
        return function(*args, **kwargs)

    wrapper.__name__ = wrapper.__qualname__ = function.__name__
    wrapper.__doc__ = f"As np.{function.__name__}."
    return wrapper


class _TracedPieceError(Exception):
    """A function returns traced values at known places."""


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kwargs: Any) -> Any:
    """np.piecewise with known conditions and functions that may return traced values."""
    def known(function: Any) -> Any:
        def piece(*given: Any, **options: Any) -> Any:
            found = function(*given, **options)
            if is_traced(found):
                raise _TracedPieceError
            return found
        return piece if callable(function) else function

    try:
        return np.piecewise(x, condlist, [known(function) for function in funclist], *args, **kwargs)
    except _TracedPieceError:
        return call_function(np.piecewise, x, condlist, funclist, *args, **kwargs)


def on_operands(function: Any) -> Callable[..., Any]:
    """A ufunc, or one of its methods (`np.maximum.reduce`), that takes sequences of traced values as arrays; so do SciPy's.

    np.conj(x) of an object that leaves NumPy's operators to its class, a sparse matrix, is x.conjugate(), as NumPy has it for objects.
    """
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and getattr(type(args[0]), "__array_ufunc__", args) is None:
            method = getattr(type(args[0]), function.__name__, None)
            if method is not None:
                return method(args[0])
        if any(isinstance(arg, SEQUENCES) and is_traced(arg) for arg in args):
            args = tuple([call(as_tracer, arg) if isinstance(arg, SEQUENCES) and is_traced(arg) else arg for arg in args])
        return function(*args, **kwargs)

    wrapper.__name__ = wrapper.__qualname__ = function.__name__
    return wrapper


class Concatenator:
    """np.r_ and np.c_: the items joined along the first axis (r_), or as columns (c_).

    Raises UnsupportedError for a leading string (`r_["0,2", x]`) with traced arrays.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jit(lambda x: bw.numpy.r_[x, 0.0])(np.ones(2)).tolist()
    [1.0, 1.0, 0.0]
    >>> bw.jit(lambda x: bw.numpy.c_[x, 2 * x])(np.ones(2)).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """

    def __init__(self, numpy: Any, columns: bool) -> None:
        self._numpy = numpy
        self._columns = columns

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(map(_is_traced_part, parts)):
            return self._numpy[key]
        return call_numpy(self._numpy.__getitem__, (parts,), {}, self._joined, parts)

    def _joined(self, parts: tuple[Any, ...]) -> Any:
        if any(isinstance(part, str) for part in parts):
            raise UnsupportedError("np.r_['...'] with traced arrays is not supported\n  hint: np.concatenate, np.stack")
        given = [_steps(part) if isinstance(part, slice) else as_tracer(part) if isinstance(part, list) else part for part in parts]
        dtype = common_dtype(tuple([operand(part)[1] for part in given]))             # Python's numbers are weak
        arrays = [fresh(value_as(part, dtype)) for part in given]
        if self._columns:
            return concatenate([np.atleast_1d(x)[:, None] if x.ndim < 2 else x for x in arrays], -1)
        return concatenate([np.atleast_1d(x) for x in arrays], 0)


def _is_traced_part(part: Any) -> bool:
    if isinstance(part, slice):
        return any(isinstance(bound, Tracer) for bound in (part.start, part.stop, part.step))
    return isinstance(part, Tracer) or (isinstance(part, list) and is_traced(part))


def _steps(part: slice) -> Any:
    """start:stop:step, with bounds that may be loop indices."""
    if not _is_traced_part(part):
        return np.r_[part]
    return arange(0 if part.start is None else part.start, part.stop, 1 if part.step is None else part.step)


r_, c_ = Concatenator(np.r_, False), Concatenator(np.c_, True)
