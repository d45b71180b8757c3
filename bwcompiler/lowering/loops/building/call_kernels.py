"""Loop trees of values that are not fused: scatter, window adjoints, scans, and matrix products of integers.

Each builder returns a kernel and, per parameter, the value that it is the memory of.  UPDATED parameters hold operand 0's
elements on entry (the program copies them there unless the memory plan works in place).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import ArrayView
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, scale_extent
from bwcompiler.ir.loop import (
    INPUT,
    OUTPUT,
    UPDATED,
    Accumulate,
    Accumulator,
    Buffer,
    Fill,
    Kernel,
    Loop,
    Offset,
    Reduce,
    Statement,
    Store,
    identity_of,
    linear_offset,
    load,
)
from bwcompiler.ir.op import Op, Value
from bwcompiler.ir.product_loop import PRODUCT
from bwcompiler.ir.scalar import IndexExpression, Scalar, const, operation
from bwcompiler.ir.texts.graph_printer import first_free

Built = tuple[Kernel, list[Value]]


def has_call_kernel(value: Value) -> bool:
    """Whether a value that is in no group has a loop tree of its own: push and scan ops."""
    return value.op is ops.windows_add or value.op.kind == "scan" or value.op in _BUILDERS


def build_call_kernel(name: str, value: Value, operands: Sequence[ArrayView]) -> Built:
    """The loop tree of a push or scan op.  operands: the views that windows_add reads."""
    if value.op is ops.windows_add:
        return _windows_add(name, value, operands[0])
    builder = _scan if value.op.kind == "scan" else _BUILDERS[value.op]
    return builder(name, value)


def _loops(indices: list[Index], body: list[Statement], vector: bool = True) -> list[Statement]:
    """Nested loops over indices, the last one innermost."""
    kind = "vector" if vector else "serial"
    for index in reversed(indices):
        extent = add_extents(index.hi, 1)
        body = [Loop(index, extent, body, kind)]
        kind = "serial"
    return body


def _indices(shape: tuple[int, ...], prefix: str) -> list[Index]:
    return [Index(0, extent - 1, f"{prefix}{k}") for k, extent in enumerate(shape)]


def _extents(indices: list[Index]) -> tuple[Affine, ...]:
    return tuple(index.extent() for index in indices)


def _buffers(value: Value, role: str, operands: list[Value]) -> tuple[list[Buffer], Buffer]:
    inputs: list[Buffer] = []
    for operand in operands:
        name = first_free(operand.label, [made.name for made in inputs])
        inputs.append(Buffer(name, operand.dtype, operand.shape, INPUT, operand))
    name = first_free(value.label, [made.name for made in inputs])
    return inputs, Buffer(name, value.dtype, value.shape, role, value)


def _scatter(combine: str | None) -> Callable[[str, Value], Built]:
    def build(name: str, value: Value) -> Built:
        _, updates, *indices = value.operands
        axes = value.attrs["axes"]
        inputs, out = _buffers(value, UPDATED, [updates, *indices])
        lead = len(indices[0].shape)
        loops = _indices(updates.shape, "i")
        at = _extents(loops)
        where: list[IndexExpression] = list(at[lead:])
        for axis, buffer in zip(axes, inputs[1:], strict=True):
            where.insert(axis, load(buffer, linear_offset(buffer.shape, at[:lead])))
        update = load(inputs[0], linear_offset(updates.shape, at))
        target = linear_offset(value.shape, tuple(where))
        body: list[Statement] = [Store(out, target, update)]
        if combine is not None:
            body = [Accumulate((out, target), combine, update)]
        vector = lead < len(loops) and max(axes) < len(value.shape) - 1      # elements of one row never collide
        return Kernel(name, [*inputs, out], _loops(loops, body, vector)), [updates, *indices, value]
    return build


def _windows_add(name: str, value: Value, view: ArrayView) -> Built:
    """out[lead, o*stride + k*dilation] += ct[lead, o, k]: taps are outer loops, positions inner ones, so that rows vectorise."""
    count = len(value.attrs["sizes"])
    lead = value.rank - count
    inputs, out = _buffers(value, OUTPUT, [view.base])
    loops = _indices(value.operands[0].shape, "i")
    at = _extents(loops)
    target: list[IndexExpression] = list(at[:lead])
    for k in range(count):
        corner = scale_extent(at[lead + k], value.attrs["strides"][k])
        target.append(add_extents(corner, scale_extent(at[lead + count + k], value.attrs["dilations"][k])))
    order = [*loops[:lead], *loops[lead + count:], *loops[lead:lead + count]]
    element = load(inputs[0], _place(view, at))
    zero = const(0.0 if value.dtype.is_differentiable else 0, value.dtype)
    add = Accumulate((out, linear_offset(value.shape, tuple(target))), "add", element)
    return Kernel(name, [*inputs, out], [Fill(out, zero), *_loops(order, [add])]), [view.base, value]


def _place(view: ArrayView, at: Sequence[Extent]) -> Offset:
    """The offset of element `at` of a view in the memory of its base."""
    offset: Extent = view.offset
    for index, stride in zip(at, view.strides, strict=True):
        offset = add_extents(offset, scale_extent(index, stride))
    return Offset(offset, ())


def _scan(name: str, value: Value) -> Built:
    """A scan: along the last axis in an accumulator; along another axis, each row is combined with the one before."""
    x = value.operands[0]
    axis, reverse = value.attrs["axis"], value.attrs["reverse"]
    inputs, out = _buffers(value, OUTPUT, [x])
    loops = _indices(x.shape, "i")
    extent = x.shape[axis]
    at: list[Extent] = list(_extents(loops))
    if reverse:
        at[axis] = add_extents(scale_extent(at[axis], -1), extent - 1)
    here = linear_offset(x.shape, tuple(at))
    element = load(inputs[0], here)
    combine = value.op.combine or "add"
    outer = [index for k, index in enumerate(loops) if k != axis]
    if axis == x.rank - 1:
        start = -0.0 if combine == "add" and value.dtype.is_differentiable else None         # the first sum is the first element
        running = Accumulator("running", combine, value.dtype, value, start=start)
        inner: list[Statement] = [Reduce(running), Loop(loops[axis], extent, [
            Accumulate(running, combine, element), Store(out, here, running.total())])]
        return Kernel(name, [*inputs, out], _loops(outer, inner, vector=False)), [x, value]
    return Kernel(name, [*inputs, out], _scan_rows(value, inputs[0], out, loops)), [x, value]


def _scan_rows(value: Value, source: Buffer, out: Buffer, loops: list[Index]) -> list[Statement]:
    """out[first] = x[first], then out[k] = out[previous k] + x[k]; whole rows, so that the last axis vectorises."""
    axis, reverse = value.attrs["axis"], value.attrs["reverse"]
    extent = value.shape[axis]
    if not extent:
        return []

    def offset(position: Extent) -> Offset:
        return linear_offset(value.shape, tuple(position if k == axis else loop.extent() for k, loop in enumerate(loops)))

    row = Index(0, extent - 2, loops[axis].name)
    step = row.extent()
    first, before, here = (extent - 1, add_extents(extent - 1, scale_extent(step, -1)), add_extents(extent - 2, scale_extent(step, -1))
                           ) if reverse else (0, step, add_extents(step, 1))
    total = operation(value.op.combine or "add", load(out, offset(before)), load(source, offset(here)))
    outer, inner = loops[:axis], loops[axis + 1:]
    head = _loops(inner, [Store(out, offset(first), load(source, offset(first)))])
    rows = Loop(row, extent - 1, _loops(inner, [Store(out, offset(here), total)]))
    return _loops(outer, [*head, rows], vector=False)


def build_matmul(name: str, value: Value, operands: Sequence[ArrayView]) -> Kernel:
    """out[.., i, j] += x[.., i, k] * y[.., k, j]: for dtypes without native products."""
    nest = _MatmulNest(value, operands)
    boolean = value.dtype.kind == "b"
    combine = "bitwise_or" if boolean else "add"
    body: list[Statement] = [Accumulate(nest.target, combine, operation("bitwise_and" if boolean else "multiply", *nest.factors))]
    zero = Fill(nest.out, const(identity_of(combine, value.dtype), value.dtype))
    return Kernel(name, nest.buffers, [zero, *_loops([*nest.batch, nest.row, nest.step, nest.column], body)])


def build_row_products(name: str, value: Value, operands: Sequence[ArrayView], blocks: int = 1) -> Kernel:
    """The same as products of rows (`ir/product_loop.py`), in a loop over blocks of rows."""
    nest = _MatmulNest(value, operands, row_blocks=blocks)
    total = Accumulator("total", "add", value.dtype, value)
    sum_: list[Statement] = [Reduce(total), *_loops([nest.step], [Accumulate(total, "add", operation("multiply", *nest.factors))], False),
                             Store(*nest.target, nest.added(total.total()))]
    [columns] = _loops([nest.column], sum_, vector=False)
    rows = Loop(nest.row, add_extents(nest.row.hi, 1), [columns], PRODUCT)
    return Kernel(name, nest.buffers, _loops([*nest.batch, *nest.blocks], [rows], vector=False))


def build_sum_of_row_products(name: str, value: Value, operands: Sequence[ArrayView], blocks: int = 1) -> Kernel:
    """The product of two matrices (no batch) as a sum over the rows of the second one, in a loop over blocks of rows."""
    nest = _MatmulNest(value, operands, term_blocks=blocks)
    term = Accumulate(nest.target, "add", operation("multiply", *nest.factors))
    terms = Loop(nest.step, add_extents(nest.step.hi, 1), _loops([nest.row, nest.column], [term], vector=False), PRODUCT)
    return Kernel(name, nest.buffers, [Fill(nest.out, const(0.0, value.dtype)), *_loops(nest.blocks, [terms], vector=False)])


class _MatmulNest:
    """The loop nest of a matrix product, its operands and its result.

    blocks: the outer loop, if its rows or terms are in blocks.
    """

    def __init__(self, value: Value, operands: Sequence[ArrayView], row_blocks: int = 1, term_blocks: int = 1) -> None:
        inputs, self.out = _buffers(value, OUTPUT, [view.base for view in operands])
        self.buffers = [*inputs, self.out]
        self.blocks: list[Index] = []
        *self.batch, self.row, self.column = _indices(value.shape, "i")
        self.step = Index(0, value.operands[0].shape[-1] - 1, "k")
        self.row, row = self._in_blocks(self.row, row_blocks)
        self.step, step = self._in_blocks(self.step, term_blocks)
        at, column = _extents(self.batch), self.column.extent()
        self.factors = [load(buffer, _place(view, (*at, *place)))
                        for buffer, view, place in zip(inputs, operands, [(row, step), (step, column)], strict=False)]
        self.starts = [load(buffer, _place(view, (*at, row, column))) for buffer, view in zip(inputs[2:], operands[2:], strict=True)]
        self.target = self.out, linear_offset(value.shape, (*at, row, column))

    def added(self, sum_: Scalar) -> Scalar:
        """An element of the product, plus that of the third operand if there is one."""
        return operation("add", *self.starts, sum_) if self.starts else sum_

    def _in_blocks(self, index: Index, count: int) -> tuple[Index, Extent]:
        """The index of a loop over one of `count` blocks, and its position among all iterations."""
        if count == 1:
            return index, index.extent()
        size = add_extents(index.hi, 1)
        assert isinstance(size, int) and size % count == 0
        block, inner = Index(0, count - 1, "b"), Index(0, size // count - 1, index.name)
        self.blocks.append(block)
        return inner, add_extents(scale_extent(block.extent(), size // count), inner.extent())


_BUILDERS: dict[Op, Callable[[str, Value], Built]] = {
    ops.scatter_add: _scatter("add"), ops.scatter_update: _scatter(None),
}
