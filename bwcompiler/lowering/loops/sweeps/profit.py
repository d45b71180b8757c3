"""When it pays to join kernels (`sweep.py`): they share large arrays, and what a few iterations touch stays in a cache."""

from __future__ import annotations

from collections import Counter

from bwcompiler.ir.product_loop import PRODUCT
from bwcompiler.lowering.loops.sweeps.sweep import LEAST_BLOCKS, Sweep

LEAST_SHARED = 1 << 20         # least bytes of shared arrays: smaller ones are still in a cache when the next loop begins
BLOCK_BYTES = 1 << 16          # bytes that a few iterations touch; MOST_BYTES: the most for a single iteration
MOST_BYTES = 1 << 18
LEAST_ELEMENTS = 256           # least shared elements of a few iterations: with fewer, the loop overhead dominates
PRODUCT_BYTES = 3 << 17        # bytes that a few rows of matrix products touch, in the L2 cache,
LEAST_ROWS = 64                # and the least number of rows: the other matrix is read once per block of rows
MOST_KERNELS = 24              # most kernels of a sweep


def pays(sweep: Sweep) -> bool:
    """Whether the last kernel shares enough memory with the others, and the data of a few iterations stay in a cache.

    For a product, sharing an input gains little: it has to read a result of the others, or write one of their inputs.
    """
    steps, last = sweep.steps(), sweep.parts[-1]
    before = {array for one in sweep.parts[:-1] for array in one.accesses}
    shared = [array for array in last.accesses if array in before and steps.get(array)]
    if last.of.multiplies:
        made = {array for one in sweep.parts for array, accesses in one.accesses.items() if accesses.written}
        shared = [array for array in shared if array in made]
    return bool(sum([array.type.nbytes for array in shared]) >= LEAST_SHARED and iterations_together(sweep))


def iterations_together(sweep: Sweep) -> int:
    """The number of iterations of each loop before those of the next; 0 if no number is suitable."""
    steps, laid_over = sweep.steps(), sweep.laid_over()
    one = sum([step * array.dtype.itemsize for array, step in steps.items() if array not in laid_over])
    if one > MOST_BYTES:
        return 0
    multiplies = any(part.of.loop.kind == PRODUCT for part in sweep.parts)
    most = max(1, min((PRODUCT_BYTES if multiplies else BLOCK_BYTES) // max(one, 1), sweep.extent // LEAST_BLOCKS))
    count = next(number for number in range(most, 0, -1) if sweep.extent % number == 0)
    if multiplies and count < LEAST_ROWS:
        return 0
    users = Counter(array for part in sweep.parts for array in part.accesses)
    shared = [steps.get(array, 0) for array, number in users.items() if number > 1]
    return count if count * max(shared, default=0) >= LEAST_ELEMENTS else 0
