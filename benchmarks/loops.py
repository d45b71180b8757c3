"""Loops against peers: `python -m benchmarks.loops [NAME ...] [--frameworks A,B] [--sizes N,M] [--python JAX=PATH ...]`.

Per kernel and size: the first call of value and gradient in seconds of CPU time, the best of several calls of the kernel and of value
and gradient in milliseconds, and the bytes that bwcompiler's forward program keeps for the adjoint one.  Each framework runs in a process
of its own, one after the other, and is left out where it is not installed.  What it computes is compared with NumPy first.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kernels import KERNELS

FRAMEWORKS = ("numpy", "bwcompiler", "jax", "numba")
SECONDS = 0.2                      # that a kernel is called repeatedly
BATCH = 0.02                       # seconds of calls that are timed at once


def measure(framework: str, names: list[str], sizes: list[int] | None) -> Iterator[dict[str, Any]]:
    """What one framework takes, row by row."""
    for name in names:
        for n in sizes or KERNELS[name].sizes:
            row: dict[str, Any] = {"kernel": name, "n": n, "framework": framework}
            try:
                row |= _MEASURES[framework](name, n)
            except Exception as error:             # a peer that cannot run a kernel is a row of the table
                row["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
            yield row


def loss(name: str) -> Callable[..., Any]:
    """The sum of squares of what a kernel gives."""
    function = KERNELS[name].function

    def squares(*args: Any) -> Any:
        return np.sum(function(*args) ** 2)
    return squares


def _best(call: Callable[[], Any]) -> float:
    """The least CPU time of a call in milliseconds, in batches: that of other threads is counted with a delay of some milliseconds."""
    start = time.perf_counter()
    call()
    calls = max(1, math.ceil(BATCH / max(time.perf_counter() - start, 1e-9)))
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < SECONDS:
        start = time.process_time()
        for _ in range(calls):
            call()
        times.append((time.process_time() - start) / calls)
    return 1e3 * min(times)


def _first(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return call(), time.process_time() - start


def _require_near(found: Any, expected: Any) -> None:
    if not np.allclose(found, expected, rtol=1e-7, atol=1e-9):
        raise ArithmeticError(f"differs from NumPy by {np.max(np.abs(np.asarray(found) - expected)):.1e}")


def _numpy(name: str, n: int) -> dict[str, Any]:
    args = KERNELS[name].arguments(n)
    return {"forward": _best(lambda: KERNELS[name].function(*args))}


def _bwcompiler(name: str, n: int) -> dict[str, Any]:
    import bwcompiler as bw
    args = KERNELS[name].arguments(n)
    forward, gradient = bw.jit(KERNELS[name].function), bw.value_and_grad(loss(name))
    _require_near(forward(*args), KERNELS[name].function(*args))
    _, first = _first(lambda: gradient(*args))
    return {"forward": _best(lambda: forward(*args)), "first": first, "gradient": _best(lambda: gradient(*args)),
            "kept": residual_bytes(name, n)}


def residual_bytes(name: str, n: int) -> int:
    """What the forward program of a kernel keeps for its adjoint."""
    import bwcompiler as bw
    program = bw.compile(loss(name), *KERNELS[name].arguments(n), wrt=(0,))
    return int(program.memory_analysis()["residual_bytes"])


def _jax(name: str, n: int) -> dict[str, Any]:
    import jax
    jax.config.update("jax_enable_x64", True)
    from benchmarks import jax_kernels
    args = KERNELS[name].arguments(n)
    forward, gradient = jax_kernels.forward(name), jax_kernels.value_and_grad(name)
    expected = KERNELS[name].function(*args)
    found = np.asarray(forward(*args))
    _require_near(np.tril(found) if name == "cholesky" else found, expected)
    _, first = _first(lambda: jax.block_until_ready(gradient(*args)))
    return {"forward": _best(lambda: jax.block_until_ready(forward(*args))), "first": first,
            "gradient": _best(lambda: jax.block_until_ready(gradient(*args)))}


def _numba(name: str, n: int) -> dict[str, Any]:
    import numba
    args = KERNELS[name].arguments(n)
    forward = numba.njit(KERNELS[name].function)
    found, first = _first(lambda: forward(*args))
    _require_near(found, KERNELS[name].function(*args))
    return {"forward": _best(functools.partial(forward, *args)), "first": first}


_MEASURES = {"numpy": _numpy, "bwcompiler": _bwcompiler, "jax": _jax, "numba": _numba}


# ----- processes
def _rows(framework: str, python: str, names: list[str], sizes: list[int] | None) -> list[dict[str, Any]]:
    """The rows of a framework, measured in a process of its own."""
    root = str(Path(__file__).resolve().parent.parent)
    chosen = [] if sizes is None else ["--sizes", ",".join(map(str, sizes))]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": root, "BW_CACHE_DIR": cache, "BW_PROGRESS": "0"}
        done = subprocess.run([python, "-W", "ignore", "-m", "benchmarks.loops", "--measure", framework, *chosen, *names], cwd=root,
                              env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(rows: list[dict[str, Any]]) -> str:
    """The measured numbers as text, a line per kernel, size and framework."""
    titles = f"{'first s':>9}{'forward ms':>12}{'gradient ms':>13}{'gradient/forward':>18}{'kept bytes':>12}"
    lines = [f"{'kernel':<18}{'n':>6}  {'framework':<12}{titles}"]
    for row in sorted(rows, key=lambda row: (list(KERNELS).index(row["kernel"]), row["n"])):
        ratio = row["gradient"] / row["forward"] if row.get("gradient") and row.get("forward") else None
        cells = [_cell(row.get("first"), 9, 2), _cell(row.get("forward"), 12, 4), _cell(row.get("gradient"), 13, 4), _cell(ratio, 18, 1),
                 f"{row['kept']:>12}" if "kept" in row else " " * 12]
        lines.append(f"{row['kernel']:<18}{row['n']:>6}  {row['framework']:<12}" + (row["error"] if "error" in row else "".join(cells)))
    return "\n".join(line.rstrip() for line in lines)


def _cell(number: float | None, width: int, digits: int) -> str:
    return " " * width if number is None else f"{number:>{width}.{digits}f}"


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loops", description="Times of loops, by bwcompiler and by its peers.")
    parser.add_argument("names", nargs="*", help=f"kernels (all): {', '.join(KERNELS)}")
    parser.add_argument("--frameworks", default=",".join(FRAMEWORKS))
    parser.add_argument("--sizes", help="as 20,40 (those of the kernel)")
    parser.add_argument("--python", action="append", default=[], metavar="FRAMEWORK=PATH", help="the Python that has a framework")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    names = options.names or list(KERNELS)
    unknown = [name for name in names if name not in KERNELS]
    if unknown:
        parser.error(f"no kernel is called {', '.join(unknown)}")
    sizes = None if options.sizes is None else [int(one) for one in options.sizes.split(",")]
    if options.measure:
        for row in measure(options.measure, names, sizes):
            print(json.dumps(row), flush=True)
        return
    pythons = dict(one.split("=", 1) for one in options.python)
    rows = []
    for framework in options.frameworks.split(","):
        if framework not in pythons and importlib.util.find_spec(framework) is None:
            print(f"{framework} is not installed: left out", file=sys.stderr)
            continue
        rows += _rows(framework, pythons.get(framework, sys.executable), names, sizes)
    print(table(rows))


if __name__ == "__main__":
    main()
