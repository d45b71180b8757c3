"""`x[mask]`, `x[i, :, mask]` with a traced mask: an array with one axis whose number of elements is data.

It is represented by the whole array and the mask; the axes of the mask form one axis of the selection.  `frontend/numpy/selected` computes
with it, by `SELECTED`: elementwise functions use the whole array, reductions ignore what is not selected, and functions that count or move
elements use arrays with the selected ones in front (`packed`).  What needs the number of elements while tracing is refused.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from bwcompiler.errors import BwError, TracerIndexError
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.policy import Recapture
from bwcompiler.frontend.tracing.refusals.demands import ask_for_integers
from bwcompiler.frontend.tracing.registry import HANDLERS, TAKING, qualified_name, require_known
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value
from bwcompiler.operators import UFUNC_NAMES, Operation, UpdatingOperators

Function = TypeVar("Function", bound=Callable[..., Any])

SELECTED: dict[Any, Callable[..., Any]] = {}       # by NumPy's function: what takes selections in its place
GRIDDED: dict[Any, Callable[..., Any]] = {}        # likewise, where one of the arguments is a grid (`grids.py`)
_TAKING_SELECTIONS: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()
_REDUCING = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min, "logical_and": np.all, "logical_or": np.any}
_RUNNING = {"add": np.cumsum, "multiply": np.cumprod}
_ADVICE = ("x[mask] with a traced mask: the number of elements is not known while tracing, and {} needs it\n"
           "  hint: np.where(mask, x, 0), or an array of fixed size and the count; x[mask] can be computed with element by element, "
           "reduced, sorted, indexed and assigned back")


def taking_selections(function: Function) -> Function:
    """A function that takes the place of one of SciPy's; say of it that it takes selections as well."""
    _TAKING_SELECTIONS.add(function)
    return function


def takes_selections(function: Any) -> bool:
    """Whether that was said of a function."""
    return callable(function) and function in _TAKING_SELECTIONS


def _method(function: Any) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: run_selected(function, self, *args, **kwargs)


class SizedByData(UpdatingOperators):
    """An array of which data say how many elements it has: along an axis (`Selection`), or along several (`grids.Grid`).

    array   with room for all of them.   kind   what the functions that do something with it are called by.
    """

    __slots__ = ()

    is_grid = False
    stands_for = np.ndarray
    kind = "selection"
    array: Any
    shape: Any
    viewed: Any
    views: list[weakref.ref[Any]]

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def T(self) -> Any:
        return run_selected(np.transpose, self)

    def __len__(self) -> int:
        return call(refuse, "len() here")  # type: ignore[no-any-return]

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        call(refuse, "an array of it")
        raise AssertionError

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return run_selected(function, *args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return call(HANDLERS[f"item_of_{self.kind}"], self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        call(HANDLERS[f"set_item_of_{self.kind}"], self, index, value)

    def _operate(self, operation: Operation, *operands: Any) -> Any:
        if operation is operator.matmul:
            return run_selected(np.matmul, *operands)
        return call(HANDLERS["of_selections"], UFUNC_NAMES[operation], *operands)

    def _update(self, operation: Operation, other: Any) -> Any:
        if operation is operator.matmul:
            return run_selected(np.matmul, self, other)        # an array of another size
        return call(HANDLERS[f"{self.kind}_in_place"], UFUNC_NAMES[operation], self, other)


def run_selected(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call what takes selections, or grids, in the place of a function of NumPy's; refused where there is none."""
    given = [one for arg in (*args, *kwargs.values()) for one in (arg if isinstance(arg, list | tuple) else (arg,))]
    handler = (GRIDDED if any(isinstance(one, SizedByData) and one.is_grid for one in given) else SELECTED).get(function)
    if handler is None:
        for one in (*args, *kwargs.values()):
            if isinstance(one, Selection):
                call(ask_for_integers, one.mask)
        return call(refuse, f"np.{qualified_name(function)}")
    return call(handler, *args, **kwargs)


class Selection(SizedByData):
    """What x[mask] gives; in whatever region it is asked for.

    array   all elements.   where   the mask.   lead   how many axes of `array` are in front of those of the mask.
    count   how many are selected, where those are the first ones; else None.   places   the axis of the mask whose positions these are
    (`np.nonzero(mask)[places]`); else None.   viewed   the selection that it is a view of; else None.   views   those of it.  Views are
    copies, so that neither is changed in place while there are both.
    of_rows   whether it is np.array of a list of rows, which has one axis alone where there are none.
    """

    __slots__ = ("__weakref__", "array", "count", "lead", "of_rows", "places", "viewed", "views", "where")

    __array_priority__ = 2000.0

    def __init__(self, array: Any, where: Any, lead: int = 0, count: Any = None, places: int | None = None) -> None:
        self.array: Any = array
        self.where: Any = where
        self.lead = lead
        self.count = count
        self.places = places
        self.viewed: Selection | None = None
        self.views = []
        self.of_rows = False

    @property
    def whole(self) -> Value:
        """All elements."""
        return call(value_of, self.array)  # type: ignore[no-any-return]

    @property
    def mask(self) -> Value:
        """Where elements are selected."""
        return call(value_of, self.where)  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return int(self.array.ndim - self.where.ndim + 1)

    @property
    def shape(self) -> tuple[Any, ...]:
        extents = self.array.shape
        return (*extents[:self.lead], call(HANDLERS["number_selected"], self), *extents[self.lead + self.where.ndim:])

    @property
    def size(self) -> Any:
        return call(HANDLERS["size_of_selection"], self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        if getattr(np, name, None) is not ufunc:
            call(require_known, ufunc)
        if method == "__call__" and name == "matmul" and not kwargs:
            return run_selected(np.matmul, *inputs)
        if method == "__call__" and not kwargs:
            return call(HANDLERS["of_selections"], name, *inputs)
        if method == "reduce" and name in _REDUCING:
            kwargs.setdefault("axis", 0)
            return run_selected(_REDUCING[name], *inputs, **kwargs)
        if method == "accumulate" and name in _RUNNING:
            kwargs.setdefault("axis", 0)
            return run_selected(_RUNNING[name], *inputs, **kwargs)
        if method == "at" and not kwargs:
            return call(HANDLERS["selected_at"], ufunc, *inputs)
        return call(refuse, f"np.{name}{'' if method == '__call__' else '.' + method}{' with ' + ', '.join(kwargs) if kwargs else ''}")

    def __iter__(self) -> Any:
        return call(HANDLERS["rows_of_selection"], self) if self.lead else call(refuse, "a loop that has to be unrolled")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        return call(refuse, f".{name}")

    sum, prod, mean, var, std = (_method(function) for function in (np.sum, np.prod, np.mean, np.var, np.std))
    any, all, max, min = (_method(function) for function in (np.any, np.all, np.max, np.min))
    argmax, argmin, cumsum, cumprod = (_method(function) for function in (np.argmax, np.argmin, np.cumsum, np.cumprod))
    argsort, dot, clip, round = (_method(function) for function in (np.argsort, np.dot, np.clip, np.round))
    copy, ravel, nonzero, transpose = (_method(function) for function in (np.copy, np.ravel, np.nonzero, np.transpose))

    def conjugate(self) -> Any:
        return call(HANDLERS["of_selections"], "conjugate", self)

    conj = conjugate

    def flatten(self, order: str = "C") -> Any:
        """A copy with one axis."""
        return run_selected(np.ravel, self.copy(), order)

    @property
    def real(self) -> Any:
        return run_selected(np.real, self)

    @property
    def imag(self) -> Any:
        return run_selected(np.imag, self)

    def astype(self, dtype: Any, **options: Any) -> Any:
        """A copy with elements of that dtype."""
        return call(lambda: Selection(self.array.astype(dtype, **options), self.where, self.lead, self.count))

    def reshape(self, *shape: Any) -> Any:
        """With one axis more of extent 1, or of one axis."""
        return run_selected(np.reshape, self, shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape)

    def tolist(self) -> Any:
        """A list of Python's numbers."""
        return HANDLERS["call_of"](list)(self) if self.ndim == 1 else call(refuse, ".tolist of rows")

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        """Puts the numbers in order."""
        call(HANDLERS["sort_selection"], self, axis, kind)


TAKING.append(Selection)


def holds_selection(*args: Any) -> bool:
    """Whether selections, or others that compute by themselves, are among arguments, or in sequences among these."""
    return any(type(arg) in TAKING or (isinstance(arg, list | tuple) and any(type(one) in TAKING for one in arg)) for arg in args)


def refuse(what: str = "this") -> NoReturn:
    """The shape of a selection is needed for something."""
    give_up(TracerIndexError(_ADVICE.format(what)))


def give_up(refusal: BwError) -> NoReturn:
    """Trace the function again with `data_windows` for slices that can be some; raises the refusal where that was done, or none can."""
    policy = open_region().policy
    if policy is not None and policy.may_be_cut and not policy.windows:
        policy.windows = True
        raise Recapture(("windows", 0, 0), refusal)
    raise refusal


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


def selection(x: Any, mask: Any, lead: int = 0) -> Selection:
    """x[..., mask], behind `lead` slices."""
    if not mask.ndim:                              # of a new axis of extent 1, or none
        x, mask = x[(slice(None),) * lead + (None,)], mask[None]
    if mask.shape != x.shape[lead:lead + mask.ndim]:
        raise IndexError(f"boolean index did not match indexed array: shapes {mask.shape} and {x.shape[lead:]}")
    return Selection(fresh(value_of(x)), fresh(value_of(mask)), lead)


def spread(x: Selection) -> Any:
    """Where elements are selected, in the shape of all of them."""
    behind = x.array.ndim - x.lead - x.where.ndim
    mask = x.where.reshape((1,) * x.lead + x.where.shape + (1,) * behind)
    return np.broadcast_to(mask, x.array.shape)
