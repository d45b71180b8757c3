"""Lowered programs without native code: `run_steps` runs the kernels by the loop interpreter, step by step.

`steps_of(text)` lowers a graph that is written as text, as far as its kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import ops  # noqa: F401  (registers them)
from bwcompiler.ir.access import ArrayView, whole
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.loop import INPUT, UPDATED, Buffer, Kernel
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.lowering.arrange_loops import arrange_loops
from bwcompiler.lowering.libraries.call_texts import Libraries
from bwcompiler.lowering.steps import LoweredStep, lower_steps
from bwcompiler.passes.fusion.fuse import fuse
from tests.support.kernels import difference

Array = np.ndarray[Any, Any]
NO_LIBRARIES = Libraries()


def steps_of(text: str) -> tuple[Graph, list[LoweredStep]]:
    """The graph of a text, and its steps where there is no BLAS."""
    graph = parse_graph(text)
    return graph, lowered_steps(graph)


def lowered_steps(graph: Graph) -> list[LoweredStep]:
    """The steps of a graph, a kernel for each fusion group."""
    return arrange_loops(lower_steps(fuse(graph)))


def run_steps(graph: Graph, steps: Sequence[LoweredStep], arguments: Sequence[Array]) -> list[Array]:
    """The outputs of a graph by its steps; every value a kernel stores is compared with the graph's meaning.

    Every kernel must be valid and read back from its text.
    """
    meaning = dict(zip(graph.body, interpret(graph.replace(outputs=graph.body), arguments), strict=True))
    memory = {value: np.ascontiguousarray(array) for value, array in zip(graph.inputs, arguments, strict=True)}
    for step in steps:
        if step.kernel is None:
            assert step.value is not None
            operands = [operand_array(view, operand.shape, memory)
                        for view, operand in zip(step.operands, step.value.operands, strict=True)]
            memory[step.value] = np.ascontiguousarray(step.value.op.reference(*operands, **step.value.attrs))
            continue
        text = check_kernel(step.kernel)
        arrays = []
        for buffer, owner in zip(step.kernel.buffers, step.owners, strict=True):
            if buffer.role == INPUT:
                arrays.append(in_parts(memory[owner], buffer))
            elif buffer.role == UPDATED:
                before = next(update.operand for update in step.updates if update.result is owner)
                arrays.append(in_parts(operand_array(whole(before), before.shape, memory).copy(), buffer))
            else:                                          # what is read before it is written must show
                arrays.append(np.frombuffer(b"\xd5" * (buffer.size * buffer.dtype.itemsize), buffer.dtype.numpy).reshape(buffer.shape).copy())
        run_kernel(step.kernel, arrays, step.words)
        for buffer, owner, array in zip(step.kernel.buffers, step.owners, arrays, strict=True):
            if owner is not None and buffer.role != INPUT:
                memory[owner] = array = array.view(owner.dtype.numpy).reshape(owner.shape)
                expected = np.asarray(meaning[owner]).reshape(array.shape)
                assert_near(array, expected, f"{owner} of\n{text}")
    return [operand_array(whole(output), output.shape, memory) for output in graph.outputs]


def in_parts(array: Array, buffer: Buffer) -> Array:
    """The array as the kernel sees it: complex numbers as pairs of reals."""
    return np.ascontiguousarray(array).view(buffer.dtype.numpy).reshape(buffer.shape)


def check_kernel(kernel: Kernel) -> str:
    """Its text: the kernel is valid, and the text reads back."""
    verify_kernel(kernel)
    text = kernel_to_text(kernel)
    parsed = parse_kernel(text)
    assert difference(parsed, kernel) is None, text
    assert kernel_to_text(parsed) == text
    return text


def operand_array(view: ArrayView, shape: tuple[int, ...], memory: dict[Value, Array]) -> Array:
    flat = memory[view.base].reshape(-1)[view.offset:]
    return np.lib.stride_tricks.as_strided(flat, shape, [stride * flat.itemsize for stride in view.strides])


def assert_near(found: Array, expected: Array, what: str) -> None:
    if found.dtype.kind == "c":
        found, expected = (np.stack([one.real, one.imag]) for one in (found, expected))
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, what)
        return
    scale = np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=200 * np.finfo(found.dtype).eps * scale, err_msg=what)
