"""Index maps: from an element of a value to the element of a stored array that it equals.

Layout ops (transpose, broadcast, slice ...) and constants compute nothing: an element of one is an element of its operand at
another index.  `expand` composes these maps down to values that are stored or computed (`leaf`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Affine, Extent, Index, Section, add_extents, most, scale_extent, substitute, upper
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import IndexExpression, Scalar, const, index_value
from bwcompiler.ir.types import DType

Leaf = Callable[[Value, tuple[IndexExpression, ...]], Scalar]


def section_of(value: Value) -> Section:
    """The part of its array that a slice reads, or an update writes."""
    sizes = value.attrs["sizes"] if "sizes" in value.attrs else value.operands[1].shape
    return Section(value.attrs["starts"], sizes, value.attrs["steps"])


def reshape_index(at: Sequence[IndexExpression], source: Sequence[Extent],
                  target: Sequence[Extent]) -> tuple[IndexExpression, ...] | None:
    """The index in shape `source` of the element at index `at` in shape `target`, for a reshape; None if it is not affine.

    It is affine if every source axis is a product of target axes (split), or has size 1, but not if axes are merged.
    """
    result: list[IndexExpression] = []
    k, rank = 0, len(target)
    for extent in source:
        if extent == 1:
            result.append(0)
            continue
        product: Extent = 1
        position: IndexExpression = 0
        while product != extent:
            while k < rank and target[k] == 1:
                k += 1
            if k == rank or not isinstance(product, int):
                return None
            factor, entry = target[k], at[k]
            if product == 1:
                position = entry
            elif not isinstance(factor, int):
                return None
            elif isinstance(entry, Scalar) or isinstance(position, Scalar):
                position = _as_scalar(position) * factor + _as_scalar(entry)
            else:
                position = add_extents(scale_extent(position, factor), entry)
            product = product * factor
            k += 1
            if isinstance(product, int) and isinstance(extent, int) and product > extent:
                return None
        result.append(position)
    return tuple(result)


def _as_scalar(position: IndexExpression) -> Scalar:
    return position if isinstance(position, Scalar) else index_value(position)


def is_alias(value: Value) -> bool:
    """Whether a value is a view of its operand's memory with another shape: a reshape whose index map is not affine."""
    return value.op.in_order and _merges_axes(value.operands[0].shape, value.shape)


@functools.lru_cache(maxsize=1024)
def _merges_axes(source: tuple[Extent, ...], target: tuple[Extent, ...]) -> bool:
    """Whether an axis of `source` is not a product of axes of `target`."""
    return reshape_index([0] * len(target), source, target) is None


def root(value: Value) -> Value:
    """The value whose memory an alias shares."""
    while value.op.in_order and is_alias(value):
        value = value.operands[0]
    return value


def is_virtual(value: Value) -> bool:
    """Whether a value needs no memory: its elements are elements of its operand at other indices, or a constant."""
    return value.op.virtual and not (value.op.in_order and is_alias(value))


def is_row(value: Value) -> bool:
    """Whether a value is a contiguous part of an array, at a position given by data: a row of a ring of residuals."""
    if value.op.name != "gather" or not value.rank or value.operands[1].rank:
        return False
    axes = value.attrs["axes"]
    return bool(axes == tuple(range(len(axes))))


def is_leaf(value: Value, forced: Container[Value]) -> bool:
    """Whether loops that read a value read memory of its own, or compute it; forced: values that have it whatever they are."""
    return value in forced or not (is_virtual(value) or is_row(value))


def expand(value: Value, at: tuple[IndexExpression, ...], leaf: Leaf, stored: Callable[[Value], bool]) -> Scalar:
    """Element `at` of value as a scalar expression of leaves; values for which `stored` holds are leaves."""
    if stored(value):
        return leaf(value, at)
    if value.op.in_order:
        index = reshape_index(at, value.operands[0].shape, value.shape)
        if index is None:
            raise InternalError(f"{value} is read at an index for which its reshape is not affine")
        return expand(value.operands[0], index, leaf, stored)
    return element(value, at, leaf, stored)


def element(value: Value, at: tuple[IndexExpression, ...], leaf: Leaf, stored: Callable[[Value], bool]) -> Scalar:
    """The op's own element rule at `at`, its operands expanded."""
    if value.op.element is None:
        raise InternalError(f"{value.op.name} has no element rule")
    readers = [_Reader(operand, leaf, stored) for operand in value.operands]
    return value.op.element(at, *readers, **value.attrs)  # type: ignore[no-any-return]


class _Reader:
    """An operand in an element rule: callable with an index, with shape and dtype."""

    __slots__ = ("leaf", "operand", "stored")

    def __init__(self, operand: Value, leaf: Leaf, stored: Callable[[Value], bool]) -> None:
        self.operand = operand
        self.leaf = leaf
        self.stored = stored

    @property
    def shape(self) -> tuple[Extent, ...]:
        return self.operand.shape

    @property
    def dtype(self) -> DType:
        return self.operand.dtype

    def __call__(self, *index: IndexExpression) -> Scalar:
        return expand(self.operand, index, self.leaf, self.stored)


def plain_axes(index: Sequence[IndexExpression]) -> tuple[Affine | None, ...] | None:
    """Per entry the loop index, or None for the constant 0; None if any entry has another form."""
    found: list[Affine | None] = []
    for entry in index:
        if isinstance(entry, int):
            if entry != 0:
                return None
            found.append(None)
        elif isinstance(entry, Affine) and entry.constant == 0 and len(entry.terms) == 1 and entry.terms[0][1] == 1:
            found.append(entry)
        else:
            return None
    return tuple(found)


class ArrayView(NamedTuple):
    """A value as a strided view of another one's memory: value[i] is at `offset + sum(strides[k] * i[k])` of base, in elements.

    In the body of a loop the offset may depend on the loop's index.
    """

    base: Value
    offset: Extent
    strides: tuple[int, ...]


def whole(value: Value) -> ArrayView:
    """The view of a value that has memory, or is an alias of it."""
    return ArrayView(root(value), 0, contiguous_strides(value.shape))


def contiguous_strides(shape: Sequence[Extent]) -> tuple[int, ...]:
    """Strides, in elements, of a C-contiguous array, laid out for the largest extents."""
    strides, step = [], 1
    for extent in reversed(most(shape)):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def view_of(value: Value) -> ArrayView | None:
    """The view of a value that consists only of layout ops (transpose, slice, broadcast, reshape) of its base; None if it is not affine."""
    if not is_virtual(value):
        return whole(value)
    indices = [Index(0, extent - 1) for extent in value.shape]
    found: list[tuple[Value, tuple[IndexExpression, ...]]] = []
    marker = const(0, value.dtype)

    def leaf(base: Value, index: tuple[IndexExpression, ...]) -> Scalar:
        found.append((base, index))
        return marker

    at = tuple([index.extent() for index in indices])
    if expand(value, at, leaf, lambda part: not is_virtual(part)) is not marker or len(found) != 1:
        return None
    base, entries = found[0]
    place: Extent = 0
    for entry, stride in zip(entries, contiguous_strides(base.shape), strict=True):
        if isinstance(entry, Scalar):
            return None
        place = add_extents(place, scale_extent(entry, stride))
    terms = dict(place.terms) if isinstance(place, Affine) else {}
    strides = tuple([terms.get(index, 0) for index in indices])
    return ArrayView(root(base), substitute(place, dict.fromkeys(indices, 0)), strides)


def matrix_order(view: ArrayView, rows: Extent, columns: Extent) -> tuple[bool, int] | None:
    """(transposed, leading dimension) of the last two axes for a BLAS routine; None for any other layout."""
    down, right = view.strides[-2:]
    rows, columns = upper(rows), upper(columns)
    if (right == 1 or columns == 1) and (down >= max(columns, 1) or rows == 1):
        return False, max(down, columns, 1) if rows > 1 else max(columns, 1)
    if (down == 1 or rows == 1) and (right >= max(rows, 1) or columns == 1):
        return True, max(right, rows, 1) if columns > 1 else max(rows, 1)
    return None


def matrix_view(value: Value) -> ArrayView | None:
    """`view_of` where BLAS can read it without a copy."""
    view = view_of(value)
    return view if view is not None and matrix_order(view, *value.shape[-2:]) is not None else None
