"""`x[np.ix_(rows, columns)]`, `np.zeros((n, n))`, `v[:, None] - v[None, :]`: arrays of which data say how long several axes are.

Like a selection (`masked_selection`) they are represented by an array with room for all elements, and a mask for each of these axes.
`frontend/numpy/selected` computes with them, by `GRIDDED`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.masked_selection import GRIDDED, SizedByData, refuse, run_selected
from bwcompiler.frontend.tracing.registry import HANDLERS, TAKING, require_known

_REDUCING = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min, "logical_and": np.all, "logical_or": np.any}


class Line(NamedTuple):
    """Which elements along an axis there are: a mask; and how many, where those are the first ones, else None."""

    where: Any
    count: Any


class Grid(SizedByData):
    """An array with room for all elements, and the lines of at least two of its axes.

    viewed   what it is a view of.  views: the selections and grids that are views of it, and storages of rows.  Views are copies, so that
    neither is changed in place while there are both.
    is_view  whether `array` is a view of an array, as that of x[:k, :k]: the grid is one, too.
    """

    __slots__ = ("__weakref__", "array", "is_view", "lines", "viewed", "views")

    is_grid = True
    kind = "grid"
    __array_priority__ = 3000.0

    def __init__(self, array: Any, lines: dict[int, Line], is_view: bool = False) -> None:
        self.array: Any = array
        self.lines = lines
        self.is_view = is_view
        self.viewed = None
        self.views = []

    @property
    def ndim(self) -> int:
        return int(self.array.ndim)

    @property
    def shape(self) -> tuple[Any, ...]:
        return call(HANDLERS["shape_of_grid"], self)  # type: ignore[no-any-return]

    @property
    def size(self) -> Any:
        return call(HANDLERS["size_of_grid"], self)

    def __iter__(self) -> Any:
        return call(refuse, "a loop that has to be unrolled")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        if getattr(np, name, None) is not ufunc:
            call(require_known, ufunc)
        if method == "__call__" and not kwargs:
            return run_selected(np.matmul, *inputs) if name == "matmul" else call(HANDLERS["of_selections"], name, *inputs)
        if method == "reduce" and name in _REDUCING:
            kwargs.setdefault("axis", 0)
            return run_selected(_REDUCING[name], *inputs, **kwargs)
        return call(refuse, f"np.{name}{'' if method == '__call__' else '.' + method}{' with ' + ', '.join(kwargs) if kwargs else ''}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        function = getattr(np, name, None)
        if not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        if function in GRIDDED:
            return lambda *args, **kwargs: run_selected(function, self, *args, **kwargs)
        return call(refuse, f".{name}")

    def astype(self, dtype: Any, **options: Any) -> Any:
        """A copy with elements of that dtype."""
        return call(lambda: Grid(self.array.astype(dtype, **options), self.lines))


TAKING.append(Grid)
