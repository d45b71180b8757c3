"""`match` on what data decides: numbers, texts and members of enumerations."""

import enum

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError

X = np.random.default_rng(5).random(15)


class Phase(enum.Enum):
    REST = 0
    RISING = 1
    FALLING = 2


def of_numbers(x):
    total = 0.0
    for v in x:
        match int(3 * v):
            case 0:
                total += v
            case 1 if v > 0.5:
                total -= 2 * v
            case 1 | 2:
                total *= 1.0 + v
            case _:
                total = 100.0
    return total


def of_members(x):
    phase, level, left = Phase.REST, 0.0, -1.0
    for v in x:
        match phase:
            case Phase.REST:
                if v > 0.5:
                    phase = Phase.RISING
                continue
            case Phase.RISING if level > 2.0:
                phase = Phase.FALLING
            case Phase.RISING:
                level += v
            case Phase.FALLING:
                level -= v
                if level < 1.0:
                    left = v
                    break
    return level + left, phase is Phase.FALLING


def of_texts_and_none(x):
    def named(v):
        match "low" if v < 0.3 else None if v < 0.6 else "high":
            case "low":
                return -v
            case None:
                return 0.0
            case "high" | "huge":
                return v ** 2
        return 7.0

    return sum([named(v) for v in x])


def of_guards(x):
    total = 0.0
    for v in x:
        match v - 0.5:
            case e if abs(e) > 0.4:
                total += e
            case e if e > 0:
                total -= 2 * e ** 2
            case other:
                total += other ** 2 + e
    return total


def without_a_case(x):
    match int(x[0] > 2):
        case 1:
            x = x * 2
        case 2:
            x = x * 3
    return x.sum()


@pytest.mark.parametrize("program", [of_numbers, of_members, of_texts_and_none, of_guards, without_a_case])
def test_program(program):
    compiled = bw.jit(program)
    for shift in (0.0, 0.3, 0.7):
        x = (X + shift) % 1.0
        np.testing.assert_allclose(compiled(x), program(x), rtol=1e-13)


def test_gradient():
    bw.check_grads(of_numbers, (0.9 * X,), order=1)
    bw.check_grads(of_guards, (X,), order=1)


def test_patterns_that_bind_names_keep_their_form():
    def known(x):
        match x.shape:
            case (n,):
                return x.sum() * n
            case (n, m):
                return x.sum() + n * m

    np.testing.assert_allclose(bw.jit(known)(X), known(X), rtol=1e-14)
    with pytest.raises(TracerError, match="case 1"):
        def program(x):
            match int(x[0] > 0):
                case 1 as found:
                    return x * found
            return x
        bw.jit(program)(X)
