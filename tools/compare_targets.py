"""Run time of some kernels when compiled for several targets, on one machine.

    python tools/compare_targets.py host host@256 x86-64-v3 x86-64-v2
    python tools/compare_targets.py host host@256 --kernel softmax

Every kernel is compiled for all targets and then timed in turns, so that other load on the machine falls on all of them alike.  The
last line is the geometric mean of the times relative to the first target.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["BW_CACHE"] = "0"

import numpy as np

import bwcompiler as bw
from bwcompiler.target import Target, compiling_for

ROUNDS, ROUND_SECONDS = 40, 1e-3
Kernel = tuple[Callable[..., Any], tuple[Any, ...]]


def array(*shape: int, dtype: str = "f8") -> Any:
    return np.random.default_rng(len(shape)).uniform(0.1, 1.0, shape).astype(dtype)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    d = x - np.mean(x, axis=-1, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=-1, keepdims=True) + 1e-5) * gamma + beta


def heat(x: Any) -> Any:
    for _ in range(10):
        y = np.copy(x)
        y[1:-1] = x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])
        x = y
    return x


def lstm_cell(x: Any, h: Any, c: Any) -> Any:
    i, f, g, o = (x[:, k * 64:(k + 1) * 64] + h for k in range(4))
    new = bw.nn.sigmoid(f) * c + bw.nn.sigmoid(i) * np.tanh(g)
    return bw.nn.sigmoid(o) * np.tanh(new), new


def bodies(p: Any) -> Any:
    d = p[:, None, :] - p[None, :, :]
    r = np.sum(d * d, axis=-1) + 1e-2
    return np.sum(d * (r ** -1.5)[:, :, None], axis=1)


def convolution(groups: int) -> Callable[..., Any]:
    return bw.grad(lambda x, w: np.sum(bw.nn.conv2d(x, w, padding=1, groups=groups) ** 2), (0, 1))


KERNELS: dict[str, Kernel] = {
    "softmax f32": (softmax, (array(512, 1024, dtype="f4"),)),
    "softmax f32, 10 classes": (softmax, (array(4096, 10, dtype="f4"),)),
    "cross entropy and gradient": (bw.value_and_grad(lambda x, y: -np.sum(y * np.log(softmax(x)))), (array(256, 64), array(256, 64))),
    "layer norm, gradients f32": (bw.grad(lambda x, g, b: np.sum(layer_norm(x, g, b) ** 2), (0, 1, 2)),
                                  (array(256, 512, dtype="f4"), array(512, dtype="f4"), array(512, dtype="f4"))),
    "gelu f32": (lambda x: 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x))), (array(1 << 16, dtype="f4"),)),
    "tanh * exp": (lambda x: np.tanh(x * 0.7) * np.exp(-0.3 * x) + x, (array(1 << 14),)),
    "sin * log": (lambda x: np.sin(x) * np.log(x), (array(1 << 14),)),
    "power": (lambda x, y: x ** y, (array(1 << 14), array(1 << 14))),
    "2.5 x + y, in cache": (lambda x, y: 2.5 * x + y, (array(4096), array(4096))),
    "2.5 x + y, in memory": (lambda x, y: 2.5 * x + y, (array(1 << 22), array(1 << 22))),
    "sums of rows": (lambda x: np.sum(x * x, axis=1), (array(512, 1024),)),
    "sums of short rows": (lambda x: np.sum(x * x, axis=1), (array(2000, 47),)),
    "sums of columns": (lambda x: np.sum(x * x, axis=0), (array(512, 1024),)),
    "heat, 10 steps": (heat, (array(4096),)),
    "five points": (lambda x: 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]), (array(256, 256),)),
    "LSTM cell f32": (lstm_cell, (array(64, 256, dtype="f4"), array(64, 64, dtype="f4"), array(64, 64, dtype="f4"))),
    "128 bodies": (bodies, (array(128, 3),)),
    "outer product, permuted": (lambda a, b: (a * b).reshape(4, 2, 4, 4, 3, 3).transpose(1, 0, 2, 3, 4, 5),
                                (array(4, 32, 1), array(4, 1, 9))),
    "convolution, gradients f32": (convolution(1), (array(4, 8, 28, 28, dtype="f4"), array(16, 8, 3, 3, dtype="f4"))),
    "depthwise, gradients f32": (convolution(8), (array(4, 8, 28, 28, dtype="f4"), array(8, 1, 3, 3, dtype="f4"))),
    "steps of 2 f32": (lambda x: x[:, ::2] * x[:, 1::2], (array(256, 1024, dtype="f4"),)),
    "max pooling, gradient f32": (bw.grad(lambda x: np.sum(bw.nn.max_pool2d(x, 2) ** 2)), (array(8, 8, 32, 32, dtype="f4"),)),
}


def compiled(kernel: Kernel, text: str) -> Callable[..., Any]:
    fun, arguments = kernel
    function = bw.jit(lambda *args: fun(*args))
    with compiling_for(Target.parse(text)):
        function(*arguments)
    return function


def times(kernel: Kernel, targets: list[str]) -> list[float]:
    """Seconds of a call for each target, the fastest of ROUNDS."""
    functions = [compiled(kernel, text) for text in targets]
    _, arguments = kernel
    start = time.perf_counter()
    functions[0](*arguments)
    calls = max(1, int(ROUND_SECONDS / max(time.perf_counter() - start, 1e-7)))
    best = [np.inf] * len(functions)
    for _ in range(ROUNDS):
        for number, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(calls):
                function(*arguments)
            best[number] = min(best[number], (time.perf_counter() - start) / calls)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", metavar="TARGET", help="as in BW_TARGET")
    parser.add_argument("--kernel", default="", help="only kernels whose name contains this")
    options = parser.parse_args()
    print(f"{'us':28}" + "".join(f"{text:>16}" for text in options.targets))
    ratios = []
    for name, kernel in KERNELS.items():
        if options.kernel in name:
            found = times(kernel, options.targets)
            ratios.append([seconds / found[0] for seconds in found])
            print(f"{name:28}" + "".join(f"{seconds * 1e6:16.2f}" for seconds in found), flush=True)
    print(f"{'relative':28}" + "".join(f"{ratio:16.3f}" for ratio in np.exp(np.mean(np.log(ratios), axis=0))))


if __name__ == "__main__":
    main()
