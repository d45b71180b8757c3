"""The table of times in README.md: value and gradient of six functions, by bwcompiler and by its peers.

    pip install jax torch autograd; PYTHONPATH=. python tools/compare_with_peers.py THREADS [NAME ...]

Each framework runs in a process of its own, on as many CPUs as it has threads, and gets the same function over its own namespace,
with its arrays made beforehand. (JAX gets its own loop in `heat`: it does not compile 50 unrolled steps in reasonable time.)
"first" is the first call (tracing and compiling; no cache on disk), "call" the best of fifteen rounds of a twentieth of a second.
With one thread these are CPU times, of the process and the compilers that it starts, which other programs on the machine change little.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

FRAMEWORKS = ("bwcompiler", "jax", "torch.compile", "torch", "autograd")
ROUNDS, SECONDS = 15, 0.05
rng = np.random.default_rng(0)


def normal(*shape: int, dtype: str = "f8", scale: float = 1.0) -> Any:
    return (scale * rng.standard_normal(shape)).astype(dtype)


# ----- what is differentiated, with respect to the first argument
def rosenbrock(np: Any, x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def logistic(np: Any, w: Any, x: Any, sign: Any) -> Any:
    margin = sign * (x @ w)
    return np.mean(np.log(1.0 + np.exp(-margin))) + 1e-3 * np.sum(w * w)


def elementwise(np: Any, x: Any, row: Any) -> Any:
    z = np.tanh(x) * np.exp(-0.5 * x * x) + row
    return np.sum(z * z / (1.0 + np.abs(z)))


def softmax_loss(np: Any, x: Any, target: Any) -> Any:
    shifted = x - np.amax(x, 1)[:, None]
    return np.mean(np.log(np.sum(np.exp(shifted), 1)) - np.sum(shifted * target, 1))


def mlp(np: Any, w1: Any, b1: Any, w2: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(x @ w1 + b1)
    return np.mean((hidden @ w2 - y) ** 2)


def heat(np: Any, u: Any) -> Any:
    def step(_: int, u: Any) -> Any:
        return u + 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4.0 * u)

    u = repeat(np, 50, step, u)
    return np.sum(u * u * u)


def repeat(np: Any, count: int, step: Callable[..., Any], u: Any) -> Any:
    if np.__name__ == "jax.numpy":
        from jax.lax import fori_loop
        return fori_loop(0, count, step, u)
    for k in range(count):
        u = step(k, u)
    return u


def example_arrays() -> dict[str, tuple[Callable[..., Any], str, tuple[Any, ...]]]:
    """Per workload the function, its size in words, and its arguments."""
    classes = np.eye(1000, dtype="f4")[rng.integers(0, 1000, 4096)]
    layers = (normal(784, 512, dtype="f4", scale=0.05), normal(512, dtype="f4"), normal(512, 10, dtype="f4", scale=0.05))
    return {
        "rosenbrock": (rosenbrock, "10 numbers, f64", (normal(10),)),
        "logistic": (logistic, "569 x 31, f64", (normal(31), normal(569, 31), np.sign(normal(569)))),
        "elementwise": (elementwise, "2000 x 1000, f64", (normal(2000, 1000), normal(1000))),
        "softmax loss": (softmax_loss, "4096 x 1000, f32", (normal(4096, 1000, dtype="f4"), classes)),
        "mlp": (mlp, "256 x 784, 512, 10, f32", (*layers, normal(256, 784, dtype="f4"), normal(256, 10, dtype="f4"))),
        "heat": (heat, "50 steps of 256 x 256, f64", (normal(256, 256),)),
    }


WORKLOADS = example_arrays()


# ----- one framework: a call that gives (value, gradient) as NumPy arrays or the framework's
def prepare(framework: str, function: Callable[..., Any], arrays: tuple[Any, ...]) -> Callable[[], Any]:
    if framework == "bwcompiler":
        import bwcompiler as bw
        compiled = bw.value_and_grad(lambda *args: function(np, *args))
        return lambda: compiled(*arrays)
    if framework == "jax":
        import jax
        import jax.numpy as jnp
        jax.config.update("jax_enable_x64", True)
        jitted = jax.jit(jax.value_and_grad(lambda *args: function(jnp, *args)))
        inputs = [jnp.asarray(array) for array in arrays]
        return lambda: jax.block_until_ready(jitted(*inputs))
    if framework == "autograd":
        import autograd
        import autograd.numpy as anp
        traced = autograd.value_and_grad(lambda *args: function(anp, *args))
        return lambda: traced(*arrays)
    return prepare_torch(framework, function, arrays)


def prepare_torch(framework: str, function: Callable[..., Any], arrays: tuple[Any, ...]) -> Callable[[], Any]:
    import torch
    tensors = [torch.tensor(array) for array in arrays]
    tensors[0].requires_grad_()
    called: Callable[..., Any] = lambda *args: function(torch, *args)
    if framework == "torch.compile":
        called = torch.compile(called, fullgraph=True)

    def run() -> Any:
        value = called(*tensors)
        return value.detach(), torch.autograd.grad(value, tensors[0])[0]

    return run


def measure(framework: str) -> None:
    """One line of JSON per workload: seconds of the first call, of a call, and value and gradient norm to compare."""
    prepare(framework, rosenbrock, (np.ones(3),))()  # what a framework loads once
    for name, (function, _, arrays) in WORKLOADS.items():
        call = prepare(framework, function, arrays)
        start = now()
        value, gradient = call()
        first = now() - start
        best = min(timed(call) for _ in range(ROUNDS))
        norm = float(np.linalg.norm(np.asarray(gradient, np.float64)))
        print(json.dumps({"name": name, "first": first, "call": best, "value": float(value), "norm": norm}), flush=True)


def timed(call: Callable[[], Any]) -> float:
    start, count, batch = now(), 0, 1
    while now() - start < SECONDS:
        for _ in range(batch):
            call()
        count += batch
        batch = min(2 * batch, 1024) if now() - start < SECONDS / 8 else batch
    return (now() - start) / count


def now() -> float:
    """CPU time with one thread, else time."""
    if os.environ.get("BW_NUM_THREADS") != "1":
        return time.perf_counter()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


# ----- the table
def show(seconds: float) -> str:
    unit, factor = next(((unit, factor) for unit, factor in (("s", 1.0), ("ms", 1e-3)) if seconds >= factor), ("µs", 1e-6))
    number = seconds / factor
    return f"{number:.3g} {unit}" if number < 100 else f"{number:.0f} {unit}"


def main(threads: int, chosen: list[str]) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ |= {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BW_NUM_THREADS")}
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for framework in chosen:
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"BW_CACHE": "0", "TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": str(threads)}
            command = [sys.executable, __file__, "--measure", framework]
            result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        found[framework] = {line["name"]: line for line in map(json.loads, result.stdout.splitlines())}
    print(f"{platform.machine()}, {threads} threads, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}\n")
    print("| first / call | " + " | ".join(chosen) + " |\n|---|" + "---|" * len(chosen))
    for name, (_, size, _) in WORKLOADS.items():
        lines = [found[framework].get(name) for framework in chosen]
        cells = ["-" if line is None else f"{show(line['first'])} / {show(line['call'])}" for line in lines]
        print(f"| {name}, {size} | " + " | ".join(cells) + " |")
        values = [(line["value"], line["norm"]) for line in lines if line is not None]
        np.testing.assert_allclose(values, [values[0]] * len(values), rtol=2e-4)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2])
    else:
        main(int(sys.argv[1]), sys.argv[2:] or list(FRAMEWORKS))
