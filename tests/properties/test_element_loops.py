"""Random nests of loops over single elements that update matrices in place, as factorisations, triangular systems and dynamic programming do.

Values are NumPy's, gradients those of differences, second derivatives those of differences of gradients: what becomes of such loops
(elements in the places of arrays, array code, undo logs, sums in the places of updates) changes neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.support.gradcheck import directional, inner
from tests.support.source import from_text

DEFAULT = range(16)
CAMPAIGN = range(1000, 1400)
CAMPAIGN_CHUNK = 50
SECOND = 8                         # one of so many has its second derivative checked too
LARGEST = 1e5                      # derivatives beyond that are steeper than differences tell

OUTER = ("range(n)", "range(1, n)", "range(n - 1, -1, -1)", "range(n - 1)")
MIDDLE = (*OUTER, "range(i)", "range(i + 1)", "range(i + 1, n)", "range(i, n)", "range(i - 1, -1, -1)", "range(max(0, i - 2), i)",
          "range(i, min(n, i + 2))")
INNER = (*MIDDLE, "range(j)", "range(j + 1)", "range(j + 1, n)", "range(min(i, j))", "range(max(0, j - 2), i)")


class _Writer:
    """The text of one program."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []

    def choose(self, options: Sequence[str]) -> str:
        return str(self.rng.choice(list(options)))

    def element(self, indices: str, arrays: str = "AABx") -> str:
        array = self.choose(arrays)
        first, second = [self.choose(indices) for _ in range(2)]
        if self.rng.random() < 0.1:
            second = f"{second} - 1"
        return f"{array}[{second}]" if array == "x" else f"{array}[{first}, {second}]"

    def term(self, indices: str) -> str:
        one, other = self.element(indices), self.element(indices)
        return self.choose([f"0.3 * {one} * {other}", f"np.sin({one})", f"0.2 * {one}", f"0.3 * {one} * {other}", f"{one} / (2.0 + {other} ** 2)",
                            f"0.1 * s * {one}", f"max({one}, {other})"])

    def statement(self, indices: str, depth: int) -> None:
        target = "s" if self.rng.random() < 0.15 else self.element(indices[:2] if self.rng.random() < 0.7 else indices, "AAx")
        operator = self.choose(["=", "-=", "+=", "-=", "+=", "*=", "/="])
        value = self.term(indices)
        if operator in ("*=", "/="):
            value = f"(1.3 + np.cos({value}))"
        if operator == "=" and self.rng.random() < 0.5:
            value = f"0.7 * {target} + {value}"
        self.lines.append("    " * depth + f"{target} {operator} {value}")

    def loop(self, depth: int) -> None:
        indices = "ijk"[:depth]
        self.lines.append("    " * depth + f"for {indices[-1]} in {self.choose((OUTER, MIDDLE, INNER)[depth - 1])}:")
        for _ in range(self.rng.integers(1, 3)):
            if depth < 3 and self.rng.random() < 0.6:
                self.loop(depth + 1)
            else:
                self.statement(indices, depth + 1)


def element_program(seed: int) -> Callable[..., Any]:
    """The program of this number; its `text` is an attribute."""
    writer = _Writer(seed)
    for _ in range(writer.rng.integers(1, 3)):
        writer.loop(1)
    name = f"element_program_{seed}"
    text = (f"import numpy as np\ndef {name}(A, B, x):\n    A, x, s, n = A.copy(), x.copy(), 0.5, len(A)\n" + "\n".join(writer.lines)
            + "\n    return A, x, s * 1.0\n")
    program = from_text(text, name)
    program.text = text                                                # type: ignore[attr-defined]
    return program


def arguments(seed: int, size: int = 4) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, (size, size)), rng.uniform(-1, 1, (size, size)), rng.uniform(-1, 1, size)]


def check(seed: int, compiled: bool) -> bool:
    """Whether the numbers of a program were those of a function with a derivative at this point, and as they should be."""
    program, args = element_program(seed), arguments(seed)
    weights = [np.random.default_rng(k).uniform(-1, 1, np.shape(x)) for k, x in enumerate(program(*args))]
    rng = np.random.default_rng(seed)
    tangents = [rng.uniform(-1, 1, x.shape) for x in args]

    def total(*given: Any) -> Any:
        return sum(np.sum(x * weight) for x, weight in zip(program(*given), weights, strict=True))

    def run(fun: Callable[..., Any]) -> Any:
        traced = trace(fun, args)
        return interpret(traced.graph, [*args, *traced.captured])

    gradient = bw.value_and_grad(total, argnums=(0, 1, 2))
    if compiled:
        value, gradients = gradient(*args)
    else:
        value, *gradients = run(gradient.fun)
    product = sum(inner(g, t) for g, t in zip(gradients, tangents, strict=True))
    scale = max(1.0, abs(product), *[float(np.max(np.abs(g))) for g in gradients])

    def along(h: float) -> Any:
        return total(*[x + h * t for x, t in zip(args, tangents, strict=True)])
    one, other = directional(along), directional(lambda h: along(0.1 * h)) * 10.0
    if scale > LARGEST or abs(one - other) > 1e-8 * scale:
        return False                                                   # a kink, or too steep
    np.testing.assert_allclose(value, total(*args), rtol=1e-9, atol=1e-9, err_msg=program.text)
    if compiled:
        for found, expected in zip(bw.jit(program)(*args), program(*args), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=program.text)
    assert abs(product - one) <= 1e-6 * scale, f"{product} != {one}: {program.text}"
    if seed % SECOND == 0:
        check_second(program, total, args, tangents)
    return True


def check_second(program: Callable[..., Any], total: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> None:
    """The derivative of a gradient along a direction, in the same direction, against that of values."""
    def slope(*given: Any) -> Any:
        return sum(np.sum(g * t) for g, t in zip(bw.grad(total, argnums=(0, 1, 2))(*given), tangents, strict=True))
    traced = trace(bw.grad(slope, argnums=(0, 1, 2)).fun, args)
    found = interpret(traced.graph, [*args, *traced.captured])
    product = sum(inner(g, t) for g, t in zip(found, tangents, strict=True))
    first = trace(slope, args)

    def along(h: float) -> Any:
        return interpret(first.graph, [*[x + h * t for x, t in zip(args, tangents, strict=True)], *first.captured])[0]
    one, other = directional(along), directional(lambda h: along(0.1 * h)) * 10.0
    scale = max(1.0, abs(product), *[float(np.max(np.abs(g))) for g in found])
    if scale <= LARGEST and abs(one - other) <= 1e-8 * scale:
        assert abs(product - one) <= 1e-6 * scale, f"{product} != {one}: {program.text}"


@pytest.mark.parametrize("start", DEFAULT[::4])
def test_programs(start: int) -> None:
    smooth = [check(seed, compiled=seed == start) for seed in range(start, start + 4)]
    assert any(smooth), "programs have derivatives"


@pytest.mark.slow
@pytest.mark.parametrize("start", CAMPAIGN[::CAMPAIGN_CHUNK])
def test_campaign(start: int) -> None:
    for seed in range(start, start + CAMPAIGN_CHUNK):
        check(seed, compiled=True)
