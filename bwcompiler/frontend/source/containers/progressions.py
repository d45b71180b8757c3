"""Variables that hold a range chosen by data: `rows = range(n) if sweep % 2 == 0 else range(n)[::-1]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.tracing.provenance.source import current_source


class Progression:
    """start, start + step ... of `count` numbers, of which any may be traced; a sequence as a range is."""

    __slots__ = ("count", "start", "step")
    __hash__ = None  # type: ignore[assignment]

    start: Any
    step: Any
    count: Any

    @property  # type: ignore[misc]
    def __class__(self) -> type:                   # to isinstance it is a range
        return range

    def __len__(self) -> int:
        return self.count if type(self.count) is int else self._refuse()

    def __getitem__(self, index: Any) -> Any:
        if type(index) is not int or not -len(self) <= index < len(self):
            return self._refuse()
        return self.start + (index + self.count if index < 0 else index) * self.step

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def __reversed__(self) -> Iterator[Any]:
        return iter(list(self)[::-1])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()

    def _refuse(self, *_args: Any, **_options: Any) -> Any:
        raise TracerError(at(current_source(), "a range of which data decide which one it is can be gone over, and be asked for elements "
                             "by known numbers\n  hint: one range, and the place as a number: i = k if forward else n - 1 - k"))

    __array__ = __array_ufunc__ = __array_function__ = __bool__ = __contains__ = __eq__ = _refuse


def parts_of(x: Any) -> list[Any]:
    """The parts of a range, in the order of the slots."""
    return [len(x), x.start, x.step] if type(x) is range else [x.count, x.start, x.step]
