"""Random kernels: native code gives the bits of the interpreter, on every target that this machine can run: each has vectors of its own.

`random_kernel(seed)` makes a failing one again.
"""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.target import Target
from tests.support.kernels import NativeKernels, copies, random_kernel
from tests.support.targets import TARGETS

CHUNK = 40
CAMPAIGN = range(10_000, 12_000, CHUNK)


def check(seeds: range, target: Target) -> None:
    made = [random_kernel(seed) for seed in seeds]
    native = NativeKernels([kernel for kernel, _ in made], target)
    for kernel, arrays in made:
        verify_kernel(kernel)
        expected, found = copies(arrays), copies(arrays)
        run_kernel(kernel, expected)
        native.run(kernel.name, found)
        for buffer, x, y in zip(kernel.buffers, found, expected, strict=True):
            np.testing.assert_array_equal(x, y, f"{buffer} of\n{kernel_to_text(kernel)}")


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_native_code_means_the_kernel(target: Target) -> None:
    start = CHUNK * list(TARGETS.values()).index(target)
    check(range(start, start + CHUNK), target)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
@pytest.mark.parametrize("start", CAMPAIGN)
def test_campaign(start: int, target: Target) -> None:
    check(range(start, start + CHUNK), target)
