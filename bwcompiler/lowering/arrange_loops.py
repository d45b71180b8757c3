"""Loop transformations of fused kernels for the machine: `arrange_loops` brings loops into rows, tiles, panels and blocks, splits complex
numbers into real ones, and records what each kernel reads, writes and needs as scratch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from bwcompiler.ir.loop import INPUT, Buffer, Kernel
from bwcompiler.ir.op import Value
from bwcompiler.lowering.loops.blocks import in_blocks
from bwcompiler.lowering.loops.building.shared_memory import may_share, stores_behind_reads
from bwcompiler.lowering.loops.complex.split_complex import split_complex
from bwcompiler.lowering.loops.tiling.join_rows import join_rows
from bwcompiler.lowering.loops.tiling.stage_columns import stage_columns
from bwcompiler.lowering.loops.tiling.stage_products import stage_products
from bwcompiler.lowering.loops.tiling.tiles import in_tiles
from bwcompiler.lowering.steps import LoweredStep

LEAST_SHARED = 1 << 18         # least bytes of an array for reusing memory of an input; smaller ones stay in a cache anyway


def arrange_loops(steps: Sequence[LoweredStep], pairs: Mapping[Value, Value] = MappingProxyType({})) -> list[LoweredStep]:
    """The steps with their final kernels.  pairs: results -> the inputs whose memory they are written to, if that is possible."""
    arranged: dict[int, Kernel] = {}
    reordered: dict[tuple[Kernel, Buffer, Buffer], Kernel] = {}
    found: list[LoweredStep] = []
    for step in steps:
        if step.kernel is not None and step.value is None:
            kernel = arranged.get(id(step.kernel))
            if kernel is None:
                kernel = arranged[id(step.kernel)] = _arranged(step.kernel, step.is_complex)
            step = _sharing(_with_uses(step, kernel), pairs, reordered)
        found.append(step)
    return found


def _arranged(kernel: Kernel, is_complex: bool) -> Kernel:
    kernel = in_blocks(stage_columns(in_tiles(join_rows(stage_products(kernel)))))
    return split_complex(kernel) if is_complex else kernel


def _with_uses(step: LoweredStep, kernel: Kernel) -> LoweredStep:
    """The step with the kernel, and the scratch that this needs."""
    owners = [*step.owners, *[None] * (len(kernel.buffers) - len(step.owners))]
    made = replace(step, kernel=kernel, owners=owners, reads=[update.operand for update in step.updates], writes=[], scratch=[])
    for buffer, owner in zip(kernel.buffers, owners, strict=True):
        if owner is None:
            made.scratch.append(buffer.size * buffer.dtype.itemsize)
        else:
            (made.reads if buffer.role == INPUT else made.writes).append(owner)
    return made


def _sharing(step: LoweredStep, pairs: Mapping[Value, Value], reordered: dict[tuple[Kernel, Buffer, Buffer], Kernel]) -> LoweredStep:
    """The step with `sharing`: the pairs (read, written) of its kernel that may be one array, among `pairs` and large arrays.  Stores are
    moved behind reads if only that allows it (`reordered`: a cache of such kernels, as steps may share one)."""
    assert step.kernel is not None
    kernel = step.kernel
    buffer_of = {owner: buffer for owner, buffer in zip(step.owners, kernel.buffers, strict=True) if owner is not None}
    large = [owner for owner, buffer in buffer_of.items() if buffer.size * buffer.dtype.itemsize >= LEAST_SHARED]
    found: list[tuple[Value, Value]] = []
    for owner, buffer in buffer_of.items():
        if buffer.role == INPUT:
            continue
        sources = [pairs[owner]] if owner in pairs and pairs[owner] in buffer_of else []
        if owner in large:
            sources += [source for source in large if buffer_of[source].role == INPUT and source not in sources]
        for source in sources:
            if may_share(kernel, buffer_of[source], buffer):
                found.append((source, owner))
                continue
            key = kernel, buffer_of[source], buffer
            later = reordered.get(key)
            if later is None:
                later = reordered[key] = stores_behind_reads(*key)
            more = [*found, (source, owner)]
            if later is not kernel and all(may_share(later, buffer_of[one], buffer_of[other]) for one, other in more):
                kernel, found = later, more
    return replace(step, kernel=kernel, sharing=found)
