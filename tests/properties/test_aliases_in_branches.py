"""Random programs whose branches give arrays other names, and write to them by these: what Python computes, or a refusal."""

from __future__ import annotations

import random

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.support.source import from_text

NAMES = ("a", "b", "c", "d")
TESTS = ("s > 0.5", "s > 0", "a[0] > b[0]", "c[1] > 1.0", "d[0] < s")
ARGUMENTS = [(np.array(a), np.array(b), s) for s in (-1.0, 0.3, 0.8)
             for a, b in (([1.0, 2.0, 3.0], [0.5, 4.0, 2.0]), ([0.2, 0.7, 3.0], [0.5, 1.0, 2.0]))]


class _Program:
    """Two arguments and two variables, bound to each other and written to in branches up to two deep."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = ["def program(a, b, s):", f"    c, d = {self.random.choice(('a, b * 1', 'b * 2, a'))}"]
        self.block(0)
        self.lines += [f"    {self.write()}" for _ in range(3)]
        if self.random.random() < 0.5:
            self.block(0)
        self.lines.append("    return a * 1, b * 1, c * 1, d * 1")

    def value(self) -> str:
        one, other = self.random.choice(NAMES), self.random.choice(NAMES)
        return self.random.choice((one, one, f"{one} * {other}", f"{one}.copy()"))

    def write(self) -> str:
        operator = self.random.choice(("=", "+=", "*="))
        return f"{self.random.choice(NAMES)}[{self.random.randint(0, 2)}] {operator} {round(self.random.uniform(-2, 3), 2)}"

    def block(self, depth: int) -> None:
        indent = " " * (4 * depth + 4)
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.3 and depth < 2:
                self.lines.append(f"{indent}if {self.random.choice(TESTS)}:")
                self.block(depth + 1)
                if self.random.random() < 0.5:
                    self.lines.append(f"{indent}else:")
                    self.block(depth + 1)
            elif kind < 0.75:
                self.lines.append(f"{indent}{self.random.choice(NAMES[2:])} = {self.value()}")
            else:
                self.lines.append(indent + ("c, d = d, c" if kind < 0.85 else self.write()))


def check(seed: int) -> bool:
    """Whether the program was traced (it may be refused)."""
    text = "\n".join(_Program(seed).lines) + "\n"
    program = from_text(text, "program")
    compiled = bw.jit(program)
    for a, b, s in ARGUMENTS:
        mine, theirs = (a.copy(), b.copy()), (a.copy(), b.copy())
        try:
            found = compiled(*mine, s)
        except (BwError, ValueError):
            return False
        for one, other in zip((*found, *mine), (*program(*theirs, s), *theirs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=text)
    return True


def test_programs() -> None:
    accepted = [check(seed) for seed in range(120)]
    assert sum(accepted) >= 105, "most programs must be traced"


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 2000, 100))
def test_campaign(start: int) -> None:
    accepted = [check(seed) for seed in range(start, start + 100)]
    assert sum(accepted) >= 85, "most programs must be traced"
