"""A random graph while it grows: `GraphBuilder`, the values so far with their arrays, and what may be applied to them.

A graph is built with its arrays alongside, so that every op is only applied where its arguments are in its domain.

A value is *exact* if every op before it gives the same bits however it is computed (IEEE arithmetic, moves, integers);
elementary functions, contractions and reordered sums are not.  Ops that jump (comparisons, rounding, positions) are
applied to exact values only, or, in smooth graphs, away from their jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bwcompiler.ops  # noqa: F401  (registers them)
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import REGISTRY, Record, Value, input_value
from bwcompiler.ir.types import BOOL, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, DType, complex_of, dtype_of, tensor

EXTENTS = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 33)
WEIGHTS = np.array((0.3, 2, 2, 3, 3, 3, 3, 2, 2, 1, 0.5)) / 22.1 * 1.0
INTEGERS = (I64, I32, I16, I8, U8, U16, U32, U64)
MARGIN = 0.05                      # smooth graphs stay this far from kinks
LARGEST = 1 << 12                  # elements of a value


@dataclass
class RandomGraph:
    """A graph, arguments for it, and per output whether compiled code must give the interpreter's bits."""

    graph: Graph
    arguments: list[Any]
    exact: list[bool]
    scale: float                   # the largest magnitude of any value

    @property
    def wrt(self) -> list[int]:
        """The inputs that have derivatives."""
        return [k for k, value in enumerate(self.graph.inputs) if value.dtype.is_differentiable]


class GraphBuilder:
    """The values so far, each with its array."""

    def __init__(self, rng: np.random.Generator, smooth: bool, dtype: DType) -> None:
        self.rng = rng
        self.smooth = smooth
        self.dtype = dtype
        self.record = Record()
        self.inputs: list[Value] = []
        self.arrays: dict[Value, Any] = {}
        self.exact: set[Value] = set()
        self.limit = 8.0 if smooth else 1e6
        self.rounded = not smooth and bool(rng.integers(2))        # arguments are multiples of 1/4: ties happen

    # -- chance
    def choice(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def extent(self) -> int:
        return int(self.rng.choice(EXTENTS, p=WEIGHTS / WEIGHTS.sum()))

    def random_shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = int(self.rng.choice(4, p=(0.1, 0.3, 0.4, 0.2))) if rank is None else rank
        while True:
            shape = tuple(self.extent() for _ in range(rank))
            if int(np.prod(shape)) <= LARGEST // 4:
                return shape

    def some_axes(self, rank: int) -> tuple[int, ...]:
        """A random non-empty sorted set of axes (empty only for rank 0)."""
        axes = tuple(axis for axis in range(rank) if self.chance(0.5))
        return axes or ((int(self.rng.integers(rank)),) if rank else ())

    # -- values
    def new_input(self, shape: tuple[int, ...], dtype: DType | None = None, low: int = -4, high: int = 5) -> Value:
        dtype = dtype or (self.dtype if self.smooth or self.chance(0.9) else self.choice((F32, F64, BOOL, *INTEGERS)))
        array: Any
        if dtype is BOOL:
            array = self.rng.random(shape) < 0.5
        elif dtype.is_integer:
            array = self.rng.integers(max(low, 0) if dtype.kind == "u" else low, high, shape)
        else:
            array = self.rng.uniform(-2, 2, shape)
            if dtype.is_complex:
                array = array + 1j * self.rng.uniform(-2, 2, shape)
            if self.rounded:
                array = np.rint(array * 4) / 4
        value = input_value(tensor(dtype, shape), f"x{len(self.inputs)}")
        self.inputs.append(value)
        self.arrays[value] = np.asarray(array, dtype.numpy)
        self.exact.add(value)
        return value

    def all(self) -> list[Value]:
        return list(self.arrays)

    def pick(self, kinds: str = "f", min_rank: int = 0, exact: bool = False) -> Value:
        """A value, recent ones more often; a new input where there is none."""
        found = [value for value in self.all() if value.dtype.kind in kinds and value.rank >= min_rank
                 and (not exact or self.smooth or value in self.exact)]
        if not found or self.chance(0.03):
            dtype = {"f": self.dtype, "c": complex_of(self.dtype), "b": BOOL}.get(kinds[0]) or self.choice((I64, *INTEGERS))
            return self.new_input(self.random_shape(max(min_rank, int(self.rng.integers(4)))), dtype)
        if self.chance(0.6):
            found = found[-4:]
        return self.choice(found)

    def like(self, x: Value, exact: bool = False) -> Value:
        """A value of x's type."""
        same = [value for value in self.all() if value.type == x.type and (not exact or self.smooth or value in self.exact)]
        if len(same) > 1 and self.chance(0.6):
            return self.choice(same)
        if self.chance(0.3) and x.dtype.is_float:
            number = float(self.choice((0.5, -0.5, 1.0, -1.0, 2.0, 3.0, 0.0, -0.0) if not self.smooth else (0.5, 1.3, -1.0)))
            return self.apply("full", value=number, shape=x.shape, dtype=x.dtype) or x
        for source in self.rng.permutation(np.arange(len(self.all()))):
            value = self.all()[int(source)]
            if value.dtype is not x.dtype or (exact and not self.smooth and value not in self.exact) or value.rank >= x.rank:
                continue
            axes = _embedding(value.shape, x.shape)
            if axes is not None:
                return self.apply("broadcast", value, shape=x.shape, axes=axes) or x
        return self.new_input(x.shape, x.dtype)

    def apply(self, name: str, *operands: Value, **attrs: Any) -> Value | None:
        """The op applied, unless its result is too large, not finite, or too near a kink."""
        op = REGISTRY[name]
        arrays = [self.arrays[operand] for operand in operands]
        if self.smooth and not _is_smooth(name, arrays, attrs):
            return None
        if name in ("max", "min", "maximum", "minimum", "order_statistics") and any(_has_negative_zero(x) for x in arrays):
            return None                                            # which of 0.0 and -0.0 wins is not promised
        array = np.asarray(op.reference(*arrays, **attrs))
        if array.size > LARGEST:
            return None
        if array.dtype.kind in "fc" and array.size:
            size = float(np.max(np.abs(array)))
            if not size <= self.limit:
                return None
        before = len(self.record.values)
        value = op(*operands, **attrs)
        assert len(self.record.values) == before + 1
        assert (value.shape, value.dtype) == (array.shape, dtype_of(array.dtype)), f"{name}: {value.type}, {array.dtype}{array.shape}"
        self.arrays[value] = array
        if all(operand in self.exact for operand in operands) and _is_exact(name, value):
            self.exact.add(value)
        return value

    def finish(self, name: str) -> RandomGraph:
        read = {operand for value in self.record.values for operand in value.operands}
        last = [value for value in self.record.values if value not in read] or self.inputs[-1:]
        if self.smooth:
            last = [value for value in last if value.dtype.is_float] or self.inputs[:1]
        outputs = last[-int(self.rng.integers(1, 7)):]
        if self.chance(0.15):
            outputs = [*outputs, self.choice(self.all() if not self.smooth else self.inputs)]
        body = live_values(self.record.values, outputs)
        used = {operand for value in body for operand in value.operands} | set(outputs)
        inputs = [value for value in self.inputs if value in used or self.chance(0.1)]
        magnitudes = [float(np.max(np.abs(array))) for array in self.arrays.values() if array.dtype.kind in "fc" and array.size]
        return RandomGraph(Graph(name, inputs, body, outputs), [self.arrays[value] for value in inputs],
                           [output in self.exact for output in outputs], max([1.0, *magnitudes]))


def _embedding(source: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...] | None:
    """Axes of target, in order, that have the extents of source."""
    axes: list[int] = []
    k = 0
    for extent in source:
        while k < len(target) and target[k] != extent:
            k += 1
        if k == len(target):
            return None
        axes.append(k)
        k += 1
    return tuple(axes)


_EXACT_ELEMENTWISE = frozenset((
    "add", "subtract", "multiply", "divide", "negative", "absolute", "sign", "floor_divide", "remainder", "fmod", "maximum",
    "minimum", "copysign", "sqrt", "floor", "ceil", "trunc", "rint", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "isnan", "isinf", "isfinite", "signbit", "bitwise_and", "bitwise_or", "bitwise_xor", "invert",
    "left_shift", "right_shift", "select", "cast", "stop_gradient", "nextafter", "spacing", "make_complex", "real", "imag", "conjugate"))


def _has_negative_zero(x: Any) -> bool:
    return x.dtype.kind == "f" and bool(np.any((x == 0) & np.signbit(x)))


def _is_exact(name: str, value: Value) -> bool:
    if value.dtype.is_complex and name in ("multiply", "divide"):      # NumPy rounds a product and a sum at once, or not
        return False
    if name in _EXACT_ELEMENTWISE or REGISTRY[name].kind in ("layout", "constant", "index"):
        return True
    return value.dtype.kind in "biu" or name in ("max", "min", "scatter_update", "order_statistics")


def _is_smooth(name: str, arrays: Sequence[Any], attrs: dict[str, Any]) -> bool:
    """Whether the op has three moderate derivatives at these operands."""
    x = arrays[0] if arrays else np.zeros(())
    if name in ("log", "log2", "log10", "sqrt", "cbrt"):
        return bool(np.all(x > 0.4))
    if name == "log1p":
        return bool(np.all(x > -0.5))
    if name == "divide":
        return bool(np.all(np.abs(arrays[1]) > 0.5))
    if name == "power":
        return bool(np.all(x > 0.4) and np.all(np.abs(arrays[1]) < 3))
    if name in ("arcsin", "arccos", "arctanh", "erfinv"):
        return bool(np.all(np.abs(x) < 0.8))
    if name == "arccosh":
        return bool(np.all(x > 1.4))
    if name in ("hypot", "arctan2"):
        return bool(np.all(np.hypot(*arrays) > 0.5))
    if name == "tan":
        return bool(np.all(np.abs(np.cos(x)) > 0.5))
    if name in ("remainder", "fmod"):
        return bool(np.all(np.abs(arrays[1]) > 0.5)) and bool(np.all(np.abs(x / arrays[1] - np.rint(x / arrays[1])) > MARGIN))
    if name in ("lgamma", "digamma", "trigamma", "polygamma"):
        return bool(np.all(x > 0.5))
    if name in ("absolute", "sign", "copysign"):
        return all(bool(np.all(np.abs(array) > MARGIN)) for array in arrays)
    if name in ("maximum", "minimum", "less", "greater", "less_equal", "greater_equal", "equal", "not_equal"):
        return x.dtype.kind != "f" or bool(np.all(np.abs(x - arrays[1]) > MARGIN))
    if name in ("max", "min"):
        return _has_gap(x, attrs["axes"])
    if name == "order_statistics":
        return bool(np.all(np.diff(np.sort(x, -1), axis=-1) > MARGIN))
    return True


def _has_gap(x: Any, axes: tuple[int, ...]) -> bool:
    """Whether reduced elements are MARGIN apart."""
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    rows = np.transpose(x, (*kept, *axes)).reshape((*(x.shape[axis] for axis in kept), -1))
    return bool(np.all(np.diff(np.sort(rows, axis=-1), axis=-1) > MARGIN))
