"""What `solve_ivp` gives without `t_eval` inside of a traced function: of the steps that SciPy would choose, the first and the last.

How many steps there are depends on data.  A program that asked for others than these two would get numbers that are not SciPy's, silently,
were the ends all the steps that there are; so they are refused.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.operators import Operators


class ChosenSteps(Operators):
    """y or t at the steps that an integrator chooses, along one axis, of which the first and the last are known."""

    __array_ufunc__ = None

    def __init__(self, first: Any, last: Any, axis: int = -1) -> None:
        self._first, self._last, self._axis = first, last, axis
        self.dtype, self.ndim = last.dtype, last.ndim + 1

    def __getitem__(self, index: Any) -> Any:
        places = index if isinstance(index, tuple) else (index,)
        if Ellipsis in [place for place in places if isinstance(place, type(Ellipsis))]:
            at = next(k for k, place in enumerate(places) if place is Ellipsis)
            places = (*places[:at], *[slice(None)] * (self.ndim + 1 - len(places)), *places[at + 1:])
        if len(places) > self.ndim or any(place is None for place in places):
            return _refuse()
        places = (*places, *[slice(None)] * (self.ndim - len(places)))
        of_step, others = (places[0], places[1:]) if self._axis == 0 else (places[-1], places[:-1])
        if isinstance(of_step, slice) and of_step == slice(None):
            return self._of_parts(others)
        if isinstance(of_step, slice) and of_step == slice(-1, None):
            return np.expand_dims(self._last[others], self._axis)
        if isinstance(of_step, int | np.integer) and operator.index(of_step) in (0, -1):
            return (self._last if of_step else self._first)[others]
        return _refuse()

    def _of_parts(self, others: tuple[Any, ...]) -> ChosenSteps:
        if not all(isinstance(place, slice | int | np.integer) for place in others):
            return _refuse()
        return ChosenSteps(self._first[others], self._last[others], self._axis)

    @property
    def T(self) -> ChosenSteps:
        """The other way round."""
        return ChosenSteps(self._first, self._last, -1 - self._axis) if self.ndim == 2 else self

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def __len__(self) -> int:
        return int(self._last.shape[0]) if self.ndim == 2 and self._axis == -1 else _refuse()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _refuse()

    def _refused(self, *args: Any, **keywords: Any) -> NoReturn:
        _refuse()

    __array__ = __array_function__ = __bool__ = _operate = _refused


def _refuse() -> NoReturn:
    raise UnsupportedError("solve_ivp inside of a traced function: without t_eval, only the first and the last step are known, y[:, 0] and "
                           "y[:, -1]\n  hint: t_eval=np.linspace(t0, t1, 100) says where the solution is wanted")
