"""Loops over elements whose iterations are independent become operations on arrays.

    loop j in lo..hi: c[i, j] = 2 * a[i, j] + x[j]          ->          c[i, lo:hi + 1] = 2 * a[i, lo:hi + 1] + x[lo:hi + 1]

The body is mapped over the index, as by `vmap`: an element a[i, j] becomes a slice, a number that depends on the index gets a leading
axis, the index itself becomes a range, products of a matrix with vectors become one product with a matrix.  Inner loops come first, so
that a nest becomes operations on matrices, which are fused, vectorised and run by threads, and whose derivative is that of array code.
Every element is computed by the same operations as before (products of matrices, and sums, have their own order).  An inner loop, such as
a sum over k, becomes a loop over arrays, if each iteration of the outer loop has only numbers.  Parts that slide over an array (`x[i:i +
3]`) become windows if a sum of products reads them: a convolution.

Iterations are independent if no other iteration writes the elements that one writes, and no later one reads them.  Two positions in an
array that the loop changes must be equal along an axis that moves with the index, or differ for all pairs of iterations.  Elements that
later iterations write may be read with their values from before the loop (`x[i] = x[i] + x[i + 1]`).  Arrays that the loop does not change
may be read anywhere (`y[i] = x[index[i]]`).  An array that it only adds to, or only writes to, may also be changed anywhere (`h[index[i]]
+= x[i]`): this becomes one scatter, which keeps the order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.declaration import Absent
from bwcompiler.ir.extent import Affine, Extent, Index, Section, add_extents, known_le, scale_extent, substitute, upper
from bwcompiler.ir.graph import Graph, inline, live_values
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.types import I64, tensor
from bwcompiler.passes.batching import batch_regions
from bwcompiler.passes.loops.dependence import are_apart_later, reach
from bwcompiler.passes.loops.region_bodies import mentions
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten, rebuilt

MAPPED = ("elementwise", "layout", "constant")
SCATTERS = (ops.scatter_add, ops.scatter_update)
MOST_READ = 1 << 22            # bytes of what sums of products read


def vectorize_loops(graph: Graph) -> Rewritten:
    """The graph with arrays in the places of loops; the same graph where there are none to replace."""
    return with_regions_replaced(graph, vectorize_loops,
                                 lambda value: _as_arrays(value) if value.op is ops.loop else None)


# ----- which loops
class _Access(NamedTuple):
    """A part of array `number` that an iteration reads or writes; before: reads before it writes anything to the array."""

    number: int
    section: Section
    writes: bool
    before: bool


def _is_parallel(loop: Value) -> bool:
    """Whether the iterations of a loop are independent, and its body can be mapped."""
    attrs, carried = loop.attrs, loop.attrs["carried"]
    body, lo, hi = attrs["body"], attrs["lo"], attrs["hi"]
    trips = _trips(lo, hi, attrs["step"])
    if not known_le(lo, add_extents(hi, 1)) or trips is None:
        return False
    changing = {body.inputs[k]: k for k in range(carried) if body.outputs[k] is not body.inputs[k]}
    found = _Accesses(body.index)
    found.entries.update(changing)
    versions = found.collect(body, changing, set(body.inputs))
    if versions is None or _is_large(body, trips) or any(versions.get(body.outputs[k]) != k for k in changing.values()):
        return False
    indices = {body.index, *found.inner}
    writes = [access for access in found.accesses if access.writes]
    if not found.may_be_scattered(attrs["step"]):
        return False
    return bool(writes or found.scattered) and all(_independent(write, other, body.index, indices) or (
        other.before and are_apart_later(write.section, other.section, body.index, attrs["step"], found.inner))
        for write in writes for other in found.accesses if other.number == write.number)


def _is_large(body: Graph, trips: Extent) -> bool:
    """Whether what sums of products read would be more than a cache holds, if it was stored for all iterations, as derivatives do."""
    read = [value.type.nbytes for value in _contracted(body) if value.op.kind == "layout" and value.op is not ops.broadcast]
    return bool(read) and max(read) * upper(trips) > MOST_READ


def _trips(lo: Extent, hi: Extent, step: int) -> Extent | None:
    """How many iterations there are; None where that is no extent."""
    length = add_extents(add_extents(hi, scale_extent(lo, -1)), 1)
    if isinstance(length, int):
        return -(-length // abs(step))
    return length if abs(step) == 1 else None


class _Accesses:
    """What an iteration of a loop over `index` reads and writes of the arrays that the loop changes.

    inner: indices of loops inside.  entries: arrays as they are at the beginning of an iteration.  scattered: what changes arrays anywhere,
    by their numbers.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self.accesses: list[_Access] = []
        self.scattered: dict[int, list[Value]] = {}
        self.inner: set[Index] = set()
        self.entries: set[Value] = set()
        self.elements = True
        self.varying: set[Value] = set()

    def collect(self, body: Graph, changing: Mapping[Value, int], arrays: AbstractSet[Value],
                may_write: bool = True) -> dict[Value, int] | None:
        """Versions of the arrays that change, with their numbers; None where the body cannot be mapped.

        arrays: those that are the same for all iterations, of which parts that move with the index may be read.
        """
        versions, fixed = dict(changing), set(arrays)
        contracted = _contracted(body)
        for value in body.body:
            if value.op is ops.slice and value.operands[0] in fixed:
                if not self._is_strip(value, value.attrs["sizes"]) and not (may_write and self._is_window(value, versions, contracted)):
                    return None
                self._note(versions, value, value.attrs["sizes"], False)
            elif value.op in ops.UPDATES and value.operands[0] in versions:
                if not may_write or value.operands[1] in versions or not self._is_strip(value, value.operands[1].shape):
                    return None
                if not mentions_index(value.attrs["starts"], self.index):       # no element, or each iteration writes the same ones
                    return None
                self._note(versions, value, value.operands[1].shape, True)
                versions[value] = versions[value.operands[0]]
                fixed.add(value)
            elif value.op in SCATTERS and may_write and value.operands[0] in versions and versions.keys().isdisjoint(value.operands[1:]):
                versions[value] = versions[value.operands[0]]
                self.scattered.setdefault(versions[value], []).append(value)
            elif any(operand in versions for operand in value.operands) and value.op is not ops.loop:
                return None
            elif value.op is ops.loop:
                if not self._collect_inside(value, versions, fixed):
                    return None
            elif value.op is not ops.item and not self._can_be_mapped(value) and not (may_write and (
                    self._is_product(value) or (value in contracted and not mentions(value, self.index)))):
                return None
            if self._varies(value):
                self.varying.add(value)
        return None if self.inner and not self.elements else versions

    def may_be_scattered(self, step: int) -> bool:
        """Whether what changes arrays anywhere does not depend on what other iterations did: it adds, or writes in order."""
        if any(access.number in self.scattered for access in self.accesses):
            return False
        return all(all(value.op is ops.scatter_add for value in found) or (len(found) == 1 and step > 0)
                   for found in self.scattered.values())

    def _collect_inside(self, loop: Value, versions: Mapping[Value, int], fixed: AbstractSet[Value]) -> bool:
        body, carried = loop.attrs["body"], loop.attrs["carried"]
        if any(operand in versions for operand in loop.operands[:carried]):
            return False
        if mentions_index((loop.attrs["lo"], loop.attrs["hi"]), self.index):
            return False
        self.inner.add(body.index)
        pairs = list(zip(body.inputs, loop.operands, strict=True))[carried:]
        self.entries.update([mine for mine, operand in pairs if operand in self.entries])
        inside = self.collect(body, {mine: versions[operand] for mine, operand in pairs if operand in versions},
                              {mine for mine, operand in pairs if operand in fixed}, False)
        return inside is not None

    def _can_be_mapped(self, value: Value) -> bool:
        if value.op in (ops.index_value, ops.normalize_index, ops.gather):     # of an array that the loop does not change
            return True
        known = value.op.batch is not None and not isinstance(value.op.batch, Absent)
        return value.op.kind in MAPPED and value.op.pure and not mentions(value, self.index) and (known or not value.operands)

    def _varies(self, value: Value) -> bool:
        return (value.op is ops.index_value or value.op in (ops.loop, ops.item) or not self.varying.isdisjoint(value.operands)
                or mentions_index(value.attrs.get("starts", ()), self.index))

    def _is_product(self, value: Value) -> bool:
        """Whether it is a product of a matrix, which is the same for all iterations, with a vector."""
        if value.op is not ops.matmul or value.rank != 2:
            return False
        x, y = [operand in self.varying for operand in value.operands]
        return (y and not x and value.shape[1] == 1) or (x and not y and value.shape[0] == 1)

    def _is_strip(self, value: Value, sizes: Sequence[Extent]) -> bool:
        """Whether a part moves with the index along one axis at most, along which it is one element."""
        starts = value.attrs["starts"]
        if mentions_index(sizes, self.index):
            return False
        axes = [axis for axis, start in enumerate(starts) if mentions_index((start,), self.index)]
        self.elements &= not axes or all(size == 1 for size in sizes)
        return not axes or (len(axes) == 1 and sizes[axes[0]] == 1)

    def _is_window(self, value: Value, versions: Mapping[Value, int], contracted: AbstractSet[Value]) -> bool:
        """Whether a part of an array that does not change slides along one axis, and nothing but a sum of products reads it."""
        starts, sizes, steps = value.attrs["starts"], value.attrs["sizes"], value.attrs["steps"]
        axes = [axis for axis, start in enumerate(starts) if mentions_index((start,), self.index)]
        if value.operands[0] in versions or value not in contracted or len(axes) != 1 or steps[axes[0]] != 1:
            return False
        if any(one.op is ops.windows for one in contracted):       # of two axes: memory for all windows, and moves of them
            return False
        self.elements = False
        known = isinstance(self.index.lo, int) and isinstance(self.index.hi, int) and all(isinstance(size, int) for size in sizes)
        return known and dict(starts[axes[0]].terms)[self.index] > 0

    def _note(self, versions: Mapping[Value, int], value: Value, sizes: Sequence[Extent], writes: bool) -> None:
        array = value.operands[0]
        if array in versions:
            section = Section(value.attrs["starts"], tuple(sizes), value.attrs["steps"])
            self.accesses.append(_Access(versions[array], section, writes, not writes and array in self.entries))


def _contracted(body: Graph) -> set[Value]:
    """Sums of products of what is moved about only, those products, and what is read by these alone: no array of all products is stored."""
    users: dict[Value, list[Value]] = {}
    for value in body.body:
        for operand in value.operands:
            users.setdefault(operand, []).append(value)
    found: set[Value] = set()
    for value in body.body:
        product = value.operands[0] if value.op is ops.sum else value
        if value.op is ops.sum and product.op is ops.multiply and len(users[product]) == 1 and value not in body.outputs:
            found |= {value, product}
    for value in reversed(body.body):
        if value.op.kind == "layout" and value not in body.outputs and all(user in found for user in users.get(value, ())):
            found.add(value)
    return {value for value in found if value.op is not ops.sum or all(_is_moved(operand) for operand in value.operands[0].operands)}


def _is_moved(value: Value) -> bool:
    """Whether it is an array, or a part of one, in some order."""
    while value.op.kind == "layout" and len(value.operands) == 1:
        value = value.operands[0]
    return value.op.kind == "input"


def mentions_index(extents: Sequence[Extent], index: Index) -> bool:
    """Whether one of them depends on an index."""
    return any(isinstance(extent, Affine) and any(term is index for term, _ in extent.terms) for extent in extents)


def _independent(one: _Access, other: _Access, index: Index, indices: AbstractSet[Index]) -> bool:
    """Whether two parts have nothing in common in different iterations."""
    return any(_same_strip(one.section, other.section, axis, index) or _apart(one.section, other.section, axis, indices)
               for axis in range(len(one.section.starts)))


def _same_strip(one: Section, other: Section, axis: int, index: Index) -> bool:
    """Whether both are one element along an axis, the same one in an iteration, and another one in each."""
    start = one.starts[axis]
    return start == other.starts[axis] and one.sizes[axis] == other.sizes[axis] == 1 and mentions_index((start,), index)


def _apart(one: Section, other: Section, axis: int, indices: AbstractSet[Index]) -> bool:
    """Whether one ends before the other begins, whatever the iterations."""
    (one_low, one_high), (other_low, other_high) = reach(one, axis, indices), reach(other, axis, indices)
    return bool(known_le(add_extents(one_high, 1), other_low) or known_le(add_extents(other_high, 1), one_low))


# ----- arrays
def _as_arrays(loop: Value) -> list[Value] | None:
    """The results of a loop, computed for all its iterations at once, in the current record; None where that cannot be."""
    loop = loop.with_regions(_with_scattered_sums)
    if not _is_parallel(loop):
        return None
    attrs = loop.attrs
    body = attrs["body"]
    size = _trips(attrs["lo"], attrs["hi"], attrs["step"])
    assert size is not None
    mapped, has_axis = _Mapped(body.index, attrs["lo"], abs(attrs["step"])).batch(body, [False] * len(body.inputs), size)
    assert not any(has_axis)
    return inline(mapped, loop.operands)


def _with_scattered_sums(body: Graph) -> Graph:
    """A body in which an element that is added to is not read: `h[j] = h[j] + x` is a scatter_add of x."""
    once = body.read_once()
    mapping: dict[Value, Value] = {}
    record = Record()
    with record:
        for value in body.body:
            record.source, record.forward = value.source, value.forward
            copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
            added = _added(value, once) if value.op is ops.scatter_update else None
            if added is not None:
                term = mapping.get(added[0], added[0])
                array, _, *indices = copy.operands
                mapping[value] = ops.scatter_add(array, ops.negative(term) if added[1] else term, *indices, **value.attrs)
                continue
            if copy is not value:
                mapping[value] = copy
            record.values.append(copy)
    return rebuilt(body, record.values, mapping)


def _added(update: Value, once: AbstractSet[Value]) -> tuple[Value, bool] | None:
    """What an update of one element adds to it, and whether that is subtracted; None where it does something else."""
    array, total, *indices = update.operands
    if total.op not in (ops.add, ops.subtract) or total not in once or any(index.rank for index in indices):
        return None
    for old, term in (total.operands, total.operands[::-1])[:1 if total.op is ops.subtract else 2]:
        if old.op is ops.gather and old in once and old.operands[0] is array and old.attrs == update.attrs and all(
                _is_same_index(one, other) for one, other in zip(old.operands[1:], indices, strict=True)):
            return term, total.op is ops.subtract
    return None


def _is_same_index(one: Value, other: Value) -> bool:
    return one is other or (one.op is other.op is ops.normalize_index and one.operands == other.operands and one.attrs == other.attrs)


class _Mapped:
    """Bodies mapped over an index that takes lo, lo + step, ..."""

    def __init__(self, index: Index, lo: Extent, step: int) -> None:
        self.index = index
        self.lo = lo
        self.step = step
        self.mapping = batch_regions.Mapping(lambda graph, flags, size, _: self.batch(graph, flags, size), last=False)

    def _loop(self, value: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent) -> tuple[Value, list[bool]]:
        """A loop inside, mapped: what is in its body may move with the index."""
        carried = value.attrs["carried"]
        varies, body = self.mapping.body(value.attrs["body"], carried, flags, size)
        given = self.mapping.all_repeated(operands, flags, varies, size)
        return ops.loop(*given, **{**value.attrs, "body": body}), varies[:carried]

    def batch(self, graph: Graph, flags: Sequence[bool], size: Extent) -> tuple[Graph, list[bool]]:
        """The graph with inputs that have a leading axis where they are flagged, and which of its outputs have it."""
        mapping: dict[Value, Value] = {}
        for value, flag in zip(graph.inputs, flags, strict=True):
            mapping[value] = input_value(tensor(value.dtype, (size, *value.shape)), value.name, value.source) if flag else value
        mapped = {value for value, flag in zip(graph.inputs, flags, strict=True) if flag}
        loops: dict[Value, list[bool]] = {}
        record = Record()
        with record:
            for value in graph.body:
                record.source, record.forward = value.source, value.forward
                operands = [mapping[operand] for operand in value.operands]
                if value.op is ops.item and value.operands[0] in loops:
                    made, flag = ops.item(operands[0], index=value.attrs["index"]), loops[value.operands[0]][value.attrs["index"]]
                elif value.op is ops.loop:
                    made, loops[value] = self._loop(value, operands, [operand in mapped for operand in value.operands], size)
                    flag = False
                elif value.op is ops.index_value or mentions_index(value.attrs.get("starts", ()), self.index):
                    made, flag = self._moving(value, operands, [operand in mapped for operand in value.operands], size)
                elif value.op in SCATTERS and value.operands[0] not in mapped:
                    made, flag = self._scatter(value, operands, [operand in mapped for operand in value.operands], size), False
                elif value.op is ops.matmul and not mapped.isdisjoint(value.operands):
                    made, flag = _products(operands, value.operands[0] in mapped, size), True
                elif flag := not mapped.isdisjoint(value.operands):
                    assert callable(value.op.batch)
                    made = value.op.batch(operands, [operand in mapped for operand in value.operands], size, **value.attrs)
                else:
                    made = value.with_operands(tuple(operands))
                    record.values.append(made)
                if made.name is None:
                    made.name = value.name
                mapping[value] = made
                if flag:
                    mapped.add(value)
        outputs = [mapping[output] for output in graph.outputs]
        index = None if graph.index is self.index else graph.index
        made_graph = Graph(graph.name, [mapping[value] for value in graph.inputs], live_values(record.values, outputs), outputs, index)
        return made_graph, [output in mapped for output in graph.outputs]

    def _moving(self, value: Value, operands: list[Value], flags: list[bool], size: Extent) -> tuple[Value, bool]:
        """What stands for a part that moves with the index, or for a number made of it, and whether it has the leading axis."""
        if value.op is ops.index_value:
            return self._index_value(value.attrs["extent"], size)
        if value.op is ops.slice:
            return self._slice(value.attrs, operands[0], size), True
        return self._update(value, operands, flags[1], size), False

    def _strip(self, starts: Sequence[Extent], steps: Sequence[int]) -> tuple[int, tuple[Extent, ...], tuple[int, ...]]:
        """The axis along which a part moves with the index, and where all the parts begin, with their steps."""
        axis = next(axis for axis, start in enumerate(starts) if mentions_index((start,), self.index))
        start = starts[axis]
        assert isinstance(start, Affine)
        factor = dict(start.terms)[self.index] * self.step
        first = substitute(start, {self.index: self.lo})
        return axis, (*starts[:axis], first, *starts[axis + 1:]), (*steps[:axis], factor, *steps[axis + 1:])

    def _slice(self, attrs: Mapping[str, Any], array: Value, size: Extent) -> Value:
        """All parts: the axis along which they move becomes the leading one."""
        sizes = attrs["sizes"]
        axis, starts, steps = self._strip(attrs["starts"], attrs["steps"])
        if sizes[axis] != 1:
            return _windows(array, axis, starts, sizes, steps, size)
        found = ops.slice(array, starts=starts, sizes=(*sizes[:axis], size, *sizes[axis + 1:]), steps=steps)
        order = (axis, *[k for k in range(array.rank) if k != axis])
        if any(sizes[k] != 1 for k in range(axis)):
            found = ops.transpose(found, axes=order)
        return ops.reshape(found, shape=(size, *sizes))

    def _update(self, value: Value, operands: list[Value], flag: bool, size: Extent) -> Value:
        """All parts written: the leading axis becomes the one along which they move."""
        array, part = operands[0], self.mapping.repeated(operands[1], flag, size)
        sizes = value.operands[1].shape
        axis, starts, steps = self._strip(value.attrs["starts"], value.attrs["steps"])
        others = [sizes[k] for k in range(array.rank) if k != axis]
        if any(sizes[k] != 1 for k in range(axis)):
            part = ops.transpose(ops.reshape(part, shape=(size, *others)), axes=(*range(1, axis + 1), 0, *range(axis + 1, array.rank)))
        else:
            part = ops.reshape(part, shape=(*sizes[:axis], size, *sizes[axis + 1:]))
        return value.op(array, part, starts=starts, steps=steps)

    def _scatter(self, value: Value, operands: list[Value], flags: list[bool], size: Extent) -> Value:
        """All that is scattered, the first iteration first."""
        array, *rest = operands
        return value.op(array, *[self.mapping.repeated(one, flag, size) for one, flag in zip(rest, flags[1:], strict=True)], **value.attrs)

    def _index_value(self, extent: Extent, size: Extent) -> tuple[Value, bool]:
        if not mentions_index((extent,), self.index):
            return ops.index_value(extent=extent), False
        assert isinstance(extent, Affine)
        factor = dict(extent.terms)[self.index] * self.step
        count = ops.iota(shape=(size,), axis=0, dtype=I64)
        if factor != 1:
            count = ops.multiply(count, ops.full(value=factor, shape=(size,), dtype=I64))
        first = substitute(extent, {self.index: self.lo})
        if isinstance(first, int):
            begin = ops.full(value=first, shape=(size,), dtype=I64)
        else:
            begin = ops.broadcast(ops.index_value(extent=first), shape=(size,), axes=())
        return ops.add(begin, count), True


def _windows(array: Value, axis: int, starts: tuple[Extent, ...], sizes: tuple[Any, ...], steps: tuple[int, ...], size: Any) -> Value:
    """The parts that slide along an axis, by steps[axis], with a leading axis for them."""
    rank, stride = array.rank, steps[axis]
    length = (size - 1) * stride + sizes[axis]
    whole = ops.slice(array, starts=starts, sizes=(*sizes[:axis], length, *sizes[axis + 1:]), steps=(*steps[:axis], 1, *steps[axis + 1:]))
    others = [k for k in range(rank) if k != axis]
    found = ops.windows(ops.transpose(whole, axes=(*others, axis)), sizes=(sizes[axis],), strides=(stride,), low=(0,), high=(0,),
                        dilations=(1,))
    return ops.transpose(found, axes=(rank - 1, *[rank if k == axis else others.index(k) for k in range(rank)]))


def _products(operands: Sequence[Value], left: bool, size: Extent) -> Value:
    """The products of a matrix with vectors, those on the left or those on the right of it, as one product of matrices."""
    x, y = operands
    if left:
        return ops.reshape(ops.matmul(ops.reshape(x, shape=(size, x.shape[2])), y), shape=(size, 1, y.shape[1]))
    columns = ops.transpose(ops.reshape(y, shape=(size, y.shape[1])), axes=(1, 0))
    return ops.reshape(ops.transpose(ops.matmul(x, columns), axes=(1, 0)), shape=(size, x.shape[0], 1))
