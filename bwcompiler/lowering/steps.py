"""Fused steps -> what each of them runs: a kernel, or a library call, check or callback of one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from bwcompiler.ir.access import ArrayView, root
from bwcompiler.ir.fusion import Call, FusedProgram
from bwcompiler.ir.loop import INPUT, UPDATED, Kernel
from bwcompiler.ir.memory import StepUse, Update
from bwcompiler.ir.op import Value
from bwcompiler.lowering.build_loops import build_kernel
from bwcompiler.lowering.call_kernels import build_call_kernel, build_matmul
from bwcompiler.lowering.library_calls import Libraries
from bwcompiler.lowering.matrix_products import is_written_out
from bwcompiler.lowering.shared_memory import may_share


@dataclass
class LoweredStep(StepUse):
    """One step of the program: a kernel with the owners of its parameters, or a library call, check or callback of one value."""

    kernel: Kernel | None = None
    owners: Sequence[Value | None] = ()
    value: Value | None = None
    operands: tuple[ArrayView, ...] = ()


def lower_steps(fused: FusedProgram, libraries: Libraries, pairs: Mapping[Value, Value] = MappingProxyType({})) -> list[LoweredStep]:
    """Loop trees of all steps, and what each reads, writes and needs as scratch.

    pairs: results -> the inputs whose memory they are to be written to, if they may.
    """
    steps: list[LoweredStep] = []
    for number, step in enumerate(fused.steps):
        name = f"k{number}"
        if isinstance(step, Call):
            steps.append(_lower_call(name, step, libraries))
            continue
        kernel, owners = build_kernel(name, step, fused.stored, fused.forced)
        if not kernel.buffers:                     # everything in it was computed where it is read
            continue
        lowered = LoweredStep([], [], kernel=kernel, owners=owners, updates=[Update(*pair) for pair in step.written_arrays()])
        lowered.reads = [update.operand for update in lowered.updates]
        for buffer, owner in zip(kernel.buffers, owners, strict=True):
            if owner is None:
                lowered.scratch.append(buffer.size * buffer.dtype.itemsize)
            else:
                (lowered.reads if buffer.role == INPUT else lowered.writes).append(owner)
        if pairs:
            lowered.sharing = _sharing(kernel, owners, pairs)
        steps.append(lowered)
    return steps


def _sharing(kernel: Kernel, owners: Sequence[Value | None], pairs: Mapping[Value, Value]) -> list[tuple[Value, Value]]:
    """The pairs (read, written) of the kernel that may be one array."""
    buffer_of = {owner: buffer for owner, buffer in zip(owners, kernel.buffers, strict=True) if owner is not None}
    return [(pairs[owner], owner) for owner, buffer in buffer_of.items()
            if owner in pairs and pairs[owner] in buffer_of and may_share(kernel, buffer_of[pairs[owner]], buffer)]


def _lower_call(name: str, call: Call, libraries: Libraries) -> LoweredStep:
    value = call.value
    bases = [view.base for view in call.operands]
    if value.op.name == "matmul":
        if is_written_out(value) or uses_blas(value, libraries):
            return LoweredStep(bases, [value], value=value, operands=call.operands)
        kernel = build_matmul(name, value, call.operands)
        return LoweredStep(bases, [value], kernel=kernel, owners=[*bases, value], value=value)
    built = build_call_kernel(name, value)
    if built is None:
        return LoweredStep(bases, [value], value=value, operands=call.operands)
    kernel, values = built
    sources = [root(operand) for operand in values[:-1]]
    lowered = LoweredStep(sources, [value], kernel=kernel, owners=[*sources, value], value=value)
    if kernel.buffers[-1].role == UPDATED:
        target = root(value.operands[0])
        lowered.reads = [*sources, target]
        lowered.updates = [Update(target, value, target in sources)]
    return lowered


def uses_blas(value: Value, libraries: Libraries) -> bool:
    """Whether a matrix product goes to BLAS."""
    return libraries.blas("gemm", value.dtype) is not None
