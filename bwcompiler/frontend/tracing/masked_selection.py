"""`x[mask]` with a traced mask: a selection whose number of elements is not known while tracing.

It can be computed with element by element, reduced over the selected ones and assigned back (`x[mask] *= 2`, `y[mask] = np.log(x[mask])`);
it is carried as the whole array and the mask.  Whatever needs its shape is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from bwcompiler.errors import TracerIndexError, UnsupportedError
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import cast, reshape
from bwcompiler.frontend.tracing.promotion import require_cast
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.source import current_source
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.op import Value

_ADVICE = ("x[mask] with a traced mask: the number of elements is not known while tracing\n"
           "  hint: np.where(mask, x, 0), or np.sum(x, where=mask) for reductions; x[mask] can be computed with element by element, "
           "summed as a whole, asked for one row (x[mask][-1]) and assigned back to y[mask]")
REDUCTIONS = ("sum", "prod", "mean", "var", "std", "any", "all")


def _operator(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Selection, other: Any) -> Any:
        return call(compute, name, other, self) if reflected else call(compute, name, self, other)
    return method


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: call(compute_in_place, name, self, other)


def _unary(name: str) -> Callable[[Any], Any]:
    return lambda self: call(compute, name, self)


def _reduction(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: call(reduced, name, self, *args, **kwargs)


class Selection:
    """What `x[mask]` gives: `whole` has the shape of x, `mask` that of its leading axes; in whatever region they are asked for."""

    __slots__ = ("_mask", "_whole")

    def __init__(self, whole: Value, mask: Value) -> None:
        self._whole, self._mask = call(lambda: (fresh(whole), fresh(mask)))

    @property
    def whole(self) -> Value:
        """x."""
        return call(value_of, self._whole)  # type: ignore[no-any-return]

    @property
    def mask(self) -> Value:
        """Where elements of it are selected."""
        return call(value_of, self._mask)  # type: ignore[no-any-return]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            call(refuse)
        if ufunc.__name__ == "matmul":
            return call(product, *inputs)
        return call(compute, ufunc.__name__, *inputs)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if function.__name__ in ("dot", "inner") and not kwargs and len(args) == 2:
            return call(product, *args)
        if function in _PLACES and not kwargs and len(args) == 1:
            return getattr(args[0], _PLACES[function])()
        if function.__name__ not in REDUCTIONS or not isinstance(args[0], Selection):
            call(refuse)
        return call(reduced, function.__name__, *args, **kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        call(refuse)
        raise AssertionError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return call(refuse)

    __add__, __radd__, __iadd__ = _operator("add"), _operator("add", True), _in_place("add")
    __sub__, __rsub__, __isub__ = _operator("subtract"), _operator("subtract", True), _in_place("subtract")
    __mul__, __rmul__, __imul__ = _operator("multiply"), _operator("multiply", True), _in_place("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", True)
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _operator("floor_divide", True)
    __itruediv__, __ifloordiv__, __imod__, __ipow__ = (_in_place(name) for name in ("divide", "floor_divide", "remainder", "power"))
    __mod__, __rmod__ = _operator("remainder"), _operator("remainder", True)
    __pow__, __rpow__ = _operator("power"), _operator("power", True)
    __and__, __or__, __xor__ = _operator("bitwise_and"), _operator("bitwise_or"), _operator("bitwise_xor")
    __lt__, __le__, __gt__, __ge__ = (_operator(name) for name in ("less", "less_equal", "greater", "greater_equal"))
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")
    __neg__, __pos__, __abs__, __invert__ = (_unary(name) for name in ("negative", "positive", "absolute", "invert"))
    __hash__ = None  # type: ignore[assignment]
    sum, prod, mean, var, std, any, all = (_reduction(name) for name in REDUCTIONS)

    def max(self) -> Any:
        """The largest of the selected numbers; raises ValueError where there are none, when the program runs."""
        return extreme(self, "max")

    def min(self) -> Any:
        """The smallest of them."""
        return extreme(self, "min")

    def copy(self) -> Selection:
        """What is selected now."""
        return Selection(self.whole, self.mask)

    @property
    def size(self) -> Any:
        return call(lambda: HANDLERS["sum"](fresh(whole_mask(self.mask, self.whole))))

    def __len__(self) -> int:
        return call(refuse)  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        return call(refuse)

    def __getitem__(self, index: Any) -> Any:
        """A row, counted from the first or the last that is selected, `[-1]`; columns, `[:, 0]`.  IndexError when the program runs."""
        return item(self, index)

    def __matmul__(self, other: Any) -> Any:
        return call(product, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return call(product, other, self)


def refuse(*_: Any) -> NoReturn:
    """The shape of a selection is needed."""
    raise TracerIndexError(_ADVICE)


def compute(name: str, *inputs: Any) -> Selection:
    """A ufunc of selections by one mask and of what broadcasts against one of their rows."""
    first = next(x for x in inputs if isinstance(x, Selection))
    rows = first.whole.rank - first.mask.rank
    arguments = []
    for x in inputs:
        if isinstance(x, Selection):
            if not same_value(x.mask, first.mask) or x.whole.shape[:x.mask.rank] != first.whole.shape[:first.mask.rank]:
                raise UnsupportedError("selections by different traced masks cannot be combined\n  hint: np.where")
            arguments.append(fresh(x.whole))
        elif getattr(x, "ndim", 0) > rows or isinstance(x, list | tuple):
            refuse()
        else:
            arguments.append(x)
    result = HANDLERS["evaluate"](name, tuple(arguments))
    if isinstance(result, tuple):
        raise UnsupportedError(f"np.{name} of x[mask] with a traced mask is not supported\n  hint: np.where")
    return Selection(result, first.mask)


_PLACES = {np.max: "max", np.min: "min", np.argmax: "argmax", np.argmin: "argmin", np.copy: "copy"}


def extreme(x: Selection, name: str) -> Any:
    """The largest or smallest of the selected numbers."""
    def fail() -> NoReturn:
        raise ValueError(f"{name} of no elements: none is selected")

    def parts() -> tuple[Tracer, Tracer]:
        return fresh(x.whole), fresh(x.mask)
    if x.whole.rank != x.mask.rank or x.whole.dtype.kind not in "fiu":
        call(refuse)
    HANDLERS["check"](np.logical_not(np.any(call(parts)[1])), fail, ValueError(), current_source(open_region().outer))
    dtype, largest = x.whole.dtype.numpy, name.endswith("max")
    nothing = (-np.inf if largest else np.inf) if x.whole.dtype.kind == "f" else (
        np.iinfo(dtype).min if largest else np.iinfo(dtype).max)
    whole, mask = call(parts)
    return getattr(np, name)(np.where(mask, whole, dtype.type(nothing)))


def place_of_extreme(x: Selection, name: str) -> Any:
    """The place of the largest or smallest of the selected numbers in the whole array; of the first nan, if there is one."""
    best = extreme(x, name)
    whole, mask = call(lambda: (fresh(x.whole), fresh(x.mask)))
    hit = whole == best
    return np.argmax(np.logical_and(mask, np.logical_or(hit, np.isnan(whole)) if x.whole.dtype.kind == "f" else hit))


def item(x: Selection, index: Any) -> Any:
    """x[mask][index], for the number of a row, and for all rows with what is taken of each."""
    first, *rest = index if isinstance(index, tuple) else (index,)
    if x.mask.rank != 1 or not x.mask.shape[0] or any(not isinstance(one, int | np.integer | slice) for one in rest):
        call(refuse)
    whole, mask = call(lambda: (fresh(x.whole), fresh(x.mask)))
    if isinstance(first, slice) and first == slice(None) and rest:
        return Selection(call(value_of, whole[(first, *rest)]), x.mask)
    if not isinstance(first, int | np.integer) or isinstance(first, bool):
        call(refuse)
    number = np.cumsum(mask)                       # of each that is selected, from 1
    wanted = first + 1 if first >= 0 else number[-1] + (first + 1)

    def fail() -> NoReturn:
        raise IndexError(f"index {first} is out of bounds: fewer elements are selected")
    missing = number[-1] < wanted if first >= 0 else wanted < 1
    HANDLERS["check"](missing, fail, IndexError(), current_source(open_region().outer))
    return whole[(np.argmax(np.logical_and(mask, number == wanted)), *rest)]


def product(x: Any, y: Any) -> Any:
    """x @ y of numbers that one mask selects."""
    if not isinstance(x, Selection) or not isinstance(y, Selection) or x.whole.rank != 1 or y.whole.rank != 1:
        refuse()
    return reduced("sum", compute("multiply", x, y))


def compute_in_place(name: str, x: Selection, other: Any) -> Selection:
    """`x[mask] += other`, half of which this is: as NumPy, the result has to be of the kind of x."""
    found = compute(name, x, other)
    require_cast(found.whole.dtype, x.whole.dtype, "same_kind", f"np.{name}: in place")
    return Selection(cast(found.whole, x.whole.dtype), found.mask)


def reduced(name: str, x: Selection, *args: Any, **kwargs: Any) -> Any:
    """A reduction over all selected elements, or along axes of which the first is that of the selected rows."""
    axis = kwargs.pop("axis", args[0] if args else None)
    if kwargs or len(args) > 1 or not _is_whole(axis, x):
        raise UnsupportedError(f"x[mask].{name} with a traced mask takes no arguments but an axis that takes in the selected ones\n"
                               f"  hint: np.{name}(x, ..., where=mask)")
    if axis is not None:
        later = [one + (x.whole.rank - x.mask.rank + 1 if one < 0 else 0) for one in (axis if isinstance(axis, tuple) else (axis,))]
        axis = (*range(x.mask.rank), *[one + x.mask.rank - 1 for one in later if one])
    return HANDLERS[name](fresh(x.whole), axis=axis, where=fresh(whole_mask(x.mask, x.whole)))


def _is_whole(axis: Any, x: Selection) -> bool:
    """Whether axes of x[mask], which has one for all axes of the mask, are all or have that one among them."""
    rank = x.whole.rank - x.mask.rank + 1
    axes = axis if isinstance(axis, tuple) else (axis,)
    return axis is None or (all(isinstance(one, int) and -rank <= one < rank for one in axes) and any(one % rank == 0 for one in axes))


def whole_mask(mask: Value, whole: Value) -> Value:
    """The mask spread over the trailing axes."""
    return broadcast_value(reshape(mask, mask.shape + (1,) * (whole.rank - mask.rank)), whole.shape)


def same_value(a: Value, b: Value, depth: int = 24, alike: dict[tuple[int, int], bool] | None = None) -> bool:
    """Whether two values are computed alike (`x > 0` written twice); alike: pairs that were compared before."""
    if a is b:
        return True
    alike = {} if alike is None else alike
    if (id(a), id(b)) not in alike:
        alike[id(a), id(b)] = (
            depth > 0 and a.op is b.op and bool(a.operands or a.attrs) and a.type == b.type and dict(a.attrs) == dict(b.attrs)
            and len(a.operands) == len(b.operands)
            and all(same_value(x, y, depth - 1, alike) for x, y in zip(a.operands, b.operands, strict=True)))
    return alike[id(a), id(b)]


def select(x: Tracer, mask: Value, value: Value) -> Selection:
    """x[mask]."""
    if mask.shape != x.shape[:mask.rank]:
        raise IndexError(f"boolean index did not match indexed array: shapes {mask.shape} and {x.shape}")
    return Selection(value, mask)
