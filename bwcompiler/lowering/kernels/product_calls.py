"""Loops of kind `product` as calls: of the tiles that compute matrix products, which are told where the matrices of this iteration lie."""

from __future__ import annotations

from collections.abc import Mapping

from bwcompiler.ir.extent import Extent, upper
from bwcompiler.ir.loop import Buffer, Kernel
from bwcompiler.ir.product_loop import LoopMatrix, LoopProduct
from bwcompiler.lowering.kernels.kept_sums import KeptSums
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from bwcompiler.lowering.loops.stage_products import is_staged
from bwcompiler.lowering.polls import leave_if_interrupted
from bwcompiler.lowering.products.call import POLL_WORK, WORDS, Shape, needs_of, symbol


class ProductCalls(KeptSums):
    """words: the memory in which products are told everything, once there is one."""

    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer], may_poll: bool) -> None:
        super().__init__(kernel, emit, merged, may_poll)
        self.product_words: str | None = None

    def call_product(self, found: LoopProduct) -> None:
        """The call, of the function that does not cut the product among threads; a long one looks for signals itself."""
        emit = self.emit
        if self.product_words is None:
            self.product_words = self.alloca("i64", len(WORDS))
        pointers = [self._first(matrix) for matrix in (found.a, found.b, found.c)]
        extents: list[Extent] = [found.rows, found.columns, found.terms]
        steps = [found.a.row, found.a.column, found.b.row, found.b.column, found.c.row]
        numbers = [*map(self.affine, extents), *map(str, (*steps, int(found.adds), int(is_staged(found)), 0))]
        for place, told in enumerate([*pointers, *[f"i64 {number}" for number in numbers]]):
            at = emit.put(f"getelementptr i64, ptr {self.product_words}, i64 {place}")
            emit.lines.append(f"  store {told}, ptr {at}")
        a, b, c = found.a, found.b, found.c
        shape = Shape(found.rows, found.columns, found.terms, (a.row, a.column), (b.row, b.column), c.row)
        dtype = c.buffer.dtype
        name = symbol(dtype, needs_of(shape, dtype, adds=found.adds, alone=True), alone=True)
        emit.declares[f"declare i32 @{name}(ptr)"] = None
        status = emit.put(f"call i32 @{name}(ptr {self.product_words})")
        if upper(found.rows) * upper(found.columns) * upper(found.terms) >= POLL_WORK:
            self.polls = True
            leave_if_interrupted(emit, status)
        self.forget(self.memory_of(found.c.buffer))

    def _first(self, matrix: LoopMatrix) -> str:
        return f"ptr {self.pointer(matrix.buffer, matrix.start).text}"
