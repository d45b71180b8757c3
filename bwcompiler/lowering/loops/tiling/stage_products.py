"""`stage_products`: packs matrices that several products of rows share once, transposed and padded.

    for b in 0..400                          for k in 0..16
      for i in 0..250 product                  for j in 0..16
        .. %x[250*b + i, k] * %w[j, k]   ->      store %w.staged[24*k + j], %w[j, k]
                                             for b in 0..400
                                               for i in 0..250 product
                                                 .. %x[250*b + i, k] * %w.staged[24*k + j]

A product packs the operand that it reads repeatedly; many products of a few rows each would pack the same matrix many times.  The packed
rows are an odd number of cache lines apart, so that a column uses all sets of a cache, and vectors may read beyond the end of a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, scale_extent
from bwcompiler.ir.loop import INPUT, SCRATCH, Accumulate, Buffer, Fill, Kernel, Loop, Offset, Statement, Store, load
from bwcompiler.ir.product_loop import PRODUCT, LoopMatrix, LoopProduct, product_of
from bwcompiler.ir.scalar import const, operation
from bwcompiler.ir.texts.graph_printer import TakenNames
from bwcompiler.lowering.loops.tiling.tiles import LINE_BYTES

MOST_BYTES = 1 << 19           # most bytes of a packed matrix: it should stay in the L2 cache
VECTORS = 2 * LINE_BYTES       # most bytes of a row of a tile, on any target


def stage_products(kernel: Kernel) -> Kernel:
    """The kernel with such matrices packed; the kernel itself if there are none."""
    made = _Staging(kernel)
    body = made.statements(kernel.body, [])
    return Kernel(kernel.name, [*kernel.buffers, *made.staged.values()], [*made.before, *body], kernel.words) if made.staged else kernel


def is_staged(product: LoopProduct) -> bool:
    """Whether the second matrix is packed, so that tiles can read it in place."""
    b, size = product.b, product.b.buffer.dtype.itemsize
    if not isinstance(product.terms, int) or not isinstance(product.columns, int):
        return False
    if b.buffer.role != SCRATCH or b.column != 1 or b.start != 0:
        return False
    lines, rest = divmod(b.row * size, LINE_BYTES)
    end = (product.terms - 1) * b.row * size + -(-product.columns * size // VECTORS) * VECTORS
    return rest == 0 and lines % 2 == 1 and end <= b.buffer.size * size


class _Staging:
    """before: the statements that pack matrices; staged: the packed buffers, by the matrices' places."""

    def __init__(self, kernel: Kernel) -> None:
        self.taken = TakenNames([buffer.name for buffer in kernel.buffers])
        self.before: list[Statement] = []
        self.staged: dict[tuple[LoopMatrix, int, int], Buffer] = {}

    def statements(self, body: Sequence[Statement], around: Sequence[Loop]) -> list[Statement]:
        return [self._loop(statement, around) if isinstance(statement, Loop) else statement for statement in body]

    def _loop(self, loop: Loop, around: Sequence[Loop]) -> Loop:
        if loop.kind != PRODUCT:
            body = self.statements(loop.body, [*around, loop])
            same = all(new is old for new, old in zip(body, loop.body, strict=True))
            return loop if same else Loop(loop.index, loop.extent, body, loop.kind)
        product = product_of(loop)
        if product is not None and around and _is_common(product, around):
            _read_from(loop, self._put_ready(product))
        return loop

    def _put_ready(self, product: LoopProduct) -> Buffer:
        assert isinstance(product.terms, int) and isinstance(product.columns, int)
        b, terms, columns = product.b, product.terms, product.columns
        found = self.staged.get((b, terms, columns))
        if found is None:
            pitch = _pitch(columns, b.buffer.dtype.itemsize)
            size = terms * pitch + VECTORS // b.buffer.dtype.itemsize
            found = self.staged[b, terms, columns] = Buffer(self.taken.new(f"{b.buffer.name}.staged"), b.buffer.dtype, (size,), SCRATCH)
            k, j = Index(0, terms - 1, "k"), Index(0, columns - 1, "j")
            here = add_extents(add_extents(b.start, scale_extent(k.extent(), b.row)), scale_extent(j.extent(), b.column))
            store = Store(found, Offset(add_extents(scale_extent(k.extent(), pitch), j.extent())), load(b.buffer, Offset(here)))
            self.before += [Fill(found, const(0.0, found.dtype)), Loop(k, terms, [Loop(j, columns, [store], "vector")])]
        return found


def _is_common(product: LoopProduct, around: Sequence[Loop]) -> bool:
    """Whether all iterations of the enclosing loops read the same second matrix, and it is small enough."""
    b = product.b
    if product.adds or b.buffer.role != INPUT or not isinstance(product.terms, int) or not isinstance(product.columns, int):
        return False
    moving = {index for index, _ in b.start.terms} if isinstance(b.start, Affine) else set()
    size = b.buffer.dtype.itemsize
    return product.terms * _pitch(product.columns, size) * size <= MOST_BYTES and moving.isdisjoint([loop.index for loop in around])


def _pitch(columns: int, size: int) -> int:
    """The row stride in elements: an odd number of lines."""
    side = LINE_BYTES // size
    return (-(-columns // side) | 1) * side


def _read_from(rows: Loop, staged: Buffer) -> None:
    """Make a product of rows read the packed matrix; changes the loops in place."""
    [columns] = rows.body
    assert isinstance(columns, Loop)
    terms = columns.body[1]
    assert isinstance(terms, Loop)
    [term] = terms.body
    assert isinstance(term, Accumulate) and isinstance(terms.extent, int) and isinstance(columns.extent, int)
    pitch = _pitch(columns.extent, staged.dtype.itemsize)
    place: Extent = add_extents(scale_extent(terms.index.extent(), pitch), columns.index.extent())
    term.value = operation("multiply", term.value.args[0], load(staged, Offset(place)))
