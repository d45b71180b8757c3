"""Fused steps -> lowered steps: a kernel; a library call, check or callback of one value; or a loop or branch with its bodies."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.access import ArrayView, root
from bwcompiler.ir.contracts.fusion import Call, FusedProgram, FusionGroup, starts_filled
from bwcompiler.ir.contracts.memory import ALIGNMENT, MemoryPlan, StepUse, Update
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.loop import UPDATED, Kernel
from bwcompiler.ir.op import Value, is_constant
from bwcompiler.ir.products import is_written_out
from bwcompiler.ir.types import F32, F64
from bwcompiler.lowering.kernels.emitter.kernel_pointers import free_indices
from bwcompiler.lowering.libraries.matrix_products import is_called, is_long_sum
from bwcompiler.lowering.loops.building.call_kernels import (
    build_call_kernel,
    build_matmul,
    build_row_products,
    build_sum_of_row_products,
    has_call_kernel,
)
from bwcompiler.lowering.loops.building.group_shapes import Shape, WordValue, build_shared_kernel, shape_of
from bwcompiler.lowering.loops.complex.split_complex import split_complex

MOST_COMMON = 1 << 14          # most elements of the operand (or result) that all rows of a product share; else memory-bound


@dataclass
class LoweredStep(StepUse):
    """One step of the program: a kernel with the owners of its parameters, or a library call, check or callback of one value.

    position  of the fused step; joined: positions of further steps whose loops are part of its kernel.
    words     the values of the kernel's words (scalar parameters).  is_complex: whether it computes with complex numbers.
    bodies    of a loop or branch; `items` are its results.
    fills     the items that are filled with one number at the start.
    """

    position: int = 0
    joined: tuple[int, ...] = ()
    kernel: Kernel | None = None
    owners: Sequence[Value | None] = ()
    words: Sequence[WordValue] = ()
    is_complex: bool = False
    value: Value | None = None
    operands: tuple[ArrayView, ...] = ()
    bodies: tuple[LoweredBody, ...] = ()
    items: tuple[Value, ...] = ()
    fills: tuple[tuple[Value, Any], ...] = ()

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of all fused steps that this one runs."""
        return (self.position, *self.joined)


@dataclass
class LoweredBody:
    """A graph as steps, with its memory: a program, or the body of a loop or branch.

    into     per result: the input whose memory it is written to; equal for both branches of a `cond`.
    swapped  for the body of a loop: the states that need double buffering, because the body still reads the old state while it
             writes the next one.
    """

    graph: Graph
    steps: Sequence[LoweredStep]
    plan: MemoryPlan
    into: tuple[int | None, ...] = ()
    swapped: tuple[int, ...] = ()


Bodies = Mapping[Value, tuple[LoweredBody, ...]]


def lower_steps(fused: FusedProgram, bodies: Bodies = MappingProxyType({}), prefix: str = "") -> list[LoweredStep]:
    """The lowered steps: loop trees of groups; for calls the arrays that they read and write, and their scratch.

    bodies: of the loops and branches; prefix: of kernel names.
    """
    groups = _lower_groups(fused, prefix)
    items = _items(fused)
    known: dict[Hashable, CallKernel] = {}
    steps: list[LoweredStep] = []
    for step in fused.steps:
        if isinstance(step, Call):
            value = step.value
            if value in bodies:
                lowered = _lower_region(value, bodies[value], items.get(value, {}))
            else:
                lowered = _lower_call(f"{prefix}k{step.position}", step, known)
            lowered.position = step.position
        else:
            lowered = groups[step.position]
            if lowered.kernel is None or not lowered.kernel.buffers:       # all its members were recomputed by their readers
                continue
        steps.append(lowered)
    return steps


def _items(fused: FusedProgram) -> dict[Value, dict[int, Value]]:
    """Per loop or branch the results that are read, by number."""
    found: dict[Value, dict[int, Value]] = {}
    for value in fused.step_of:
        if value.op is ops.item:
            found.setdefault(value.operands[0], {})[value.attrs["index"]] = value
    return found


def _lower_region(value: Value, bodies: tuple[LoweredBody, ...], read: Mapping[int, Value]) -> LoweredStep:
    """The step of a loop or branch, with its updates: results of a loop start as the operands that it carries, results of a `cond` as the
    operands that its branches update in place; other results are written by the branch that runs."""
    types = value.type.items
    items = [read.get(number) or Value(ops.item, (value,), {"index": number}, type_) for number, type_ in enumerate(types)]
    filled = {number for number in range(len(value.operands)) if starts_filled(value, number)}
    operands = [root(operand) for operand in value.operands]
    memory = max(body.plan.arena_bytes for body in bodies)
    scratch = [memory + ALIGNMENT if value.op is ops.while_loop else memory]
    updates = []
    for number, item in enumerate(items):
        start = _starts_as(value, bodies, number)
        if start is None or start in filled:
            continue
        others = [operand for other, operand in enumerate(operands) if other != start and other not in filled]
        updates.append(Update(operands[start], item, operands[start] in others))
    scratch += [types[number].nbytes for number in bodies[-1].swapped]
    reads = [operand for number, operand in enumerate(operands) if number not in filled]
    constants = [number for number in sorted(filled) if is_constant(value.operands[number])]
    fills = tuple([(items[number], value.operands[number].attrs["value"]) for number in constants])
    return LoweredStep(reads, list(items), value=value, bodies=bodies, items=tuple(items), fills=fills, scratch=scratch, updates=updates)


def _starts_as(value: Value, bodies: tuple[LoweredBody, ...], number: int) -> int | None:
    """The number of the operand whose contents a result of a loop or branch has at the start; None if none."""
    if value.op is not ops.cond:
        return number
    place = bodies[0].into[number]
    return None if place is None else place + 1


def _lower_groups(fused: FusedProgram, prefix: str) -> dict[int, LoweredStep]:
    """The steps of the fusion groups, by position; groups of equal shape share the kernel of the first."""
    alike: dict[Hashable, list[tuple[FusionGroup, Shape]]] = {}
    for step in fused.steps:
        if isinstance(step, FusionGroup):
            shape = shape_of(step, fused.stored, fused.forced)
            alike.setdefault(shape.key, []).append((step, shape))
    found: dict[int, LoweredStep] = {}
    for pairs in alike.values():
        groups, shapes = [group for group, _ in pairs], [shape for _, shape in pairs]
        kernel, owners, words = build_shared_kernel(f"{prefix}k{groups[0].position}", groups, shapes, fused.stored, fused.forced)
        is_complex = any(_is_complex(value) for member in groups[0].members for value in (member.value, *member.inlined))
        for group, mine, told in zip(groups, owners, words, strict=True):
            found[group.position] = LoweredStep(position=group.position, kernel=kernel, owners=mine, words=told, is_complex=is_complex,
                                                updates=[Update(*pair) for pair in group.written_arrays() if pair[0].op is not ops.unset])
    return found


def _is_complex(value: Value) -> bool:
    return value.dtype.is_complex or any(operand.dtype.is_complex for operand in value.operands)


class CallKernel(NamedTuple):
    """A kernel shared by calls that compute the same.

    places   the positions of its parameters in `_values_of(call)`; further parameters are scratch.
    updates  whether it updates its first operand in place.
    """

    kernel: Kernel
    places: list[int]
    updates: bool


def _values_of(call: Call) -> list[Value]:
    return [*call.value.operands, *[view.base for view in call.operands], call.value]


def _call_kernel(name: str, call: Call, known: dict[Hashable, CallKernel]) -> CallKernel:
    """The kernel of a call; calls that compute the same share the first one's."""
    value, values = call.value, _values_of(call)
    attributes = tuple(sorted(value.attrs.items(), key=lambda pair: pair[0]))
    key = (value.op, attributes, tuple([(one.type, values.index(one)) for one in values]),
           tuple([(view.base.type, view.offset, view.strides) for view in call.operands]))
    found = known.get(key)
    if found is None:
        kernel, parameters = build_call_kernel(name, value, call.operands)
        found = known[key] = CallKernel(_of_real_numbers(kernel), [values.index(one) for one in parameters],
                                        kernel.buffers[-1].role == UPDATED)
    return found


def _lower_call(name: str, call: Call, known: dict[Hashable, CallKernel]) -> LoweredStep:
    value = call.value
    bases = [view.base for view in call.operands]
    if value.op is ops.matmul_add:
        start = root(value.operands[2])
        update = Update(start, value, start in map(root, bases[:2]))
        return LoweredStep(bases, [value], value=value, operands=call.operands, updates=[update])
    if value.op is ops.matmul:
        if is_long_sum(value):
            key = build_sum_of_row_products, value.type, value.operands[0].shape, *[(view.base.type, *view[1:]) for view in call.operands]
            if key not in known:
                known[key] = CallKernel(build_sum_of_row_products(name, value, call.operands), [], False)
            return _call_step(LoweredStep(bases, [value]), known[key].kernel, [*bases, value])
        if is_written_out(value) or is_called(value):
            return LoweredStep(bases, [value], value=value, operands=call.operands)
        matmul = _of_real_numbers(build_matmul(name, value, call.operands))
        return _call_step(LoweredStep(bases, [value], value=value), matmul, [*bases, value])
    if not has_call_kernel(value):
        return LoweredStep(bases, [value], value=value, operands=call.operands)
    shared, values = _call_kernel(name, call, known), _values_of(call)
    sources = [root(values[place]) for place in shared.places[:-1]]
    lowered = LoweredStep(sources, [value], value=value)
    if shared.updates:
        target = root(value.operands[0])
        lowered.reads = [*sources, target]
        lowered.updates = [Update(target, value, target in sources)]
    return _call_step(lowered, shared.kernel, [*sources, value])


def product_forms(step: LoweredStep, name: str, iterations: int | None, known: dict[Hashable, list[Kernel]]) -> list[LoweredStep]:
    """Alternatives to the call of a matrix product: steps with loop kernels, which a sweep can run a few iterations at a time.

    iterations: number of blocks, None for loops over single rows, terms or matrices; known: cache of kernels, by types and layouts.
    """
    value, views = step.value, step.operands
    if value is None or value.op not in ops.PRODUCTS or value.dtype not in (F32, F64) or not _is_fixed(value):
        return []
    bases = [view.base for view in views]
    key = (iterations, value.type, *[(view.base.type, view.offset, view.strides) for view in views], value.operands[0].shape[-1])
    kernels = known.get(key)
    if kernels is None:
        kernels = known[key] = [build(name, value, views, blocks) for build, blocks in _product_loops(value, iterations)]
    return [_call_step(LoweredStep(bases, [value], position=step.position), kernel, [*bases, value]) for kernel in kernels]


_ProductLoops = Callable[[str, Value, Sequence[ArrayView], int], Kernel]


def _product_loops(value: Value, iterations: int | None) -> list[tuple[_ProductLoops, int]]:
    """The loop builders that apply to a product, each with its number of blocks of rows or terms."""
    if value.rank > 2:
        return [(build_row_products, 1)] if iterations in (None, value.shape[0]) else []
    found: list[tuple[_ProductLoops, int]] = []
    (rows, columns), terms = value.shape, value.operands[0].shape[-1]
    builders = ((build_row_products, rows, terms * columns), (build_sum_of_row_products, terms, rows * columns))
    for build, extent, common in builders[:1] if value.op is ops.matmul_add else builders:
        if common > MOST_COMMON:
            continue
        if iterations is None or extent == iterations:
            found.append((build, 1))
        elif extent % iterations == 0:
            found.append((build, iterations))
    return found


def _is_fixed(value: Value) -> bool:
    """Whether a product of matrices has fixed, non-zero extents."""
    extents = [*value.shape, value.operands[0].shape[-1]]
    return value.rank > 1 and all(isinstance(extent, int) and extent > 0 for extent in extents)


def _of_real_numbers(kernel: Kernel) -> Kernel:
    return split_complex(kernel) if any(buffer.dtype.is_complex for buffer in kernel.buffers) else kernel


def _call_step(lowered: LoweredStep, kernel: Kernel, owners: Sequence[Value | None]) -> LoweredStep:
    """The step with its kernel; parameters after the owners are scratch."""
    lowered.scratch += [buffer.size * buffer.dtype.itemsize for buffer in kernel.buffers[len(owners):]]
    lowered.kernel, lowered.words = kernel, _moving(kernel)
    lowered.owners = [*owners, *[None] * (len(kernel.buffers) - len(owners))]
    return lowered


def _moving(kernel: Kernel) -> list[WordValue]:
    """Make the indices of the enclosing loops the words of a kernel; returns their values."""
    kernel.words = free_indices(kernel)
    return [word.extent() for word in kernel.words if isinstance(word, Index)]
