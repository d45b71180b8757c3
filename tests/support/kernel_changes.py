"""What every change of a kernel's loops must keep: a valid kernel that computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.ir.loop import Kernel
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text


def changed(text: str, change: Callable[[Kernel], Kernel], arrays: Sequence[np.ndarray[Any, Any]],
            compare: Callable[..., None] = np.testing.assert_array_equal) -> str:
    """The text of the changed kernel.  arrays: what the buffers of the one given hold; those that are new begin as nan."""
    kernel = parse_kernel(text)
    verify_kernel(kernel)
    after = change(kernel)
    verify_kernel(after)
    results = []
    for each in (kernel, after):
        given = [array.copy() for array in arrays]
        run_kernel(Kernel(each.name, each.buffers, each.body), [*given, *[np.full(buffer.shape, np.nan) for buffer in each.buffers[len(given):]]])
        results.append(given)
    for one, other in zip(*results, strict=True):
        compare(one, other)
    return kernel_to_text(after)
