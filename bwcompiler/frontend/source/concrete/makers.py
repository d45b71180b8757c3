"""Arrays that a traced function creates: concrete NumPy arrays, until a traced value is to be written into one.

Then the function is traced again, and the call that created that array returns a traced array from the beginning.  So
masks, tables and indices that are known stay known, and `y = np.zeros(n); y[i] = x` works as written.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.numpy.manipulation import creation
from bwcompiler.frontend.source.concrete.foreseen import foreseen
from bwcompiler.frontend.source.variables import not_capturable, open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.masked_selection import SELECTED, Selection, holds_selection
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced
from bwcompiler.frontend.tracing.policy import Recapture, Site
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.contents import owner_of
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.storages.views import ConcreteView
from bwcompiler.frontend.tracing.tracer import Tracer

# NumPy's functions whose result is a new array.
MAKERS = {getattr(np, name): getattr(creation, name, None) for name in (
    "array", "empty", "eye", "full", "identity", "linspace", "ones", "zeros", "arange", "zeros_like", "ones_like", "empty_like",
    "full_like", "copy", "tile", "repeat", "concatenate", "stack", "diag", "tri", "tril", "triu", "outer", "logspace", "geomspace",
    "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require", "ndarray")}
_SHARING = frozenset((np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require,     # but for given arrays
                      np.ndarray))                                                                          # and memory

_ARRAYS_OF = frozenset((np.array, np.asarray, np.asanyarray, np.ascontiguousarray))
_FILLED = frozenset((np.empty, np.zeros, np.ones, np.full, np.eye, np.identity, np.ndarray))             # known without looking at them
_LIKE = frozenset((np.zeros_like, np.ones_like, np.empty_like, np.full_like))          # whose twins state how the result lies in memory


def maker(function: Any, twin: Callable[..., Any] | None) -> Callable[..., Any]:
    """The function, whose results are noted; `twin` takes traced arguments."""
    ours = (None if function in _LIKE else MAKERS.get(function)) or twin or function

    def make(*args: Any, **kwargs: Any) -> Any:
        if "like" in kwargs:                               # NumPy asks that array's own functions
            return function(*args, **kwargs)
        if function in (np.array, np.asarray, np.asanyarray) and args and (isinstance(args[0], Selection) or _are_selections(args[0])):
            return _of_selection(function, *args, **kwargs)
        if function in _ARRAYS_OF and args and getattr(type(args[0]), "is_masked", False):
            return HANDLERS["array_of_masked"](function, *args, **kwargs)
        if holds_selection(*args):
            return function(*args, **kwargs)
        if any(is_traced(arg) for arg in (*args, *kwargs.values())):
            return ours(*args, **kwargs)
        found = function(*args, **kwargs)
        if any(found is arg for arg in args) or (function in _SHARING and found.base is not None):      # not made here
            return found
        return ours(*args, **kwargs) if function in _FILLED and _is_to_be_traced(_site()) else noted(found)

    make.__name__ = function.__name__
    return make


def _are_selections(x: Any) -> bool:
    return type(x) in (list, tuple) and len(x) > 0 and all(isinstance(one, Selection) for one in x)


def _of_selection(function: Any, x: Any, dtype: Any = None, **options: Any) -> Any:
    """np.array(x[mask]), or another one that makes an array of it, or of several in a list."""
    if options:
        return function(x, dtype, **options)           # which says that it is not supported
    if not isinstance(x, Selection):
        found = SELECTED[np.stack](x)
        return found if dtype is None or np.dtype(dtype) == found.dtype else found.astype(dtype)
    found = x if dtype is None or np.dtype(dtype) == x.dtype else x.astype(dtype)
    return SELECTED[np.copy](found) if function is np.array and found is x else found


def _site() -> Site:
    """The user's place that is running."""
    region = active_region()
    source = None if region is None else current_source(region.outer)
    return (source.file, source.line, source.column) if source is not None else ("", 0, 0)


def _is_to_be_traced(site: Site) -> bool:
    policy = open_policy()
    return policy is not None and site in policy.unrolled


def noted(array: Any) -> Any:
    """A concrete array that nobody else has; a traced one in its place where it has to be."""
    policy, region = open_policy(), active_region()
    if policy is None or region is None or type(array) is not np.ndarray or not array.flags.writeable:
        return array
    site = _site()
    if _is_to_be_traced(site):
        return creation.array(array)
    policy.made[id(array)] = (array, site)
    if type(array.base) is np.ndarray:                     # np.linspace gives a view of what it has made, and views of it are such of that
        policy.made[id(array.base)] = (array.base, site)
    return array


def computed(array: Any) -> Any:
    """The value of an expression (`2 * x`, `f(x)`): noted, if it is a concrete array that the expression has made.

    So it is one that nobody else has: no variable, container or view refers to it.
    """
    if type(array) is not np.ndarray:
        return array
    base = array.base
    if base is None:
        alone = sys.getrefcount(array) <= _ALONE
    else:
        alone = (type(base) is np.ndarray and base.base is None and array.size == base.size and array.flags.forc
                 and sys.getrefcount(array) <= _ALONE and sys.getrefcount(base) <= _ALONE_AS_BASE)
    return noted(array) if alone else array


def _references(array: Any) -> tuple[int, int]:
    """How many references an array and what it is a view of have in a function that it is given to."""
    base = array.base
    return sys.getrefcount(array), sys.getrefcount(base)


_ALONE, _ALONE_AS_BASE = _references(np.zeros(4).reshape(2, 2))


def maker_of(array: Any) -> Site | None:
    """Where a concrete array, or the array that it is a view of, was made in this trace."""
    policy = open_policy()
    while policy is not None and type(array) is np.ndarray:
        found = policy.made.get(id(array))
        if found is not None and found[0] is array:
            return found[1]
        array = array.base
    return None


def require_traced(array: Any, *written: Any) -> None:
    """Where a concrete array is to take traced values, trace the function again with a traced one."""
    parts = [part for x in written for part in (x if type(x) is tuple else (x,))]                 # of an index, for `np.add.at`
    if not any(is_traced(part) or isinstance(part, Selection) for part in parts):
        return
    site = maker_of(array)
    if site is not None:
        raise Recapture(site, TracerError(at(current_source(), "a traced value is assigned to a concrete array")), foreseen=foreseen())


def shown(array: Any) -> Tracer:
    """The handle of a concrete array that is indexed with a traced value: what is taken from it may be a view, as NumPy's are.

    Neither may be written to then: the array has to be a traced one, which its views see changing.
    """
    note_shown(array)

    def written() -> NoReturn:
        site = maker_of(array)
        error = TracerError(at(current_source(), f"a part of a concrete array of shape {array.shape} is assigned to, at a place that is "
                               "traced\n  hint: pass the array as an argument, or make it in the function, with np.zeros(n) or A.copy()"))
        raise error if site is None else Recapture(site, error)

    found: Tracer = call(as_tracer, array)
    found._chain = (ConcreteView(array, written),)
    return found


def note_shown(array: Any) -> None:
    """Traced code has a part of a concrete array, or a copy that stands for it: where that changes, the array has to be a traced one."""
    policy = open_policy()
    if policy is not None:
        owner = owner_of(array)                        # which changes, and the other views of it with it
        policy.shown[id(owner)] = owner


def is_live(array: Any) -> bool:
    """Whether it is an array from outside whose contents were seen to change between calls: the program reads them at every call."""
    policy = open_policy()
    if policy is None or not policy.live or type(array) is not np.ndarray or array.dtype.kind not in "biufc":
        return False
    return maker_of(array) is None and any(np.may_share_memory(array, memory) for memory in policy.live)


def require_unseen(array: Any) -> None:
    """Before a concrete array changes: if there are traced views of it, trace the function again with a traced array."""
    policy, base = open_policy(), array
    if is_live(array):
        raise TracerError(at(current_source(), "an array outside is assigned to, which also changes between calls"))
    while policy is not None and policy.shown and type(base) is np.ndarray:
        site = maker_of(base)
        if policy.shown.get(id(base)) is base and site is not None:
            raise Recapture(site, TracerError(at(current_source(), "a concrete array changes, of which a traced part was taken")))
        base = base.base


def _parts(index: Any) -> list[Any]:
    """What stands in brackets, slices taken apart."""
    entries = index if isinstance(index, tuple) else (index,)
    return [part for entry in entries for part in ((entry.start, entry.stop, entry.step) if isinstance(entry, slice) else (entry,))]


class Target:
    """A concrete array made in this trace, of which elements are assigned to."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Any:
        require_traced(self.array, *_parts(index))
        found = self.array[index]
        return Part(found, self.array) if isinstance(found, np.ndarray) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        require_traced(self.array, value, *_parts(index))
        HANDLERS["read_contents"](value, *_parts(index))
        self.array[index] = value


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    operation = getattr(operator, name)

    def method(self: Part, other: Any) -> Any:
        policy = open_policy()
        if policy is not None and policy.depth:
            changed_in_loop(self.whole)
        require_unseen(self.whole)
        require_traced(self.whole, other)
        HANDLERS["read_contents"](other)
        return operation(self.array, other)
    return method


class Part:
    """Part of such an array, a view or a copy, on the left of an augmented assignment; or all of one that an object holds."""

    __slots__ = ("array", "whole")

    def __init__(self, array: Any, whole: Any) -> None:
        self.array = array
        self.whole = whole

    __iadd__, __isub__, __imul__, __itruediv__ = (_in_place(name) for name in ("iadd", "isub", "imul", "itruediv"))
    __ifloordiv__, __imod__, __ipow__, __imatmul__ = (_in_place(name) for name in ("ifloordiv", "imod", "ipow", "imatmul"))
    __iand__, __ior__, __ixor__ = (_in_place(name) for name in ("iand", "ior", "ixor"))
    __ilshift__, __irshift__ = (_in_place(name) for name in ("ilshift", "irshift"))


def changed_in_loop(array: Any) -> None:
    """A concrete array changes in the body of a captured loop: it has to be a traced one, or the loop unrolled.

    So have all others that the body changes, which are found now: each by itself would make the function be traced once more.
    """
    site = maker_of(array)
    if site is not None:
        raise Recapture(site, TracerError(at(current_source(), "a concrete array changes in a loop")), _made_and_changed(), foreseen())
    not_capturable("it changes a concrete array")


def _made_and_changed() -> list[Site]:
    """Where the concrete arrays were made that the bodies which are being traced assign to elements of."""
    policy, sites = open_policy(), []
    for cell in [] if policy is None else [cell for scope in policy.scopes for cell in scope.changed]:
        with contextlib.suppress(ValueError):          # it has no value yet
            sites.append(maker_of(cell.cell_contents))
    return [site for site in sites if site is not None]
