"""Random programs with loops, branches and assignments (`support/source_programs.py`): what NumPy computes, also of the arguments, and gradients.

Values are compiled; gradients are interpreted, since compiling them takes most of the time, and compiled in the campaign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError, UnsupportedError
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.support.gradcheck import directional, inner
from tests.support.source_programs import arguments, source_program

DEFAULT = (0, 1, 2, 3, 5, 6, 7, 8)
REFUSED_LATE = 4                   # of floats: refused after half a minute, since each loop in a loop is recorded in several ways
CAMPAIGN = range(1000, 1400)
CAMPAIGN_CHUNK = 50
LARGEST = 1e4                      # programs whose numbers grow beyond are left out
REFUSALS = (TracerError, UnsupportedError)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def copies(args: Sequence[Any]) -> list[Any]:
    return [np.copy(x) for x in args]


def run(program: Callable[..., Any], args: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
    """What NumPy returns, and what is in the arguments then; None where there is an error, or numbers that are too large."""
    given = copies(args)
    try:
        found = [np.copy(x) for x in program(*given)]
    except (IndexError, ValueError, UnboundLocalError):
        return None
    return (found, given) if all(np.all(np.abs(x) < LARGEST) for x in found) else None


def check_values(seed: int, kind: str) -> bool:
    """Whether the program was compiled (it may be refused, with an error that says what to write)."""
    program = source_program(seed, kind)
    compiled = bw.jit(program)
    for number in range(3):
        args = arguments(10 * seed + number, kind)
        expected = run(program, args)
        if expected is None:
            continue
        given = copies(args)
        try:
            found = compiled(*given)
        except REFUSALS:
            return False
        for x, y in zip([*found, *given], [*expected[0], *expected[1]], strict=True):
            assert (np.asarray(x).dtype, np.shape(x)) == (y.dtype, y.shape), program.text
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10 * (1 + np.max(np.abs(y))), err_msg=program.text)
    return True


def gradient_of(program: Callable[..., Any], args: Sequence[Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The weighted sum of all results, and its gradient in all arguments."""
    weights = [np.random.default_rng(k).uniform(-1, 1, np.shape(x)) for k, x in enumerate(program(*copies(args)))]

    def total(*given: Any) -> Any:
        found = program(*given)
        result = 0.0
        for x, weight in zip(found, weights, strict=True):
            result = result + np.sum(x * weight)
        return result.real

    return total, bw.grad(total, argnums=(0, 1, 2, 3))


def check_gradient(seed: int, kind: str, compiled: bool = False) -> bool:
    """As check_values, for the gradient: along a direction, against differences (where these agree with each other: at no kink)."""
    program, args = source_program(seed, kind), arguments(10 * seed, kind)
    if run(program, args) is None:
        return True
    total, gradient = gradient_of(program, args)
    rng = np.random.default_rng(seed)
    tangents = [rng.uniform(-1, 1, np.shape(x)) + (1j * rng.uniform(-1, 1, np.shape(x)) if kind == "c" else 0) for x in args]

    def along(h: float) -> Any:
        return total(*[x + h * t for x, t in zip(args, tangents, strict=True)])
    try:
        traced = trace(gradient.fun, args)
        found = gradient(*args) if compiled else interpret(traced.graph, [*args, *traced.captured])
    except REFUSALS:
        return False
    product = sum(inner(np.real(g), np.real(t)) - inner(np.imag(g), np.imag(t)) for g, t in zip(found, tangents, strict=True))
    one, other = directional(along), directional(lambda h: along(0.1 * h)) * 10.0
    if abs(one - other) <= 1e-7 * max(1.0, abs(one)):
        scale = max(1.0, *[float(np.max(np.abs(g))) for g in found])
        assert abs(product - one) <= 1e-6 * max(scale, abs(one)), f"{product} != {one}: {program.text}"
    tangent = bw.jvp(total, args, tangents)[1] if compiled else product
    assert abs(tangent - product) <= 1e-8 * max(1.0, abs(product)), program.text
    return True


@pytest.mark.parametrize("kind", "fc")
@pytest.mark.parametrize("check", [check_values, check_gradient])
def test_programs(check: Callable[[int, str], bool], kind: str) -> None:
    accepted = [check(seed, kind) for seed in DEFAULT]
    assert sum(accepted) >= 0.7 * len(DEFAULT), "most programs must compile"


@pytest.mark.slow
def test_five_loops_in_each_other_are_refused_or_right() -> None:
    check_values(REFUSED_LATE, "f")
    check_gradient(REFUSED_LATE, "f")


@pytest.mark.slow
@pytest.mark.parametrize("kind", "fc")
@pytest.mark.parametrize("start", range(CAMPAIGN.start, CAMPAIGN.stop, CAMPAIGN_CHUNK))
def test_campaign(start: int, kind: str) -> None:
    seeds = range(start, start + CAMPAIGN_CHUNK)
    accepted = [*[check_values(seed, kind) for seed in seeds], *[check_gradient(seed, kind, compiled=True) for seed in seeds]]
    assert sum(accepted) >= 0.7 * len(accepted), "most programs must compile"
