"""How NumPy would have laid out an array in memory, determined only when needed.

Values are always in C order; more is needed only for what NumPy decides by memory order (whether a reshape is a view or a copy, the
order of `ravel("K")`).  A `Layout` belongs to a storage.  The layout of an argument records that it was used, so that a program is
specialised only on the memory order of arguments that it depends on.  The layout of the result of a NumPy function is
obtained by calling NumPy's own function on dummies laid out like the operands (`RepeatedCall`), so no rule can be missing or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.storages.new_strides import result_strides
from bwcompiler.frontend.tracing.storages.shapes import Shape, known_shape
from bwcompiler.frontend.tracing.storages.views import Chain, shadow

Strides = tuple[int, ...]
Answer = Callable[[], Strides | None]


class UnknownOrderError(UnsupportedError):
    """NumPy's memory order of an array is needed, and cannot be found out while tracing."""


class Layout:
    """The strides of a storage in elements, None for C order.

    settled   whether the strides are known; they then depend on nothing any more.
    """

    __slots__ = ("_answer", "_dense", "_sources", "_strides", "settled")

    def __init__(self, answer: Answer | None = None, sources: Iterable[Layout] = (), strides: Strides | None = None) -> None:
        self._answer = answer
        self._sources = tuple([source for source in sources if not source.settled])
        self._strides = strides
        self._dense: Layout | None = None
        self.settled: bool = answer is None

    def strides(self) -> Strides | None:
        """The answer; raises UnknownOrderError."""
        waiting = [self]                            # no recursion: chains of results may be long
        while waiting:
            layout = waiting[-1]
            missing = [source for source in layout._sources if not source.settled]
            waiting.extend(missing)
            if missing:
                continue
            waiting.pop()
            if not layout.settled:
                assert layout._answer is not None
                layout._strides = layout._answer()
                layout.settled, layout._answer, layout._sources = True, None, ()
        return self._strides

    def dense(self, shape: Shape) -> Layout:
        """The layout of what is computed element by element from the whole of an array of that shape, laid out like this."""
        if self is C_ORDER:
            return self
        if self._dense is None:
            self._dense = Layout(lambda: result_strides(shape, [shadow(shape, self.strides(), ())]), [self])
            self._dense._dense = self._dense
        return self._dense


C_ORDER = Layout()


def fixed(strides: Strides | None) -> Layout:
    """A layout that is known, whatever the arguments are."""
    return C_ORDER if strides is None else Layout(strides=strides)


def unknown(reason: str) -> Layout:
    """A layout that cannot be found out."""
    def refuse() -> Strides:
        raise UnknownOrderError(f"it depends on the memory order of {reason}, which is not known while tracing")
    return Layout(refuse)


class Memory:
    """What NumPy sees of an array but its elements: taken from a handle, kept while the handle moves on."""

    __slots__ = ("chain", "dtype", "layout", "number", "shape", "storage_shape")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], storage_shape: Shape, layout: Layout | None, chain: Chain,
                 number: bool = False) -> None:
        self.shape = known_shape(shape)
        self.dtype = dtype
        self.storage_shape = storage_shape
        self.layout = C_ORDER if layout is None else layout
        self.chain = chain
        self.number = number

    @property
    def sources(self) -> tuple[Layout, ...]:
        return (self.layout,)

    def shadow(self) -> np.ndarray[Any, Any]:
        """A strided stand-in whose elements must never be read; strides in elements."""
        return shadow(self.storage_shape, self.layout.strides(), self.chain)

    def dummy(self, trial: int) -> Any:
        """An array that can be computed with: matrices that are positive definite, then any; indices that are zero, then any."""
        if self.number:
            return self.dtype.type(0)
        strides = self.shadow().strides
        lengths = [max(n - 1, 0) * step for n, step in zip(self.shape, strides, strict=True)]
        first = -sum(min(length, 0) for length in lengths)
        memory = np.zeros(first + sum(max(length, 0) for length in lengths) + 1, self.dtype)
        steps = [step * self.dtype.itemsize for step in strides]
        made = np.lib.stride_tricks.as_strided(memory[first:], self.shape, steps)
        if self.dtype.kind in "fc" and trial:
            made[...] = np.random.default_rng(0).random(self.shape)
        elif (self.dtype.kind in "fc" or trial) and made.size:
            diagonal = range(min(self.shape[-2:], default=0))
            made[(..., diagonal, diagonal) if made.ndim > 1 else ...] = 1
        return made


class RepeatedCall:
    """A call of a NumPy function, to be repeated once, on dummies, when the layout of one of its results is asked for.

    _answers  per result its shape and strides, nested as the results are.
    """

    __slots__ = ("_answers", "_args", "_function", "_kwargs", "sources")

    def __init__(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.sources: list[Layout] = []
        self._function = function
        self._args = [self._noted(x) for x in args]
        self._kwargs = {key: self._noted(x) for key, x in kwargs.items()}
        self._answers: Any = None

    def _noted(self, x: Any) -> Any:
        """An argument as it is now; handles without their values."""
        memory = getattr(x, "_memory", None)
        if memory is not None:
            noted = memory()
            self.sources.append(noted.layout)
            return noted
        if isinstance(x, list | tuple):
            return [self._noted(item) for item in x] if type(x) is list else tuple([self._noted(item) for item in x])
        if isinstance(x, dict):
            return {key: self._noted(item) for key, item in x.items()}
        if isinstance(x, np.ndarray) and x.dtype == object:
            return self._noted(x.tolist())
        return x

    def layout(self, path: tuple[int, ...], shape: Shape) -> Layout:
        """That of one result, found along `path` in the tuples that the function returns."""
        return Layout(lambda: self._strides(path, known_shape(shape)), self.sources)

    def _strides(self, path: tuple[int, ...], shape: Shape) -> Strides:
        name = getattr(self._function, "__name__", "a function")
        if self._answers is None:
            self._answers = _answers(self._repeat(name))
        found = self._answers
        for place in path:
            found = found[place]
        if not isinstance(found, _Answer) or found.shape != shape:
            raise _unknown_result(name)
        return found.strides

    def _repeat(self, name: str) -> Any:
        error: Exception | None = None
        for trial in range(2):
            args = [_dummy(x, name, trial) for x in self._args]
            kwargs = {key: _dummy(x, name, trial) for key, x in self._kwargs.items()}
            try:
                with np.errstate(all="ignore"):
                    return self._function(*args, **kwargs)
            except Exception as caught:             # whatever a function has against dummies
                error = caught
        raise _unknown_result(name) from error


class _Answer(NamedTuple):
    shape: Shape
    strides: Strides


def _answers(results: Any) -> Any:
    """Shapes and strides of arrays in lists and tuples, so that the arrays can go."""
    if isinstance(results, list | tuple):
        return [_answers(part) for part in results]
    if isinstance(results, np.ndarray):
        return _Answer(results.shape, tuple([step // results.itemsize for step in results.strides]))
    return None


def _dummy(x: Any, name: str, trial: int) -> Any:
    if isinstance(x, Memory):
        return x.dummy(trial)
    if isinstance(x, list | tuple):
        return type(x)([_dummy(item, name, trial) for item in x])
    if isinstance(x, dict):
        return {key: _dummy(item, name, trial) for key, item in x.items()}
    if callable(x) and not isinstance(x, type | np.generic) and not str(getattr(x, "__module__", "numpy")).startswith("numpy"):
        raise _unknown_result(name)                 # the user's function is not run a second time
    return x


def _unknown_result(name: str) -> UnknownOrderError:
    return UnknownOrderError(f"it depends on the memory order of the result of {name}, which is not known while tracing")
