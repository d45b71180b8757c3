"""SciPy functions in captured code: replaced by those of `bwcompiler.scipy` of the same names if arguments are or contain traced values."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from bwcompiler import lazy
from bwcompiler.errors import UnsupportedError, at
from bwcompiler.frontend.source.library.masked_functions import masked_twin
from bwcompiler.frontend.source.library.vectorized import holds_traced
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, takes_selections
from bwcompiler.frontend.tracing.operands import is_traced
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import open_region

PLACES = {"sparse": ("sparse", "sparse.linalg"),                                        # where functions are, if not in the module itself
          "spatial": ("spatial", "spatial.distance", "spatial.transform")}
SOLVERS = ("integrate", "optimize")                          # their functions call functions that they are given


def factors_twin(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of the method `solve` of known LU factors (`splu(A)`, `factorized(A)`): a type in machine code."""
    owner = getattr(function, "__self__", None)
    if type(owner).__name__ != "SuperLU" or type(owner).__module__ != "builtins" or function.__name__ != "solve":
        return None

    def solve(*args: Any, **kwargs: Any) -> Any:
        if not any(map(is_traced, (*args, *kwargs.values()))):
            return function(*args, **kwargs)
        return lazy.stand_in("scipy").sparse.linalg.KnownFactors(owner).solve(*args, **kwargs)
    return solve


def library_twin(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a function of SciPy's, or of NumPy's masked arrays."""
    module = str(getattr(function, "__module__", ""))
    return scipy_twin(function) if module.startswith("scipy.") else masked_twin(function) if f"{module}.".startswith("numpy.ma.") else None


def scipy_twin(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a public function or class of SciPy's, of one of its objects, or of a method of one."""
    package, *space = str(getattr(function, "__module__", "")).split(".")[:2]
    if package != "scipy" or not space:
        return None
    scipy = lazy.stand_in("scipy")
    if space[0] not in scipy.__all__:
        return None
    name, owner = getattr(function, "__name__", None), getattr(function, "__self__", None)
    find: Callable[[], Any] | None = None
    for place in PLACES.get(space[0], (space[0],)):
        public, mine = sys.modules.get(f"scipy.{place}"), functools.reduce(getattr, place.split("."), scipy)
        find = find or _finder(public, mine, function, name, owner)
    if find is None:
        return _without_twin(function, space[0], name) if space[0] in SOLVERS else None

    def chosen(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if any(isinstance(arg, Selection) for arg in given) and takes_selections(find()):
            return find()(*args, **kwargs)
        ours = any(is_traced(arg) or type(arg).__module__.startswith("bwcompiler.scipy.") for arg in given) or _computes_with_traced(given)
        return (find() if ours else function)(*args, **kwargs)
    return chosen


def _computes_with_traced(given: tuple[Any, ...]) -> bool:
    """Whether a function among the arguments computes with traced values."""
    return any(callable(arg) and holds_traced(arg) for arg in given)


def _without_twin(function: Any, space: str, name: str | None) -> Callable[..., Any] | None:
    """What is called in the place of a solver that has no counterpart: it must not call functions of traced values, from C with numbers."""
    if name is None or getattr(sys.modules.get(f"scipy.{space}"), name, None) != function:
        return None

    def called(*args: Any, **kwargs: Any) -> Any:
        if not _computes_with_traced((*args, *kwargs.values())):
            return function(*args, **kwargs)
        try:
            return getattr(getattr(lazy.stand_in("scipy"), space), name)       # which says what to write instead
        except AttributeError as error:
            raise UnsupportedError(at(current_source(open_region().outer), f"scipy.{space}.{name} is given a function that computes with "
                                      f"traced values: {error}")) from None
    return called


def _finder(public: Any, mine: Any, function: Any, name: str | None, owner: Any) -> Callable[[], Any] | None:
    """How to get what of the module `mine` stands for a function of the public one, or for an object or a method."""
    if name is None:
        return _of_object(mine, function, None)
    if owner is None or isinstance(owner, type):
        cls, _, _ = str(getattr(function, "__qualname__", name)).rpartition(".")           # of what makes an object of a class
        space, ours = (getattr(public, cls, None), getattr(mine, cls, None)) if cls else (public, mine)
        twin = getattr(ours, name, None) if getattr(space, name, None) == function else None
        return None if twin is None else lambda: twin
    return _of_distribution(public, mine, owner, name) or _of_object(mine, owner, name)


def _of_distribution(public: Any, mine: Any, owner: Any, name: str) -> Callable[[], Any] | None:
    """How to get the method of the distribution of ours."""
    distribution = str(getattr(owner, "name", ""))
    twin = getattr(getattr(mine, distribution, None), name, None) if getattr(public, distribution, None) is owner else None
    return None if twin is None else lambda: twin


def _of_object(mine: Any, owner: Any, method: str | None) -> Callable[[], Any] | None:
    """How to get the object of ours, or its method, for one of SciPy's that the module `mine` knows how to convert."""
    convert = getattr(mine, "converted", None)
    made = None if convert is None or isinstance(owner, type) else convert(owner)
    if made is None or (method is not None and not hasattr(made, method)):
        return None
    return lambda: made if method is None else getattr(made, method)


def sparse_product(left: Any, right: Any) -> Any:
    """left @ right, where a sparse array of SciPy's may meet a traced one."""
    for one, other in ((left, right), (right, left)):
        if str(type(one).__module__).startswith("scipy.sparse") and is_traced(other):
            return lazy.stand_in("scipy").sparse.product(left, right)
    return left @ right


def sparse_times(left: Any, right: Any) -> Any:
    """left * right, where one is a sparse array of SciPy's and the other traced; else None."""
    for one, other in ((left, right), (right, left)):
        if str(type(one).__module__).startswith("scipy.sparse") and is_traced(other):
            return lazy.stand_in("scipy").sparse.elements_product(left, right)
    return None
