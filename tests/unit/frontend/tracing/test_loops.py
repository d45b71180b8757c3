"""Loop functions while tracing: values, dtypes, what is carried, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import errors
from bwcompiler.frontend import trace
from tests.support.loop_programs import PROGRAMS, check_values, results

X = np.linspace(0.5, 2.0, 4)
ROWS = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_plain_python(name):
    program, args = PROGRAMS[name]
    check_values(program, *args)


def one_op(fun, *args):
    """The only region op of a traced function."""
    [found] = [value for value in trace(fun, args).graph.body if value.op.kind == "region"]
    return found


# ----- dtypes
@pytest.mark.parametrize("start, other, expected", [
    (0, np.float32(1), np.float32), (0, 1, np.int64), (0, 1.5, np.float64), (1.5, np.float32(1), np.float32), (True, False, np.bool_),
    (np.float32(0), np.float64(1), np.float64), (np.int32(0), np.int64(1), np.int64), (np.float64(0), np.float32(1), np.float64),
    (np.zeros((), np.float32), 1.5, np.float32), (np.uint8(0), np.int8(1), np.int16)])
def test_a_carry_has_the_dtype_that_both_ends_promote_to(start, other, expected):
    [found] = results(lambda x: bw.fori_loop(0, 2, lambda i, c: x, start), other)
    assert found.dtype == expected and found == other
    [found] = results(lambda x: bw.fori_loop(0, 0, lambda i, c: x, start), other)
    assert found.dtype == expected and found == start


def test_python_numbers_stay_weak():
    [found] = results(lambda x: bw.fori_loop(0, 3, lambda i, c: c + 1.0, 0.0) * x, X.astype(np.float32))
    assert found.dtype == np.float32
    [found] = results(lambda x: bw.fori_loop(0, 3, lambda i, c: c + x[0] * i, X.astype(np.float32)[0]), X.astype(np.float32))
    assert found.dtype == np.float32


def test_promotion_takes_several_traces():
    """The second number becomes a float because the first one does, an iteration later."""
    total, last, _ = results(lambda x: bw.fori_loop(0, 4, lambda i, c: (c[1], c[2], c[0] + x[i]), (0, 0, 0)), X)
    assert total.dtype == last.dtype == np.float64


def test_branches_are_promoted_as_numpy_does():
    for pred in (1, -1):
        for one, other, expected in ((np.float32(1), np.int32(2), np.float64), (np.float32(1), 2, np.float32), (1, 2.5, np.float64),
                                     (True, np.int8(3), np.int8)):
            [found] = results(lambda p, one=one, other=other: bw.cond(p > 0, lambda: one, lambda: other), np.int64(pred))
            assert found.dtype == expected and found == (one if pred > 0 else other)


# ----- edges
def test_no_iterations():
    total, stacked = results(lambda x: bw.scan(lambda c, row: (c + row.sum(), row * 2), 0, x[:0]), ROWS)
    assert total == 0 and total.dtype == np.float64 and stacked.shape == (0, 3) and stacked.dtype == np.float64
    assert results(lambda x: bw.scan(lambda c, _: (c + x, c), x, None, length=0), X)[1].shape == (0, 4)
    np.testing.assert_array_equal(results(lambda x: bw.fori_loop(3, 1, lambda i, c: c * 2, x), X)[0], X)
    assert results(lambda x: bw.map(lambda row: row.sum(), x), np.zeros((0, 3)))[0].shape == (0,)


def test_a_loop_of_no_iterations_leaves_what_it_would_assign_to():
    def program(x):
        y = x.copy()

        def step(i, _):
            y[i] = 7.0
        bw.fori_loop(2, 2, step, None)
        return y
    np.testing.assert_array_equal(results(program, X)[0], X)


def test_bounds_that_are_data():
    for n in (0, 1, 5):
        [found] = results(lambda m: bw.fori_loop(1, m.sum(), lambda i, c: c + i * 2, 1), np.array([n, 2]))
        assert found == 1 + sum(2 * k for k in range(1, n + 2))
    [found] = results(lambda n: bw.fori_loop(n[0], 5, lambda i, c: c * 2.0, 1.0), np.array([2]))
    assert found == 8.0


def test_the_caller_keeps_what_it_handed_in():
    """A carry is a copy: assigning to it in the body changes neither the array before the loop nor the rows of xs."""
    def program(x):
        def step(c, row):
            c[0] = 5.0
            row[0] = 9.0
            return c, row
        last, rows = bw.scan(step, x[0], x)
        return x, last, rows
    x, last, rows = results(program, ROWS)
    np.testing.assert_array_equal(x, ROWS)
    assert last[0] == 5.0 and (rows[:, 0] == 9.0).all()


def test_writes_through_views_of_arrays_around_the_loop():
    def program(x):
        y = x.copy()
        middle = y[1:3]

        def step(i, _):
            row = middle[i]
            row += 10.0
            row[0] = y[0, 0]
        bw.fori_loop(0, 2, step, None)
        return y
    expected = ROWS.copy()
    expected[1:3] += 10.0
    expected[1:3, 0] = expected[0, 0]
    np.testing.assert_array_equal(results(program, ROWS)[0], expected)


def test_an_argument_that_a_loop_assigns_to_is_mutated():
    def program(x):
        def step(i, _):
            x[i] = 0.0
        bw.fori_loop(0, 2, step, None)
    assert list(trace(program, (X,)).mutated) == [0]


def test_captured_concrete_arrays_are_operands():
    def program(x):
        return bw.scan(lambda c, v: (c + v @ ROWS, None), np.zeros(3), np.outer(x, x))[0]
    np.testing.assert_allclose(results(program, X)[0], np.outer(X, X).sum(0) @ ROWS)


def test_loops_lift_through_regions():
    def program(x, w):
        return bw.scan(lambda c, v: (c + bw.cond(v > 1, lambda: bw.fori_loop(0, 2, lambda i, d: d + w * v, w), lambda: w), None), w, x)[0]
    expected = ROWS[0].copy()
    for v in X:
        expected += ROWS[0] * (1 + 2 * v) if v > 1 else ROWS[0]
    np.testing.assert_allclose(results(program, X, ROWS[0])[0], expected)


# ----- indices
def test_comparisons_that_the_bounds_decide_are_plain():
    seen = []

    def step(i, c):
        seen.append((i >= 0, i < 4, i > 3, i == i, i != i + 1, i <= i - 1))
        return c
    trace(lambda x: bw.fori_loop(0, 4, step, x), (X,))
    assert [bool(one) for one in seen[0]] == [True, True, False, True, True, False] and all(type(one) is np.bool_ for one in seen[0])


def test_an_undecided_comparison_is_data():
    [found] = results(lambda x: bw.fori_loop(0, 4, lambda i, c: c + np.where(i < 2, x[i], 0.0), 0.0), X)
    assert found == X[:2].sum()


def test_products_of_indices_are_data_and_index_arrays():
    [found] = results(lambda x: bw.fori_loop(0, 2, lambda i, c: c + x[i * i], 0.0), X)
    assert found == X[0] + X[1]


def test_slices_are_views_with_symbolic_bounds():
    loop = one_op(lambda x: bw.fori_loop(1, 4, lambda i, c: c + np.sum(x[i - 1:i + 1]) + np.sum(x[:i]) + np.sum(x[::-1][i:]), 0.0), X)
    sizes = [str(value.attrs["sizes"]) for value in loop.attrs["body"].body if value.op.name == "slice"]
    assert sizes == ["(2,)", "(i,)", "(-1*i + 4,)"] or sizes == ["(2,)", "(i,)", "(4 - i,)"] or len(sizes) == 3


def test_reductions_of_symbolic_slices():
    [found] = results(lambda x: bw.fori_loop(0, 4, lambda i, c: c + np.max(x[:i + 1]) * np.min(x[i:]), 0.0), X)
    assert found == sum(X[:i + 1].max() * X[i:].min() for i in range(4))


def test_symbolic_slices_backwards():
    def program(x):
        y = np.zeros_like(x)

        def step(i, _):
            y[:i + 1] += x[i::-1]
        bw.fori_loop(0, 4, step, None)
        return y
    expected = np.zeros(4)
    for i in range(4):
        expected[:i + 1] += X[i::-1]
    np.testing.assert_allclose(results(program, X)[0], expected)


def test_an_index_that_may_wrap_is_gathered():
    [found] = results(lambda x: bw.fori_loop(0, 3, lambda i, c: c + x[i - 1] * (i + 1.0), 0.0), X)
    assert found == X[-1] + 2 * X[0] + 3 * X[1]


# ----- errors
@pytest.mark.parametrize("fun, error, message", [
    (lambda x: bw.fori_loop(0, 2, lambda i, c: np.concatenate([c, c]), x), errors.ShapeError,
     r"fori_loop: the carry has shape \(4,\) on entry and \(8,\) after the body"),
    (lambda x: bw.scan(lambda c, v: ({"h": c["h"][None]}, v), {"h": x}, x), errors.ShapeError,
     r"scan: the carry\['h'\] has shape \(4,\) on entry and \(1, 4\) after the body"),
    (lambda x: bw.fori_loop(0, 2, lambda i, c: c + 0.5, np.zeros(4, int)), errors.DTypeError,
     "fori_loop: the carry is int64 on entry and float64 after the body\n  hint: start with float64"),
    (lambda x: bw.while_loop(lambda c: c.sum() < 3, lambda c: c * 1, np.zeros(4, bool)), errors.DTypeError,
     "while_loop: the carry is bool on entry and int64 after"),
    (lambda x: bw.fori_loop(0, 2, lambda i, c: (c, c), x), errors.TracerError,
     r"fori_loop: the carry has the structure \* on entry and \(\*, \*\) after the body$"),
    (lambda x: bw.fori_loop(0, 2, lambda i, c: None, x), errors.TracerError, r"and None after the body\n  hint: is a `return` missing"),
    (lambda x: bw.scan(lambda c, v: c, x, x), errors.TracerError, r"the body must return a pair \(carry, y\)\n  hint: return carry, None"),
    (lambda x: bw.scan(lambda c, v: (c, v), 0.0, {"a": x, "b": x[1:]}), errors.ShapeError,
     r"scan: xs\['a'\] says 4 iterations, but xs\['b'\] says 3"),
    (lambda x: bw.scan(lambda c, v: (c, v), 0.0, x, length=3), errors.ShapeError, "scan: length says 3 iterations, but xs says 4"),
    (lambda x: bw.scan(lambda c, v: (c, v), 0.0, x[0]), errors.ShapeError, r"scan: xs has no axis to go along"),
    (lambda x: bw.scan(lambda c, v: (c, v), 0.0, None, length=-1), errors.ShapeError, "length must not be negative, got -1"),
    (lambda x: bw.scan(lambda c, v: (c, v), 0.0), errors.TracerError, "neither xs nor length"),
    (lambda x: bw.scan(lambda c, v: (c, v), 0.0, None, length=x[0]), errors.TracerError, "length must be an integer"),
    (lambda x: bw.while_loop(lambda c: c < 3, lambda c: c + 1, x), errors.TracerError,
     r"the condition must give one number that is true or false, it gives \(4,\)\n  hint: np.any"),
    (lambda x: bw.cond(x > 1, lambda: x, lambda: x), errors.TracerError,
     r"cond: the predicate must be one number that is true or false, it has shape \(4,\)"),
    (lambda x: bw.cond(x[0] > 1, lambda: x, lambda: (x, x)), errors.TracerError,
     r"cond: the branches return different structures: f64\[4\] and \(f64\[4\], f64\[4\]\)"),
    (lambda x: bw.cond(x[0] > 1, lambda: {"a": x}, lambda: {"a": x[1:]}), errors.ShapeError,
     r"cond: the result\['a'\] has shape \(4,\) in one branch and \(3,\) in the other"),
    (lambda x: bw.switch(x.argmax(), []), errors.TracerError, "switch: there are no branches"),
    (lambda x: bw.fori_loop(0, x[0], lambda i, c: c, x), errors.TracerError, r"a bound must be an integer, got float64 of shape \(\)"),
    (lambda x: bw.fori_loop(0, 4, lambda i, c: c + np.sum(x[:i - 1]), 0.0), errors.TracerIndexError, "may be negative or not"),
    (lambda x: bw.fori_loop(0, 4, lambda i, c: c + np.sum(x[i:i + 2]), 0.0), errors.TracerIndexError, "may be inside of the axis"),
    (lambda x: bw.fori_loop(0, 4, lambda i, c: bw.fori_loop(2, i, lambda j, d: d, c), x), errors.TracerError,
     "the number of iterations, i - 2, may be negative"),
    (lambda x: bw.fori_loop(0, 4, lambda i, c: x[:i], x), errors.ShapeError, r"on entry and \(i,\) after the body"),
    (lambda x: bw.fori_loop(0, 4, lambda i, c: c + len(range(i)), x), errors.TracerIndexError, r"bw.fori_loop\(0, n, body, init\)"),
    (lambda x: bw.fori_loop(0, 4, lambda i, c: c + np.sort(x[:i + 1])[-1], 0.0), errors.UnsupportedError, "depends on a loop index"),
    (lambda x: bw.fori_loop(0, 4, lambda i, c: c + np.max(x[:i]), 0.0), errors.ShapeError, "zero-size array to reduction operation max"),
    (lambda x: bw.associative_scan(lambda a, b: a, (x, x[1:])), errors.ShapeError, "different extents along axis 0"),
    (lambda x: bw.associative_scan(lambda a, b: a, ()), errors.TracerError, "xs holds no array"),
])
def test_errors(fun, error, message):
    with pytest.raises(error, match=message) as found:
        trace(fun, (X,))
    assert "test_loops.py:" in str(found.value)


def test_values_of_a_loop_that_is_over():
    kept = []

    def step(i, c):
        kept.extend([c, i, i + 1])
        return c + 1
    for number in range(3):
        with pytest.raises(errors.EscapedTracerError, match="used after, or outside of, the call of 'step' that made it"):
            trace(lambda x, number=number: (bw.fori_loop(0, 3, step, x), kept[number] + 1), (X,))
        kept.clear()
    with pytest.raises(errors.EscapedTracerError):
        trace(lambda x: (bw.fori_loop(0, 3, step, x), x[kept[1]]), (X,))


def test_a_condition_must_not_assign():
    def program(x):
        y = x.copy()

        def condition(c):
            y[0] = 1.0
            return c < 3
        return bw.while_loop(condition, lambda c: c + 1, 0), y
    with pytest.raises(errors.UnsupportedError, match="while_loop: the condition assigns to an array; only the body may"):
        trace(program, (X,))


# ----- branches, searches
def test_switch_cuts_its_index():
    branches = [lambda v: v * 2, lambda v: v + 1.0, lambda v: -v]
    for k in (-3, 0, 1, 2, 9):
        expected = branches[min(max(k, 0), 2)](X)
        np.testing.assert_array_equal(results(lambda k, x: bw.switch(k[0], branches, x), np.array([k]), X)[0], expected)
        np.testing.assert_array_equal(results(lambda x, k=k: bw.switch(k, branches, x), X)[0], expected)


def test_a_predicate_that_is_known_chooses_while_tracing():
    traced = trace(lambda x: bw.cond(True, lambda: x, lambda: x[99]), (X,))
    assert not traced.graph.body
    results(lambda x: bw.fori_loop(0, 4, lambda i, c: c + bw.cond(i >= 0, lambda: x[i], lambda: x[99]), 0.0), X)


def test_branches_may_assign():
    def program(x, flag):
        y = x.copy()

        def yes():
            y[0] = 5.0

        def no():
            y[1:] += 1.0
        bw.cond(flag > 0, yes, no)
        return y
    np.testing.assert_array_equal(results(program, X, np.int64(1))[0], [5.0, *X[1:]])
    np.testing.assert_array_equal(results(program, X, np.int64(0))[0], [X[0], *(X[1:] + 1)])


@pytest.mark.parametrize("count", range(1, 10))
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(count, reverse):
    """Composition of affine maps, which does not commute, on trees, along both axes."""
    rng = np.random.default_rng(count)
    a, b = rng.standard_normal((2, count, 2))

    def compose(f, g):
        return {"a": f["a"] * g["a"], "b": f["b"] * g["a"] + g["b"]}

    expected = [{"a": a[0], "b": b[0]}] if not reverse else [{"a": a[-1], "b": b[-1]}]
    for k in (range(1, count) if not reverse else reversed(range(count - 1))):
        expected.append(compose(expected[-1], {"a": a[k], "b": b[k]}))
    if reverse:
        expected.reverse()
    found = results(lambda a, b: bw.associative_scan(compose, {"a": a, "b": b}, reverse=reverse), a, b)
    np.testing.assert_allclose(found[0], [one["a"] for one in expected])
    np.testing.assert_allclose(found[1], [one["b"] for one in expected])
    found = results(lambda a: bw.associative_scan(np.add, a, axis=-1, reverse=reverse), a.T.copy())
    np.testing.assert_allclose(found[0], np.cumsum(a[::-1], 0)[::-1].T if reverse else np.cumsum(a, 0).T)
