"""`Program.explain()`: whole texts of representative programs, and each kind of reason in a program of its own."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
import bwcompiler.numpy as bnp
from bwcompiler.frontend import trace
from bwcompiler.inspect.explanation import bytes_text
from bwcompiler.inspect.gradient_reasons import derivative_flow, way_to, ways_from
from bwcompiler.passes.fusion import attempt as fusion_attempt
from bwcompiler.passes.fusion import fuse
from bwcompiler.passes.fusion import rules as fusion_rules
from bwcompiler.passes.memory import find_updates, plan_memory
from tests.support.source import from_text

HEADER = "import numpy as np\nimport bwcompiler as bw\nimport bwcompiler.numpy as bnp\n\n"
LAYER = HEADER + """\
def layer(x, w, b, labels):
    hidden = np.tanh(x @ w + b)
    centred = hidden - np.mean(hidden, axis=0)
    return np.mean((centred - labels) ** 2)
"""
FIT = HEADER + """\
def fit(x, threshold, count, sharpness, unused):
    bins = (x * count).astype(int)
    above = x > threshold
    frozen = bw.stop_gradient(x * sharpness)
    return np.sum(np.where(above, x ** 2, frozen) + np.floor(threshold) + bins)
"""
MARCH = HEADER + """\
def march(x, decay):
    y = bnp.zeros(12)
    y[0] = x[0]
    for t in range(1, 12):
        y[t] = y[t - 1] * decay + x[t]
    return y, np.sum(y ** 2)
"""
SOLVE = HEADER + """\
def solve(a, v, i):
    x = np.linalg.solve(a, v)
    picked = np.cumsum(x)[i]
    return np.sum(np.sort(picked) * picked)
"""


@pytest.mark.parametrize(("text", "name", "arguments", "wrt"), [
    (LAYER, "layer", (np.ones((32, 8)), np.ones((8, 4)), np.ones(4), np.ones((32, 4))), (1, 2)),
    (FIT, "fit", (np.ones(10), 0.5, 3, 2.0, 1.0), None),
    (MARCH, "march", (np.ones(12), 0.9), None),
    (SOLVE, "solve", (np.eye(3), np.ones(3), np.arange(2)), None),
], ids=["layer", "fit", "march", "solve"])
def test_reads_well(golden, text, name, arguments, wrt):
    golden(bw.compile(from_text(text, name), *arguments, wrt=wrt, autoloop=False).explain())


# ----- gradients
@bw.custom_vjp
def scaled(x, factor):
    return x * factor


scaled.defvjp(lambda x, factor: (scaled(x, factor), factor), lambda factor, ct: (ct * factor, None))


@bw.custom_vjp
def flat(x):
    return x * 2.0


flat.defvjp(lambda x: (flat(x), x), lambda x, ct: (np.zeros_like(ct),))
X = np.ones(3)
# What is expected stands in a line of its own: `explain` quotes the lines of functions.
GRADIENTS = {
    "dtype": (lambda x, n: x * n, (X, np.arange(3)),
              "gradient of n is None: its dtype is int64"),
    "unused": (lambda x, y: (x, y * 0)[0], (X, X),
               "gradient of y is zero: no returned value depends on it"),
    "cast": (lambda x: np.sum(x) + x.astype(int).astype(float), (X,),
             "the conversion to int64 has no derivative"),
    "stop_gradient": (lambda x: x * bw.stop_gradient(x), (X,),
                      "stop_gradient was applied"),
    "comparison": (lambda x, y: x * (y > 0.5), (X, X),
                   "greater: a boolean result has no derivative"),
    "piecewise": (lambda x: x + np.floor(x), (X,),
                  "floor: piecewise constant: its derivative is zero"),
    "position": (lambda x: x + np.argmax(x), (X,),
                 "argmax: a position has no derivative"),
    "integer output": (lambda x: np.argsort(x), (X,),
                       "gradient of x is zero: on every path from it to a returned value"),
    "operand": (lambda x, y: np.nextafter(x, y), (X, X),
                "nextafter: y only gives the direction"),
    "own rule": (lambda x, y: scaled(x, y), (X, X),
                 "the function's own backward rule gives None for it"),
    "zero": (lambda x: np.sum(flat(x)), (X,),
             "gradient of x is zero: the derivatives on the path from it"),
    "computed": (lambda x: np.sum(x), (X,),
                 "gradient of x is computed: f64[3], 24 B"),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_reason_of_a_gradient(name):
    function, arguments, expected = GRADIENTS[name]
    assert expected in bw.compile(function, *arguments).explain()


def test_own_rule_says_nothing_of_the_argument_that_it_differentiates():
    assert "gradient of x is computed" in bw.compile(lambda x, y: scaled(x, y), X, X).explain()
    text = bw.compile(lambda x: scaled(x, x), X).explain()
    assert "gradient of x is computed" in text and "(to x)\n    the function's own backward rule gives None for it" in text


def test_a_gradient_that_is_an_array_from_outside():
    constant = bw.custom_vjp(lambda x: x * 2.0)
    constant.defvjp(lambda x: (constant(x), None), lambda _, ct: (np.ones(3),))
    assert "the gradient of x is an array from outside of the function" in bw.compile(lambda x: np.sum(constant(x)), X).explain()


def test_wrt():
    text = bw.compile(lambda x, y: x * y, X, X, wrt=(1,)).explain()
    assert "gradient of x is None: it is not in wrt" in text and "gradient of y is computed" in text


def test_numbers_of_a_list_of_which_the_same_is_said_are_told_together():
    def rows(x, trials, sizes):
        return sum(x * time * (2.0 if choice == 1 else 3.0) for time, choice in trials) + len(np.zeros(sizes[0] + sizes[1]))

    text = bw.grad(rows).explain(1.0, [(0.5, k % 2) for k in range(20)], [2, 3]).splitlines()
    [told] = [line for line in text if "trials." in line]
    assert told.startswith("trials.0.0 and 39 more of trials.*.* are compiled in: their values are needed while tracing (test_explain.py:")
    assert [line.partition(":")[0] for line in text if line.startswith("sizes.")] == ["sizes.0 = 2 is compiled in", "sizes.1 = 3 is compiled in"]
    text = bw.grad(lambda x, ys: x * sum(ys)).explain(1.0, [1.0, 2.0, 3.0, 4.0, 5.0]).splitlines()
    assert "gradient of ys.0 and 4 more of ys.* is None: they are not in wrt" in text


def test_way_shows_the_lines_in_order():
    function = from_text(HEADER + "def way(x):\n    twice = x * 2.0\n    up = np.ceil(twice)\n    return up + 1.0\n", "way")
    assert bw.compile(function, X).explain().splitlines()[1:4] == [
        "  way.py:6  twice = x * 2.0", "  way.py:7  up = np.ceil(twice)", "    ceil: piecewise constant: its derivative is zero"]


# ----- fusion
BIG = np.ones(fusion_attempt.WHOLE_ARRAY_LIMIT + 1)


def long_chain(x):
    for _ in range(fusion_attempt.MAX_MEMBERS):
        x = x * x
    return x


def softmax(x, axis=None):
    e = np.exp(x)
    return e / np.sum(e, axis=axis, keepdims=True)


FUSION = {
    "unrelated": (lambda x, y: (np.sin(x), np.cos(y)), (np.ones(3), np.ones(5))),
    "search": (lambda x: np.argmax(x) + np.sin(x), (X,)),
    "members": (long_chain, (X,)),
    "loads": (lambda *xs: sum(x * x for x in xs), (X,) * (fusion_attempt.MAX_LOADS + 1)),
    "shifted": (lambda x: np.diff(np.tanh(x)), (X,)),
    "axes": (lambda x: np.exp(x) + np.exp(x).T, (np.ones((3, 3)),)),
    "reduction": (lambda x: softmax(softmax(x, 1), 0), (np.ones((4, 5)),)),
    "whole": (softmax, (BIG,)),
    "tall": (lambda x: softmax(x, 0), (np.ones((fusion_attempt.TALL_PANEL_LIMIT // 2 + 1, 2)),)),
    "far apart": (lambda x, y: x - np.exp(y), (np.ones((fusion_attempt.TALL_PANEL_LIMIT // 2 + 1, 2)), np.ones(2))),
    "extents": (lambda x, y: (np.sin(x), np.exp(y) * np.sum(x)), (np.ones((3, 4)), np.ones(3))),
    "columns": (lambda x: np.sum(softmax(x, 0), axis=1), (np.ones((4, 5)),)),
    "settled": (lambda x: np.exp(softmax(x, 0)[:, :, None] * np.ones(3)), (np.ones((4, 5)),)),
    "scalars": (lambda x, y: np.exp(x)[:, None] * y, (np.ones(4), np.ones((4, 5)))),
    "alone": (lambda x: np.tanh(np.sum(x * x, 1)) * np.exp(x[:, 0]), (np.ones((100, 40)),)),
    "order": (lambda x: np.cumsum(np.tanh(x)) * np.tanh(x), (X,)),
    "versions": (from_text(MARCH, "march"), (np.ones(12), 0.9)),
}


@pytest.mark.parametrize("rule", FUSION)
def test_reason_of_fusion(rule):
    function, arguments = FUSION[rule]
    program = bw.compile(function, *arguments, autoloop=False)
    fused = fuse.fuse(program.lowered().simplified, reasons=True)
    assert rule in {refusal.rule for refusal in fused.refusals}
    start = fusion_rules.RULES[rule].partition("{0}")[0].format()
    assert start in program.explain()


def test_every_rule_of_fusion_has_words():
    text = inspect.getsource(fuse) + inspect.getsource(fusion_attempt)
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
             and isinstance(node.func, ast.Attribute) and node.func.attr == "_refuse"]
    named = {text.value for call in calls for argument in call.args for text in ast.walk(argument)
             if isinstance(text, ast.Constant) and isinstance(text.value, str)}
    assert named == set(fusion_rules.RULES)
    assert set(FUSION) == named - {"updated"}             # what reads an update in place is refused as "versions" before that


def test_reasons_change_no_decision():
    for function, arguments in FUSION.values():
        graph = bw.compile(function, *arguments, autoloop=False).lowered().simplified
        plain, recorded = fuse.fuse(graph), fuse.fuse(graph, reasons=True)
        assert not plain.refusals
        for one, other in zip(plain.steps, recorded.steps, strict=True):
            assert getattr(one, "members", one) == getattr(other, "members", other)


# ----- calls
CALLS = {
    "product": (lambda x: x @ x, (np.ones((20, 20)),), "matrix product in tiles, 16,000 floating-point operations"),
    "complex product": (lambda x: x @ x, (np.ones((20, 20), "c16"),), "matrix product in tiles, 16,000 floating-point operations"),
    "small product": (lambda x: x @ x, (np.ones((2, 2)),), "matrix product, unrolled, 16 floating-point operations"),
    "lapack": (lambda x: np.linalg.inv(x), (np.eye(20),), "library call: lu by LAPACK getrf"),
    "small factors": (lambda x: np.linalg.inv(x), (np.eye(2),), "lu of small matrices, inlined"),
    "inner loop": (lambda x: np.linalg.cholesky(x), (np.eye(2),), "library call: cholesky by LAPACK potrf (NumPy's inner loop cholesky_lo)"),
    "sort": (lambda x: np.sort(x), (X,), "library call: sort by NumPy's sort function"),
    "integers": (lambda x: np.gcd(x, 6), (np.arange(3),), "library call: gcd by NumPy's inner loop gcd"),
    "scan": (lambda x: np.cumsum(x), (X,), "loop of its own for cumsum: each element depends on the one before"),
    "push": (lambda x, i: x[i], (X, np.arange(2)), "loop of its own for scatter_add: it writes to elements that its operands choose"),
    "check": (lambda x, i: x[i], (X, np.arange(2)), "check that indices are in range"),
}


@pytest.mark.parametrize("name", CALLS)
def test_kind_of_a_call(name):
    function, arguments, expected = CALLS[name]
    assert expected in bw.compile(function, *arguments).explain()


# ----- updates and copies
def assign(size, *starts):
    def function(x):
        y = bnp.zeros(20)
        for start in starts:
            y[start:start + size] = np.sin(x[:size] * start)
        return np.sum(y * 2.0)
    return function


def reverse(x):
    y = np.sin(x)
    for k in range(6):
        y[k:k + 8] = y[k:k + 8][::-1]
    return y


UPDATES = {
    "large": assign(15, 0, 1, 2, 3, 4),
    "first": assign(2, 0, 2, 4, 6, 8),
    "short": assign(2, 0, 2),
    "overlap": reverse,
}


@pytest.mark.parametrize("rule", UPDATES)
def test_reason_of_a_new_array(rule):
    assert find_updates.RULES[rule] in bw.compile(UPDATES[rule], np.ones(20)).explain()


def test_updates_in_place_are_counted():
    assert "[slice_update]  (4 times)" in bw.compile(assign(2, 0, 2, 4, 6, 8), np.ones(20)).explain()


def scattered(x, i):
    y = x * 2.0
    z = np.copy(y)
    z[i] = 0.0
    return np.sum(z * y)


def overwritten(x, i):
    y = np.copy(x)
    y[i] = 0.0
    return np.sum(y * 2.0)


COPIES = {
    "argument": (overwritten, "%x is an argument, and the caller's array stays as it is"),
    "read later": (scattered, "%y is read again afterwards, at "),
    "returned": (lambda x, i: np.cumsum(x)[i], "it is returned, and goes straight into the array that is returned"),
}


@pytest.mark.parametrize("rule", COPIES)
def test_reason_of_a_copy(rule):
    function, expected = COPIES[rule]
    assert rule in plan_memory.RULES and expected in bw.compile(function, np.ones(9), np.arange(2)).explain()


def test_results_that_are_something_else():
    text = bw.compile(lambda x, y: (x, np.sum(y)), X, X).explain()
    assert "copied, 24 B  result 0 is the argument x" in text and "copied, 24 B  the gradient of x is the seed" in text


# ----- lines and numbers
def test_lines_are_those_of_the_program_whatever_was_compiled_before():
    body = "    y = np.tanh(x) * 3.25\n    return np.sum(y)\n"
    for name in ("first_one", "second_one"):
        program = bw.compile(from_text(f"{HEADER}def {name}(x):\n{body}", name), X)
        assert f"{name}.py:6  y = np.tanh(x) * 3.25" in program.explain()
        assert f"{name}.py:6" in program.as_text("simplified")


def test_long_programs_are_cut():
    text = bw.compile(assign(1, *range(0, 20)), np.ones(20)).explain()
    assert " more]" in text and max(map(len, text.splitlines())) < 250


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (9999, "9999 B"), (10_000, "10.0 kB"), (2_500_000, "2.5 MB"), (7e9, "7.0 GB")])
def test_bytes(count, text):
    assert bytes_text(count) == text


def test_the_way_to_an_end_is_the_shortest() -> None:
    def fun(x: Any) -> Any:
        long = np.tanh(np.sin(np.cos(x)))
        short = x * 2.0
        return np.floor(long + short)

    graph = trace(fun, (np.ones(3),)).graph
    flow = derivative_flow(graph, ())
    ways = ways_from(flow, graph.inputs[0])
    assert not ways.flows and ways.used
    (stop,) = ways.stops
    assert [value.op.name for value in way_to(flow, graph.inputs[0], stop)] == ["multiply", "add", "floor"]


def test_ends_of_derivatives_in_a_long_loop() -> None:
    """One per step and argument: the ways to them are not written out, which would be quadratic."""
    def fun(x: Any, w: Any) -> Any:
        for _ in range(300):
            x = np.where(x > 0, x * w, x - w)
        return np.sum(x)

    graph = trace(fun, (np.ones(3), np.ones(3)), autoloop=False).graph
    flow = derivative_flow(graph, ())
    for argument in graph.inputs[:2]:
        ways = ways_from(flow, argument)
        assert ways.flows
        assert [stop.value.op.name for stop in ways.stops] == ["greater"] * (300 if argument is graph.inputs[0] else 299)


def test_what_ends_in_each_iteration_of_an_unrolled_loop_is_told_once() -> None:
    def positive(x: Any) -> Any:
        return sum([x[k] for k in range(5) if x[k] > 0])

    assert bw.compile(positive, np.ones(5)).explain().count("greater: a boolean result has no derivative") == 1


def test_why_what_is_dear_is_computed_again():
    large = np.ones(1_000_000)
    assert "1 of them expensive, which costs less than saving them\n" in bw.compile(lambda x: np.sum(np.sin(x) ** 2), large).explain()
    limited = bw.compile(lambda x: np.sum(np.exp(np.exp(np.exp(x)))), np.ones(100), memory_limit=0)
    assert "expensive, to stay within memory_limit\n" in limited.explain()
