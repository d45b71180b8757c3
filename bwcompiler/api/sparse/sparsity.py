"""Which elements of outputs depend on which elements of an argument: index sets, propagated through the graph.

The sets of a value are the rows of a sparse boolean matrix, elements by argument elements.  Ops that move elements move rows: they are
run on the numbers of the elements.  All other ops join rows: element by element, along axes, or over whole matrices.  For branches and
`where` the sets are the unions over all choices.  Indices are known if they depend only on integer arguments and outside arrays
(`Pattern.depends`); others may point anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import lazy, ops
from bwcompiler.errors import UnsupportedError, at
from bwcompiler.ir.declaration import NotDifferentiable
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.graph_interpreter import concrete_attributes
from bwcompiler.ir.types import TupleType

sparse = lazy.module("scipy.sparse")

LIMIT = 200_000_000            # most entries of one matrix; with more, a dense Jacobian would not fit either

Sets = Any                     # a boolean csr_array, or None: no element depends on the argument
Environment = Mapping[Index, int]
MOVES = (ops.broadcast, ops.transpose, ops.reshape, ops.flip, ops.slice, ops.slice_update, ops.concatenate, ops.pad, ops.barrier,
         ops.windows, ops.gather, ops.scatter_update)
ADDS = (ops.slice_add, ops.scatter_add, ops.windows_add)
INDEXED = {ops.gather: 1, ops.scatter_update: 2, ops.scatter_add: 2}      # the first index operand


class Pattern(NamedTuple):
    """sets: per output a matrix, its elements by those of the argument.  depends: numbers of the inputs whose contents matter."""

    sets: list[Sets]
    depends: frozenset[int]


def pattern_of(graph: Graph, wrt: int, arrays: Sequence[Any]) -> Pattern:
    """The sets of a graph's outputs for the elements of input `wrt`; `arrays` are the contents of all inputs."""
    argument = graph.inputs[wrt]
    contents = {value: (np.asarray(array), frozenset([k])) for k, (value, array) in enumerate(zip(graph.inputs, arrays, strict=True))
                if value.dtype.kind in "biu"}
    size = argument.type.size
    walk = _Walk(size, len(graph.inputs) - graph.captured)
    identity = sparse.eye_array(size, dtype=bool, format="csr")
    found = walk.graph(graph, {argument: identity}, contents, {})
    return Pattern(found, frozenset(walk.depends))


Known = dict[Value, tuple[Any, frozenset[int]]]    # a value -> its contents, and the inputs that these depend on


class _Walk:
    """columns: number of elements of the argument.  explicit: number of inputs that are arguments; the others come from outside."""

    def __init__(self, columns: int, explicit: int) -> None:
        self.columns = columns
        self.explicit = explicit
        self.depends: set[int] = set()

    def graph(self, graph: Graph, sets: dict[Value, Sets], known: Known, environment: Environment) -> list[Sets]:
        """The sets of the outputs, from those of inputs."""
        sets = dict(sets)
        for value in graph.body:
            if value.op is ops.item:
                of_all = sets.get(value.operands[0])
                sets[value] = None if of_all is None else of_all[value.attrs["index"]]
                continue
            operands = [sets.get(operand) for operand in value.operands]
            if any(one is not None for one in operands) and not isinstance(value.op.vjp, NotDifferentiable):
                sets[value] = self.value(value, operands, known, environment)
        return [sets.get(output) for output in graph.outputs]

    def value(self, value: Value, operands: list[Sets], known: Known, environment: Environment) -> Any:
        """The sets of one value (of several results, a list), from those of its operands."""
        if not isinstance(value.type, TupleType) and not value.dtype.is_differentiable:
            return None
        op, attrs = value.op, concrete_attributes(value, environment)
        if op.kind == "region":
            return self.region(value, operands, known, environment)
        shapes = [operand.shape for operand in value.operands]
        if op in INDEXED:
            first = INDEXED[op]
            indices = [self.contents(operand, known, environment) for operand in value.operands[first:]]
            if any(index is None for index in indices):
                return self.anywhere(value, operands, first)
            return self.indexed(value, operands, attrs, indices, first)
        if op in MOVES:
            return self.moved(value, operands, attrs)
        if op in ADDS:
            return self.added(value, operands, attrs)
        if op is ops.select:
            return self.chosen(value, operands, known, environment)
        if op.kind == "elementwise" or (all(shape == value.shape for shape in shapes) and op.kind == "library" and op in _BY_ELEMENT):
            return self.union(operands)
        if op.kind == "reduction":
            return self.grouped(operands[0], _along(shapes[0], attrs["axes"]), value.type.size)
        if op.kind == "scan":
            return self.scanned(value, operands[0], attrs)
        if op is ops.matmul:
            return self.product(value, operands)
        if op.kind == "library" and "axis" in attrs:                   # sort, Fourier transforms
            return self.lanes(value, operands[0], attrs["axis"])
        return self.blocks(value, operands, len(attrs["batch"]) if op is ops.callback else _batch_rank(value))

    # ----- indices
    def contents(self, value: Value, known: Known, environment: Environment) -> Any:
        """The contents of an integer value; None if they depend on floating-point arguments."""
        found = self._contents(value, known, environment)
        if found is None:
            return None
        self.depends |= found[1]
        return found[0]

    def _contents(self, value: Value, known: Known, environment: Environment) -> tuple[Any, frozenset[int]] | None:
        if value in known:
            return known[value]
        if value.op.kind in ("input", "region", "item") or value.op is ops.callback:
            return None
        operands = [self._contents(operand, known, environment) for operand in value.operands]
        if any(operand is None for operand in operands):
            return None
        present = [operand for operand in operands if operand is not None]
        with np.errstate(all="ignore"):
            array = np.asarray(value.op.reference(*[array for array, _ in present], **concrete_attributes(value, environment)))
        known[value] = array, frozenset().union(*[depends for _, depends in present])
        return known[value]

    def indexed(self, value: Value, operands: list[Sets], attrs: Any, indices: Sequence[Any], first: int) -> Sets:
        if value.op is ops.scatter_add:
            numbers = np.arange(value.type.size).reshape(value.shape)
            target = ops.gather.reference(numbers, *indices, **attrs)
            return self.union([operands[0], self.placed(operands[1], target, value)])
        return self.moved(value, operands[:first], attrs, indices)

    def anywhere(self, value: Value, operands: list[Sets], first: int) -> Sets:
        """Unknown indices: every result element may be any element along the indexed axes (here, of the whole array)."""
        return self.blocks(value, operands[:first], 0)

    # ----- rows that move
    def moved(self, value: Value, operands: list[Sets], attrs: Any, indices: Sequence[Any] = ()) -> Sets:
        """The op applied to the numbers of elements; 0 stands for an element without source."""
        numbers, offset = [], 1
        for operand in value.operands[:len(operands)]:
            numbers.append(np.arange(offset, offset + operand.type.size).reshape(operand.shape))
            offset += operand.type.size
        if value.op is ops.pad:
            attrs = {**attrs, "value": 0}
        source = np.asarray(value.op.reference(*numbers, *indices, **attrs)).ravel()
        rows = [sparse.csr_array((1, self.columns), dtype=bool)]
        rows += [sparse.csr_array((operand.type.size, self.columns), dtype=bool) if one is None else one
                 for operand, one in zip(value.operands, operands, strict=False)]
        return sparse.vstack(rows, format="csr")[source]

    def added(self, value: Value, operands: list[Sets], attrs: Any) -> Sets:
        numbers = np.arange(value.type.size).reshape(value.shape)
        if value.op is ops.slice_add:
            target = ops.slice.reference(numbers, starts=attrs["starts"], sizes=value.operands[1].shape, steps=attrs["steps"])
            return self.union([operands[0], self.placed(operands[1], target, value)])
        windows = {name: attrs[name] for name in ("sizes", "strides", "low", "high", "dilations")}
        return self.placed(operands[0], ops.windows.reference(numbers + 1, **windows) - 1, value)

    def placed(self, sets: Sets, target: Any, value: Value) -> Sets:
        """Rows joined into those numbered `target`; -1 is nowhere."""
        if sets is None:
            return None
        target = np.asarray(target).ravel()
        inside = target >= 0
        return self.grouped(sets[np.flatnonzero(inside)], target[inside], value.type.size)

    def chosen(self, value: Value, operands: list[Sets], known: Known, environment: Environment) -> Sets:
        """The rows of the selected elements if the condition depends on no argument; else the union, as arguments change between calls."""
        found = self._contents(value.operands[0], known, environment)
        if found is None or any(number < self.explicit for number in found[1]):
            return self.union(operands)
        self.depends |= found[1]
        condition = np.ravel(found[0])
        return self.union([None if sets is None else self.kept(sets, np.flatnonzero(where))
                           for sets, where in ((operands[1], condition), (operands[2], ~condition))])

    def kept(self, sets: Sets, rows: Any) -> Sets:
        """These rows at their positions; all others empty."""
        return self.grouped(sets[rows], rows, sets.shape[0])

    # ----- rows that join
    def union(self, operands: Sequence[Sets]) -> Sets:
        total = None
        for one in operands:
            if one is not None:
                total = one if total is None else total + one
        return total

    def grouped(self, sets: Sets, group: Any, count: int) -> Sets:
        """Row g of the result joins the rows whose group is g."""
        if sets is None:
            return None
        group = np.asarray(group).ravel()
        chosen = sparse.csr_array((np.ones(group.size, bool), (group, np.arange(group.size))), shape=(count, group.size))
        found = chosen @ sets
        self.check(found.nnz)
        return found

    def check(self, entries: int) -> None:
        if entries > LIMIT:
            raise UnsupportedError(f"the derivative has more than {LIMIT:,} elements that may differ from zero\n"
                                   "  hint: bw.jacobian, or products (bw.jvp, bw.vjp, bw.hvp)")

    def product(self, value: Value, operands: list[Sets]) -> Sets:
        a, b = value.operands
        found: list[Sets] = []
        for operand, sets, axis in ((a, operands[0], a.rank - 1), (b, operands[1], b.rank - 2)):
            kept = operand.shape[:axis] + operand.shape[axis + 1:]
            lines = self.grouped(sets, _along(operand.shape, (axis,)), math.prod(kept))
            if lines is None:
                found.append(None)
                continue
            numbers = np.expand_dims(np.arange(math.prod(kept)).reshape(kept), axis)
            found.append(lines[np.broadcast_to(numbers, value.shape).ravel()])
        return self.union(found)

    def scanned(self, value: Value, sets: Sets, attrs: Any) -> Sets:
        axis, n = attrs["axis"], value.shape[attrs["axis"]]
        if not value.type.size:
            return sets
        numbers = np.moveaxis(np.arange(value.type.size).reshape(value.shape), axis, -1).reshape(-1, n)
        self.check(len(numbers) * n * (n + 1) // 2)
        out, source = np.tril_indices(n) if not attrs["reverse"] else np.triu_indices(n)
        chosen = sparse.csr_array((np.ones(len(numbers) * out.size, bool), (numbers[:, out].ravel(), numbers[:, source].ravel())),
                                  shape=(value.type.size, value.type.size))
        found = chosen @ sets
        self.check(found.nnz)
        return found

    def lanes(self, value: Value, sets: Sets, axis: int) -> Sets:
        """Every element depends on all of its lane along an axis, which may have another length than the result's."""
        given = value.operands[0].shape
        lanes = math.prod(given[:axis]) * math.prod(given[axis + 1:])
        return self.grouped(sets, _along(given, (axis,)), lanes)[_along(value.shape, (axis,)).ravel()]

    def blocks(self, value: Value, operands: Sequence[Sets], batch: int) -> Sets:
        """Every element depends on all elements of the operands, with the same index along the first `batch` axes."""
        count = math.prod(value.shape[:batch])
        found = [self.grouped(sets, np.repeat(np.arange(count), operand.type.size // max(count, 1)), count)
                 for operand, sets in zip(value.operands, operands, strict=False)]
        together = self.union(found)
        if together is None:
            return None
        self.check(together.nnz * (value.type.size // max(count, 1)))
        return together[np.repeat(np.arange(count), value.type.size // max(count, 1))]

    # ----- regions
    def region(self, value: Value, operands: list[Sets], known: Known, environment: Environment) -> Any:
        op, attrs = value.op, value.attrs
        contents = [self._contents(operand, known, environment) for operand in value.operands]
        if op in (ops.custom_call, ops.checkpoint):
            return self.inside(attrs["body"], operands, contents, environment)
        if op is ops.custom_link:
            return operands[attrs["primals"]:attrs["primals"] + attrs["outputs"]]
        if op is ops.cond:
            branches = [self.inside(attrs[name], operands[1:], contents[1:], environment) for name in ("then_branch", "else_branch")]
            return [self.union(pair) for pair in zip(*branches, strict=True)]
        if op not in ops.LOOPS:
            raise UnsupportedError(at(value.source, f"the sparsity pattern of {op.name} is not known"))
        carried = attrs["carried"]
        state, rest = list(operands[:carried]), operands[carried:]
        fixed = [None] * carried + contents[carried:]
        if op is ops.loop:
            indices = concrete_attributes(value, environment)
            for index in loop_numbers(indices["lo"], indices["hi"], indices["step"]):
                state = self.inside(attrs["body"], [*state, *rest], fixed, {**environment, attrs["body"].index: index})
            return state
        while True:
            following = self.inside(attrs["body"], [*state, *rest], fixed, environment)
            joined = [self.union(pair) for pair in zip(state, following, strict=True)]
            if all((a is None and b is None) or (a is not None and b is not None and a.nnz == b.nnz)
                   for a, b in zip(joined, state, strict=True)):
                return joined
            state = joined

    def inside(self, body: Graph, operands: Sequence[Sets], contents: Sequence[Any], environment: Environment) -> list[Sets]:
        known = {value: found for value, found in zip(body.inputs, contents, strict=True) if found is not None}
        sets = {value: one for value, one in zip(body.inputs, operands, strict=True) if one is not None}
        return self.graph(body, sets, known, environment)


_BY_ELEMENT = (ops.nextafter, ops.spacing)


def loop_numbers(lo: int, hi: int, step: int) -> range:
    """The numbers of a loop's index, in order."""
    forward = range(lo, hi + 1, abs(step))
    return forward if step > 0 else forward[::-1]


def _along(shape: Any, axes: Sequence[int]) -> Any:
    """Per element the number of the element that it contributes to when the axes are reduced."""
    kept = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    return np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape)


def _batch_rank(value: Value) -> int:
    """The number of batch axes of a library op: those before matrices; all for functions of numbers; 0 if it is not known."""
    shapes = [operand.shape for operand in value.operands]
    if value.op.core_rank:
        return len(shapes[0]) - value.op.core_rank
    if value.op is ops.special_function and all(shape == shapes[0] for shape in shapes) and value.shape[:len(shapes[0])] == shapes[0]:
        return len(shapes[0])
    return 0
