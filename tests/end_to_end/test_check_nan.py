"""BW_CHECK=nan: the value where a nan or an infinity of compiled code began."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BW_CHECK", "nan")


def function(w: Any, x: Any) -> Any:
    h = x * w
    r = np.sqrt(h)  # of h
    masked = np.where(h > 0, np.log(h), 0.0)
    return np.sum(r) + np.sum(masked)


def message(call: Any) -> str:
    with pytest.raises(FloatingPointError) as found:
        call()
    return str(found.value)


W = np.ones(3)


def test_sound_results_and_masked_branches_pass() -> None:
    assert np.isfinite(bw.jit(function)(W, np.array([1.0, 0.0, 2.0])))
    assert bw.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))(np.array([0.0, 4.0])).tolist() == [0.0, 0.25]
    assert bw.jit(lambda k: k + 1)(np.arange(3)).tolist() == [1, 2, 3]


def test_a_value() -> None:
    text = message(lambda: bw.jit(function)(W, np.array([1.0, -4.0, 2.0])))
    assert text.startswith("BW_CHECK=nan: result 0 of function is nan\n")
    assert re.search(r"test_check_nan.py:\d+: r = np.sqrt\(h\)  # of h\n  %r\[1\] = nan was computed by sqrt\n    of %h\[1\] = -4.0$", text)


def test_a_cotangent() -> None:
    """The slope of sqrt at 0 is where it began, not the product of it with 0."""
    text = message(lambda: bw.grad(function)(W, np.array([1.0, 0.0, 2.0])))
    assert re.search(r"test_check_nan.py:\d+: r = np.sqrt\(h\)", text)
    assert re.search(r"\[1\] = inf was computed by \w+, which belongs to the derivative of %r \(.*test_check_nan.py:\d+\)\n    of .*\[1\] = ", text)


def test_an_argument_and_an_array_from_outside() -> None:
    assert message(lambda: bw.jit(function)(np.array([1.0, np.nan, 2.0]), W)).endswith("the argument %w[1] is nan")
    table = np.array([1.0, np.inf])
    assert "an array from outside %captured_0[1] is inf" in message(lambda: bw.jit(lambda x: x * table)(np.ones(2)))


def test_infinities_of_arguments_are_not_where_a_nan_began() -> None:
    text = message(lambda: bw.jit(lambda x: np.exp(x - np.max(x)))(np.full(3, -np.inf)))
    assert "%subtract[0] = nan was computed by subtract\n    of %x[0] = -inf" in text


def test_operands_of_ops_over_many_elements() -> None:
    text = message(lambda: bw.jit(lambda x: np.sum(x))(np.full(6, 1e308)))
    assert "%sum = inf was computed by sum\n    of %x: f64[6] = 1e+308, 1e+308, 1e+308, 1e+308, ... (1e+308 to 1e+308)" in text


def test_programs_pullbacks_and_transforms() -> None:
    program = bw.compile(lambda x: np.log(x), np.ones(2))
    assert "was computed by log" in message(lambda: program(np.zeros(2)))
    assert "of log" in message(lambda: bw.vjp(np.log, np.zeros(2)))
    assert "was computed by" in message(lambda: bw.jvp(np.log, (np.zeros(2),), (np.ones(2),)))
    assert "was computed by" in message(lambda: bw.vmap(np.log)(np.zeros(2)))
    assert np.isfinite(bw.vjp(np.log, np.ones(2))[1](np.ones(2))[0]).all()


def test_arguments_that_are_assigned_to_are_shown_as_they_were() -> None:
    def scale(x: Any) -> Any:
        y = np.sum(np.log(x))
        x[:] = 1.0
        return y

    x = np.array([0.0, 2.0])
    assert "of %x[0] = 0.0" in message(lambda: bw.jit(scale)(x))


def test_later_calls_are_checked_too() -> None:
    compiled = bw.jit(np.log)
    for _ in range(2):
        assert compiled(np.ones(2)).tolist() == [0.0, 0.0]
    assert "was computed by log" in message(lambda: compiled(np.zeros(2)))


def test_other_checks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BW_CHECK", "everything")
    with pytest.raises(ValueError, match="BW_CHECK='everything'"):
        bw.jit(lambda x: x * 3)(np.ones(2))


# ----- inside of loops and branches
def logarithms(x: Any) -> Any:
    return bw.scan(lambda c, e: (np.log(c) - e, c), x, np.ones(4))[0]  # of the second


def roots(x: Any) -> Any:
    return bw.while_loop(lambda s: s[1] < 9, lambda s: (np.sqrt(s[0]) - 0.5, s[1] + 1), (x, 0))[0]


def chosen(x: Any) -> Any:
    return bw.cond(x > 0, lambda x: np.log(x - 2.0), np.sin, x)


def nested(x: Any) -> Any:
    return bw.fori_loop(0, 3, lambda k, c: c + bw.fori_loop(0, 4, lambda j, d: np.sqrt(d - j), c), x)


CASES: dict[str, Any] = {
    "scan": (logarithms, 2.0, ["computed by log, in iteration 1 of the loop in", "of %c = -0.3"]),
    "the derivative of a scan": (bw.grad(logarithms), 2.0, ["computed by log, in iteration 1 of the loop in"]),
    "a mapped scan": (bw.vmap(logarithms), np.array([9.0, 2.0]), ["log[0] = nan was computed by log, in iteration 2", "of %c[0] = -0.8"]),
    "while": (roots, 1.0, ["computed by sqrt, in iteration 3 of the while loop in"]),
    "cond": (chosen, 1.0, ["computed by log, in the branch of the cond in", "for True"]),
    "nested": (nested, 3.0, ["computed by sqrt, in iteration 2 of the loop in", ", in iteration 0 of the loop in"]),
    "checkpoint": (lambda x: bw.checkpoint(lambda x: np.log(-x) * x)(x), 2.0, ["computed by log", "= -2.0"]),
    "what came in": (lambda x: bw.fori_loop(0, 3, lambda k, c: c * 2.0, np.log(x)), -1.0, ["computed by log", "of %x = -1.0"]),
    "what is read": (lambda x: (lambda y: bw.fori_loop(0, 3, lambda k, c: c + y, x))(np.log(x)), -1.0, ["computed by log", "of %x = -1.0"]),
    "a stack": (lambda x: bw.scan(lambda c, e: (c - 1.0, np.sqrt(c)), x, None, length=4)[1], 2.0, ["computed by sqrt, in iteration 3"]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kept", [0, 1 << 28], ids=["few states kept", "all states kept"])
def test_inside_of_loops_and_branches(name: str, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bwcompiler.api.programs.finite.KEPT_BYTES", kept)
    function, x, expected = CASES[name]
    found = message(lambda: bw.jit(function)(x))
    assert all(text in found for text in expected), found


def test_what_a_loop_masks_is_no_finding() -> None:
    masked = lambda x: bw.fori_loop(0, 3, lambda k, c: np.where(c > 0, np.log(np.abs(c)) + c, c - 1.0), x)
    assert np.isfinite(bw.jit(masked)(np.array([0.0, 1.0]))).all()
