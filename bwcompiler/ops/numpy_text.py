"""Export of ops as NumPy source: the rules for the field `numpy` of declarations, and their building blocks.

A rule takes an `Application` and returns an expression, or several statements if NumPy has no function for it
(`Statements`).  Expressions are readable: `x @ w`, `x[1:-1, ::2]`, `np.where(c, x, y)`.  Rules here know
attributes, not ops; `rule_of` finds the rule of an op, by default a call of the op's reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bwcompiler.errors import InternalError
from bwcompiler.ir.declaration import WITHOUT_NUMPY, is_plain_function, numpy_name
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, scale_extent
from bwcompiler.ir.op import Op, Value, is_constant
from bwcompiler.ir.types import F64, I64, DType, TensorType


@dataclass(frozen=True)
class Statements:
    """Statements that compute the value under the name `target`."""

    lines: tuple[str, ...]


@dataclass
class Application:
    """A value to write: its name, the texts of its operands, and the helper functions that it needs.

    indices   names of the indices of enclosing loops.
    in_place  of an update: the target is the array to be updated.
    """

    value: Value
    target: str
    reads: Sequence[str]
    helpers: set[Callable[..., Any]]
    indices: Mapping[Index, str] = field(default_factory=dict)
    in_place: bool = False

    @property
    def attrs(self) -> Any:
        return self.value.attrs

    @property
    def x(self) -> Value:
        return self.value.operands[0]

    def helper(self, function: Callable[..., Any], *arguments: str) -> str:
        """A call of a function whose source is copied."""
        self.helpers.add(function)
        return call(copied_name(function), *arguments)

    def extent(self, extent: Extent) -> str:
        return extent_text(extent, self.indices)

    def extents(self, extents: Sequence[Extent]) -> str:
        """A tuple of extents."""
        return tuple_text([self.extent(extent) for extent in extents])


Rule = Callable[[Application], str | Statements]


def copied_name(function: Callable[..., Any]) -> str:
    """The name of a function in the copied source: `broadcast` for `_broadcast_reference`."""
    return function.__name__.strip("_").removesuffix("_reference")


# ----- texts of numbers, dtypes, axes
def call(function: str, *arguments: str) -> str:
    return f"{function}({', '.join(arguments)})"


def dtype_text(dtype: DType) -> str:
    return f"np.{dtype.numpy.name}" if dtype.kind != "b" else "np.bool_"


def float_text(value: float) -> str:
    if math.isnan(value):
        return "np.nan"
    if math.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(value)


def scalar_literal(value: Any, dtype: DType) -> str:
    """A Python scalar of the dtype's kind, which NumPy combines with an array without changing its dtype."""
    if dtype.kind == "c":
        number = complex(value)
        return f"complex({float_text(number.real)}, {float_text(number.imag)})"
    if dtype.kind == "f":
        return float_text(float(value))
    return str(bool(value)) if dtype.kind == "b" else str(int(value))


def extent_text(extent: Extent, indices: Mapping[Index, str]) -> str:
    """An integer that may depend on loop indices: `2*i + 1`."""
    if isinstance(extent, int):
        return str(extent)
    ordered = sorted(extent.terms, key=lambda term: term[1] < 0)                # `j - i`, not `-i + j`
    terms = [{1: "", -1: "-"}.get(factor, f"{factor}*") + indices[index] for index, factor in ordered]
    terms += [str(extent.constant)] if extent.constant else []
    return " + ".join(terms).replace("+ -", "- ")


def full_text(value: Any, type_: TensorType, indices: Mapping[Index, str] | None = None) -> str:
    """A constant array."""
    dtype = type_.dtype
    if type_.rank == 0:
        return call(dtype_text(dtype), scalar_literal(value, dtype))
    shape = tuple_text([extent_text(extent, indices or {}) for extent in type_.shape])
    given = [] if dtype is F64 else [dtype_text(dtype)]
    plain = complex(value)
    if plain == 0 and math.copysign(1.0, plain.real) > 0 and math.copysign(1.0, plain.imag) > 0:
        return call("np.zeros", shape, *given)
    if plain == 1:
        return call("np.ones", shape, *given)
    return call("np.full", shape, scalar_literal(value, dtype), *given)


def tuple_text(items: Sequence[Any]) -> str:
    return f"({', '.join(map(str, items))}{',' if len(items) == 1 else ''})"


def axes_text(axes: Sequence[int]) -> str:
    return str(axes[0]) if len(axes) == 1 else tuple_text(axes)


def negative_in_parentheses(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _narrow(dtype: DType) -> bool:
    """Whether NumPy's sums and products of this dtype widen."""
    return dtype.is_integer and dtype.itemsize < 8


# ----- elementwise
def infix(sign: str) -> Rule:
    """`x + y`."""
    def rule(a: Application) -> str:
        left, right = a.reads
        left = negative_in_parentheses(left) if sign == "**" else left
        return f"{left} {sign} {negative_in_parentheses(right)}"
    return rule


def cast(a: Application) -> str:
    dtype: DType = a.attrs["dtype"]
    real = ".real" if a.x.dtype.is_complex and dtype.kind not in "bc" else ""
    return f"{a.reads[0]}{real}.astype({dtype_text(dtype)})"


# ----- constants
def full(a: Application) -> str:
    return full_text(a.attrs["value"], a.value.type, a.indices)


def unset(a: Application) -> str:
    return full_text(0, a.value.type, a.indices)


def iota(a: Application) -> str:
    shape, axis, dtype = a.attrs["shape"], a.attrs["axis"], a.attrs.get("dtype", I64)
    line = call("np.arange", a.extent(shape[axis]), *([] if dtype is I64 else [f"dtype={dtype_text(dtype)}"]))
    return line if len(shape) == 1 else call("np.broadcast_to", line + new_axes(len(shape), (axis,)), a.extents(shape))


def new_axes(rank: int, axes: Sequence[int]) -> str:
    """The index that puts the axes of an array at `axes` of a result of that rank; empty where broadcasting does it."""
    if tuple(axes) == tuple(range(rank - len(axes), rank)):
        return ""
    parts = [":" if axis in axes else "None" for axis in range(rank)]
    return f"[{', '.join(parts)}]"


# ----- layout
def broadcast(a: Application) -> str:
    shape, axes, x = a.attrs["shape"], a.attrs["axes"], a.x
    if x.rank == 0:
        return call("np.broadcast_to", a.reads[0], a.extents(shape))
    placed = tuple(x.shape[axes.index(axis)] if axis in axes else 1 for axis in range(len(shape)))
    if placed == shape:
        parts = [":" if axis in axes else "None" for axis in range(len(shape))]
        return f"{a.reads[0]}[{', '.join(parts)}]"
    return call("np.broadcast_to", a.reads[0] + new_axes(len(shape), axes), a.extents(shape))


def transposed(text: str, axes: Sequence[int]) -> str:
    """An array with its axes permuted."""
    if tuple(axes) == tuple(range(len(axes))):
        return text
    return f"{text}.T" if len(axes) == 2 else f"{text}.transpose({', '.join(map(str, axes))})"


def reshape(a: Application) -> str:
    return f"{a.reads[0]}.reshape({', '.join(map(a.extent, a.attrs['shape'])) or '()'})"


def slice_text(extent: int, start: int, size: int, step: int) -> str:
    """Python's slice for `size` elements from `start`, with ends left out and counted from the back as one would write it."""
    if size == 0:
        return "0:0"
    suffix = "" if step == 1 else f":{step}"
    if step < 0:
        first = "" if start == extent - 1 else str(start)
        to_the_end = len(range(start, -1, step)) == size
        return f"{first}:{'' if to_the_end else start + (size - 1) * step - 1}{suffix}"
    first = "" if start == 0 else str(start)
    if len(range(start, extent, step)) == size:
        return f"{first}:{suffix}"
    stop = start + (size - 1) * step + 1
    return f"{first}:{stop - extent if extent - stop < stop else stop}{suffix}"


def _moving_slice(start: Extent, size: Extent, step: int, indices: Mapping[Index, str]) -> str:
    """The slice, forwards, of an axis whose bounds depend on loop indices (it may end beyond the axis, as slices may)."""
    first = start if step > 0 else add_extents(start, scale_extent(add_extents(size, -1), step))
    stop = add_extents(first, scale_extent(size, abs(step)))
    suffix = "" if abs(step) == 1 else f":{abs(step)}"
    return f"{'' if first == 0 else extent_text(first, indices)}:{extent_text(stop, indices)}{suffix}"


def index_text(shape: Sequence[Extent], starts: Sequence[Extent], sizes: Sequence[Extent], steps: Sequence[int],
               indices: Mapping[Index, str] | None = None) -> str:
    """The index `[1:-1, ::2]` of a rectangular part; a part whose bounds move backwards is `[i:i + 3][::-1]`."""
    parts: list[str] = []
    turned: list[str] = []
    for extent, start, size, step in zip(shape, starts, sizes, steps, strict=True):
        if isinstance(extent, int) and isinstance(start, int) and isinstance(size, int):
            parts.append(slice_text(extent, start, size, step))
            turned.append(":")
        else:
            parts.append(_moving_slice(start, size, step, indices or {}))
            turned.append(":" if step > 0 else "::-1")
    return _brackets(parts) + (_brackets(turned) if "::-1" in turned else "")


def _brackets(parts: list[str]) -> str:
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    return f"[{', '.join(parts)}]"


def slice_(a: Application) -> str:
    if a.value.rank == 0:
        return a.reads[0]
    return a.reads[0] + index_text(a.x.shape, a.attrs["starts"], a.attrs["sizes"], a.attrs["steps"], a.indices)


def _start_of_update(a: Application) -> tuple[str, ...]:
    """`target = copy of operand 0`, but in place; a constant operand is made on the spot."""
    return () if a.in_place else (
        f"{a.target} = {full_text(a.x.attrs['value'], a.x.type, a.indices) if is_constant(a.x) else a.reads[0] + '.copy()'}",)


def slice_write(sign: str) -> Rule:
    def rule(a: Application) -> str | Statements:
        if a.value.rank == 0:
            return f"{a.reads[0]} + {a.reads[1]}" if sign == "+=" else a.reads[1]
        place = index_text(a.x.shape, a.attrs["starts"], a.value.operands[1].shape, a.attrs["steps"], a.indices)
        return Statements((*_start_of_update(a), f"{a.target}{place} {sign} {a.reads[1]}"))
    return rule


def pad(a: Application) -> str:
    if a.value.rank == 0:
        return a.reads[0]
    widths = tuple_text([f"({a.extent(low)}, {a.extent(high)})" for low, high in zip(a.attrs["low"], a.attrs["high"], strict=True)])
    literal = scalar_literal(a.attrs["value"], a.value.dtype)
    return call("np.pad", a.reads[0], widths, *([] if literal in ("0", "0.0", "False") else [f"constant_values={literal}"]))


def concatenate(a: Application) -> str:
    return call("np.concatenate", tuple_text(a.reads), *([f"axis={a.attrs['axis']}"] if a.attrs["axis"] else []))


# ----- indexing
def _indexed_first(text: str, rank: int, axes: Sequence[int]) -> str:
    return transposed(text, (*axes, *[axis for axis in range(rank) if axis not in axes]))


def gather(a: Application) -> str:
    x, *indices = a.reads
    return f"{_indexed_first(x, a.x.rank, a.attrs['axes'])}[{', '.join(indices)}]"


def scatter_add(a: Application) -> Statements:
    _, updates, *indices = a.reads
    place = indices[0] if len(indices) == 1 else tuple_text(indices)
    view = _indexed_first(a.target, a.x.rank, a.attrs["axes"])
    return Statements((*_start_of_update(a), call("np.add.at", view, place, updates)))


def scatter_update(a: Application) -> Statements:
    _, updates, *indices = a.reads
    view = _indexed_first(a.target, a.x.rank, a.attrs["axes"])
    return Statements((*_start_of_update(a), f"{view}[{', '.join(indices)}] = {updates}"))


# ----- reductions and scans
def reduction(name: str) -> Rule:
    def rule(a: Application) -> str:
        axes = a.attrs["axes"]
        arguments = [] if len(axes) == a.x.rank and axes else [f"axis={axes_text(axes)}"]
        if name in ("np.sum", "np.prod") and _narrow(a.value.dtype):
            arguments.append(f"dtype={dtype_text(a.value.dtype)}")
        return call(name, a.reads[0], *arguments)
    return rule


def scan(name: str) -> Rule:
    def rule(a: Application) -> str:
        axis, reverse = a.attrs["axis"], a.attrs["reverse"]
        operand = f"np.flip({a.reads[0]}, {axis})" if reverse else a.reads[0]
        widening = [f"dtype={dtype_text(a.value.dtype)}"] if _narrow(a.value.dtype) and name in ("np.cumsum", "np.cumprod") else []
        text = call(name, operand, f"axis={axis}", *widening)
        return f"np.flip({text}, {axis})" if reverse else text
    return rule


# ----- ops in general
def attribute_text(a: Application, name: str) -> str:
    """The value of an attribute: an extent, axes, a dtype, a Python scalar."""
    found = a.attrs[name]
    if isinstance(found, DType):
        return dtype_text(found)
    if isinstance(found, Affine):
        return a.extent(found)
    return a.extents(found) if isinstance(found, tuple) else repr(found)


def _template(text: str) -> Rule:
    return lambda a: text.format(*a.reads, **{name: attribute_text(a, name) for name in a.attrs})


def rule_of(op: Op) -> Rule | None:
    """The rule by which an op is written; None for inputs and region ops, which are statements."""
    if isinstance(op.numpy, str):
        return _template(op.numpy)
    if op.numpy is not None or op.kind in WITHOUT_NUMPY:
        return op.numpy
    name = numpy_name(op.reference)
    if name is None and not is_plain_function(op.reference):
        raise InternalError(f"op {op.name} has no NumPy source")

    def called(a: Application) -> str:
        attributes = [f"{key}={attribute_text(a, key)}" for key in op.attributes if key in a.attrs]
        return a.helper(op.reference, *a.reads, *attributes) if name is None else call(name, *a.reads, *attributes)
    return called
