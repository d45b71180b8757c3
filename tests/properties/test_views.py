"""Random programs of views and writes, on arguments in several memory orders: NumPy's results, and NumPy's arguments afterwards.

Which reshapes are views, and so what a write changes, depends on the order.  A trace that does not name an argument in
`layout_dependent` must hold for every order of that argument, so each is run on other orders than those it was traced with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import TraceResult, trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.properties.test_memory_order import ORDERS
from tests.support.arrays import strided_copy

DEFAULT = range(300)
CHUNK = 50
COMPILED = 25               # one program in so many is compiled and called, too
CAMPAIGN = range(10_000, 20_000)
CAMPAIGN_CHUNK = 500

SHAPES = ((6,), (3, 4), (3, 4), (4, 1), (2, 3, 2), (2, 1, 3), (1, 1))
Array = np.ndarray[Any, Any]


class Writer:
    """Writes one program, statement by statement, while NumPy runs it on arrays in C order."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 77])
        shapes = [self.choice(SHAPES) for _ in range(int(self.rng.integers(1, 3)))]
        self.arguments: dict[str, Array] = {name: np.asarray(self.rng.integers(-8, 9, shape) / 4)
                                            for name, shape in zip("xy", shapes, strict=False)}
        self.env: dict[str, Any] = {name: x.copy() for name, x in self.arguments.items()}
        self.lines: list[str] = []

    def choice(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def write(self) -> str:
        attempts = 0
        wanted = int(self.rng.integers(4, 12))
        while len(self.lines) < wanted and attempts < 200:
            attempts += 1
            name = self.choice(list(self.env)[-5:])
            kind = self.rng.random()
            if kind < 0.45:
                self.run(f"a{len(self.lines)} = {self.view(name, self.env[name].shape)}")
            elif kind < 0.6:
                self.run(f"a{len(self.lines)} = {self.result(name, self.choice(list(self.env)))}")
            else:
                self.run(self.update(name))
        return f"def program({', '.join(self.arguments)}):\n" + "".join(f"    {line}\n" for line in self.lines) + (
            f"    return {', '.join(list(self.env)[len(self.arguments):] or self.arguments)},\n")

    def run(self, line: str) -> None:
        before = dict(self.env)
        try:
            exec(line, {"np": np}, self.env)
        except (ValueError, IndexError, TypeError):
            self.env = before
            return
        if any(x.ndim == 0 or x.size > 200 or x.ndim > 4 or (x.size and np.abs(x).max() > 1e6) for x in self.env.values()):
            self.env = before               # (an in-place update stays; it only scales what later statements see)
            return
        self.lines.append(line)

    def shape(self, size: int) -> str:
        options = ((size,), (-1, 2), (2, -1), (3, -1), (-1, 3), (1, -1), (2, 2, -1), (2, -1, 3), (4, -1), (-1, 6), (3, 1, -1))
        return ", ".join(map(str, self.choice(options)))

    def view(self, name: str, shape: tuple[int, ...]) -> str:
        index = ", ".join(self.choice((":", "1:", "::-1", "::2", ":2", "0", "-1", "None, :")) for _ in shape[:int(self.rng.integers(1, 4))]) or "..."
        axes = [int(k) for k in self.rng.permutation(len(shape))]
        return str(self.choice((
            f"{name}.reshape({self.shape(self.env[name].size)})", f"{name}.reshape({self.shape(self.env[name].size)})",
            f"{name}.reshape({self.shape(self.env[name].size)}, order='F')", f"{name}.ravel()", f"{name}.ravel('F')", f"{name}.ravel('K')",
            f"{name}.T", f"{name}.T", f"np.transpose({name}, {axes})", f"{name}.swapaxes(0, -1)", f"{name}[{index}]", f"{name}[{index}]",
            f"{name}[..., None]", f"np.squeeze({name})", f"np.flip({name}, 0)", f"np.broadcast_to({name}, (2,) + {name}.shape)",
            f"np.diagonal({name})", f"np.moveaxis({name}, 0, -1)", f"{name}.astype(float, order='C', copy=False)", f"{name}.reshape({name}.shape)")))

    def result(self, name: str, other: str) -> str:
        return str(self.choice((
            f"{name} * 2", f"{name} + {other}", f"{name}.copy({self.choice(('', repr('K'), repr('F'), repr('A')))})", f"np.concatenate([{name}, {name}])",
            f"np.concatenate([{name}.T, {name}.T])", f"np.stack([{name}, {name}], -1)", f"np.sort({name}, axis=0)", f"np.cumsum({name}, axis=-1)",
            f"{name}[[0, 0]]", f"np.take({name}, [0, 0], axis=-1)", f"np.zeros_like({name})", f"np.where({name} > 0, {name}, {other})",
            f"np.sum({name}, axis=0)", f"np.max({name}, axis=-1, keepdims=True)", f"np.roll({name}, 1, 0)", f"np.tile({name}, 2)",
            f"np.repeat({name}, 2, axis=0)", f"np.clip({name}, -1, 1)", f"np.pad({name}, 1)", f"{name} @ {name}.T", f"np.tril({name})",
            f"np.einsum('ij->ji', {name}) * 1", f"{name}.flatten('K')", f"np.add.outer({name}, {name}[0])", f"np.select([{name} > 0], [{name}], 3)")))

    def update(self, name: str) -> str:
        shape = self.env[name].shape
        index = ", ".join(self.choice((":", "1:", "::-1", "::2", "0", "-1", "[0, -1]")) for _ in shape[:int(self.rng.integers(1, 3))]) or "..."
        number = int(self.rng.integers(-9, 10))
        return str(self.choice((
            f"{name}[{index}] = {number}", f"{name}[{index}] = {number}", f"{name}[{index}] += {number}", f"{name} += {number}", f"{name} *= -1",
            f"{name}[...] = {self.choice(list(self.env))}", f"{name}.flat[{number % max(self.env[name].size, 1)}] = {number}",
            f"np.put({name}, [0, -1], [{number}, 5])", f"{name}.fill({number})", f"np.copyto({name}, {name} * 2)",
            f"np.negative({name}, out={name})", f"{name}.sort(0)", f"np.fill_diagonal({name}, {number})", f"{name}.reshape(-1)[0] = {number}",
            f"{name}.ravel()[-1] += {number}")))


def compiled_source(text: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"np": np}
    exec(compile(text, "<program>", "exec"), namespace)
    function: Callable[..., Any] = namespace["program"]
    return function


def numpys(function: Callable[..., Any], arrays: Sequence[Array]) -> tuple[Any, list[Array]] | None:
    """NumPy's results and the arguments afterwards; None where it refuses (a view is read-only where a copy is not)."""
    changed = [strided_copy(x) for x in arrays]
    try:
        return function(*changed), changed
    except ValueError:
        return None


def traced_results(result: TraceResult, arrays: Sequence[Array]) -> tuple[Any, list[Array]]:
    found = interpret(result.graph, [*[x.copy() for x in arrays], *result.captured])
    finals = dict(zip(result.mutated, found[len(result.outputs):], strict=False))
    return found[:len(result.outputs)], [finals.get(k, x) for k, x in enumerate(arrays)]


def same(found: tuple[Any, list[Array]], expected: tuple[Any, list[Array]], what: str) -> None:
    for one, other in zip([*found[0], *found[1]], [*expected[0], *expected[1]], strict=True):
        np.testing.assert_array_equal(one, other, err_msg=what)


def check(seed: int) -> None:
    writer = Writer(seed)
    text = writer.write()
    function = compiled_source(text)
    arguments = list(writer.arguments.values())
    traces: list[tuple[list[str], TraceResult]] = []
    for number in range(4):
        names = [writer.choice(list(ORDERS)) for _ in arguments] if number else ["C"] * len(arguments)
        arrays = [ORDERS[name](x) for name, x in zip(names, arguments, strict=True)]
        what = f"program {seed} on {names}:\n{text}"
        expected = numpys(function, arrays)
        if expected is None:
            with pytest.raises(ValueError, match="read-only"):
                trace(function, arrays)
            continue
        result = trace(function, arrays)
        same(traced_results(result, arrays), expected, what)
        for traced_names, other in traces:
            if all(names[k] == traced_names[k] for k in other.layout_dependent):
                same(traced_results(other, arrays), expected, f"traced on {traced_names}: {what}")
        traces.append((names, result))
        if number == 1 and seed % COMPILED == 0:
            changed = [strided_copy(x) for x in arrays]
            same((bw.jit(function)(*changed), changed), expected, f"compiled: {what}")


@pytest.mark.parametrize("start", range(DEFAULT.start, DEFAULT.stop, CHUNK))
def test_programs(start: int) -> None:
    for seed in range(start, start + CHUNK):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(CAMPAIGN.start, CAMPAIGN.stop, CAMPAIGN_CHUNK))
def test_campaign(start: int) -> None:
    for seed in range(start, start + CAMPAIGN_CHUNK):
        check(seed)
