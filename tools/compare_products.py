"""Gflop/s of matrix products on one thread: those compiled here, NumPy's BLAS and, where it is installed, JAX's.

    python tools/compare_products.py
    BW_TARGET=x86-64-v3 python tools/compare_products.py --dtype f4 --most 1e8

"tn" is the product of a transposed and a plain operand; with a batch, of so many such matrices.  All are timed in turns, in CPU time, so
that other load on the machine falls on all of them alike; what counts is the shortest run.  JAX may use more threads than it is told: its
CPU time is that of all of them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "BW_NUM_THREADS"), "1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

import bwcompiler as bw

try:
    import jax
except ImportError:
    jax = None

ROUNDS, ROUND_OPERATIONS = 30, 2e7
# (operands, batch, rows, columns, terms)
PRODUCTS = [
    *[("nn", 0, n, n, n) for n in (16, 32, 64, 128, 256, 512, 1024)],
    *[(kind, 0, 512, 512, 512) for kind in ("tn", "nt", "tt")],
    ("nn", 0, 64, 128, 784), ("tn", 0, 784, 128, 64), ("nt", 0, 64, 784, 128), ("nn", 0, 64, 10, 128), ("tn", 0, 128, 10, 64),
    ("nn", 0, 32, 1024, 288), ("nt", 0, 32, 288, 4096), ("tn", 0, 288, 4096, 32),
    ("nn", 0, 1000, 1000, 8), ("nn", 0, 1000, 8, 1000), ("nn", 0, 8, 1000, 1000),
    ("nn", 0, 1, 1024, 1024), ("nt", 0, 1, 1024, 1024), ("nn", 0, 2048, 1, 2048), ("tn", 0, 2048, 1, 2048),
    ("nt", 96, 128, 128, 64), ("nn", 96, 128, 64, 128), ("nn", 256, 8, 8, 8), ("nn", 64, 64, 64, 64),
]


def product(kind: str) -> Callable[[Any, Any], Any]:
    """The product of operands as they are stored."""
    return lambda x, y: (x.swapaxes(-1, -2) if kind[0] == "t" else x) @ (y.swapaxes(-1, -2) if kind[1] == "t" else y)


def contenders(kind: str, batch: tuple[int, ...], m: int, n: int, k: int, dtype: str) -> dict[str, Callable[[], Any]]:
    """What is timed."""
    rng = np.random.default_rng(0)
    shapes = [(k, m) if kind[0] == "t" else (m, k), (n, k) if kind[1] == "t" else (k, n)]
    x, y = [rng.standard_normal((*batch, *shape)).astype(dtype) for shape in shapes]
    function, out = product(kind), np.empty((*batch, m, n), dtype)
    compiled = bw.jit(function)
    left, right = [z.swapaxes(-1, -2) if letter == "t" else z for z, letter in zip((x, y), kind, strict=True)]
    found: dict[str, Callable[[], Any]] = {"bwcompiler": lambda: compiled(x, y), "numpy": lambda: np.matmul(left, right, out=out)}
    if jax is not None:
        with_jax, arrays = jax.jit(function), [jax.numpy.asarray(z) for z in (x, y)]
        found["jax"] = lambda: with_jax(*arrays).block_until_ready()
    return found


def shortest(runs: dict[str, Callable[[], Any]], operations: float) -> dict[str, float]:
    """Seconds of each."""
    repeats = max(1, int(ROUND_OPERATIONS / operations))
    best = dict.fromkeys(runs, np.inf)
    for round_number in range(ROUNDS + 1):
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(repeats):
                run()
            if round_number:                                    # the first one compiles
                best[name] = min(best[name], (time.process_time() - start) / repeats)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=("f4", "f8"), action="append")
    parser.add_argument("--most", type=float, default=np.inf, metavar="OPERATIONS", help="leave out products of more")
    arguments = parser.parse_args()
    for dtype in arguments.dtype or ("f4", "f8"):
        if jax is not None:
            jax.config.update("jax_enable_x64", dtype == "f8")
        for kind, batch, m, n, k in PRODUCTS:
            operations = 2.0 * max(batch, 1) * m * n * k
            if operations > arguments.most:
                continue
            best = shortest(contenders(kind, (batch,) if batch else (), m, n, k, dtype), operations)
            speeds = "  ".join([f"{name} {operations / seconds / 1e9:6.1f}" for name, seconds in best.items()])
            print(f"{dtype} {kind} {f'{batch} x ' if batch else '':>5}{m:5} {n:5} {k:5}   {speeds}", flush=True)


if __name__ == "__main__":
    main()
