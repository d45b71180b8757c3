"""Comprehensions, and generators in `sum` and its like, are loops: recorded where they compute with traced values, else as Python does."""

import ast

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.source import loops
from bwcompiler.frontend.source.syntax.analysis.liveness import loads
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45])


class Node:
    """A tree of decisions, whose recursion is known."""

    def __init__(self, depth, weights):
        self.weight = weights.pop()
        self.sides = [Node(depth - 1, weights), Node(depth - 1, weights)] if depth else []

    def __call__(self, x):
        if not self.sides:
            return self.weight * x
        gate = 1 / (1 + np.exp(-self.weight * x))
        return gate * self.sides[0](x) + (1 - gate) * self.sides[1](x)


def kernel_matrix(x):
    matrix = np.array([[np.exp(-(a - b) ** 2) for b in x] for a in x])
    return np.linalg.slogdet(matrix + np.eye(len(x)))[1]


def total_of_generator(x):
    tree = Node(2, list(x[:7]))
    return sum((tree(v) - t) ** 2 for v, t in zip(x, x[::-1], strict=True)) / len(x)


def three_levels(x):
    cube = np.array([[[a * b + c for c in x] for b in x] for a in x])
    return np.sum(cube ** 2)


def several_generators(x):
    return sum([np.sin(a * b) for a in x for b in x[:9]])


def pairs(x):
    found = [(v, v * k) for k, v in enumerate(x)]
    return sum(a * b for a, b in found) + found[3][1]


def triangle(x):
    return sum(x[i] * x[j] for i in range(len(x)) for j in range(i))


def factors(x):
    n = len(x)
    a = np.outer(x, x[::-1]) + 9 * np.eye(n)
    lower, upper = np.eye(n), np.zeros((n, n))
    for i in range(n):
        for j in range(i, n):
            upper[i, j] = a[i, j] - sum(lower[i, k] * upper[k, j] for k in range(i))
        for j in range(i + 1, n):
            lower[j, i] = (a[j, i] - sum(lower[j, k] * upper[k, i] for k in range(i))) / upper[i, i]
    return np.sum(np.log(np.diag(upper))) + lower.sum()


def as_many_as_data_say(x):
    count = (x > 0.3).sum()
    return sum(x[k] * k for k in range(count)) + sum(v for k in range(int(np.sum(x > 9.0))) for v in x) + x[0]


def conditions(x):
    large = [2 * v for v in x if v > 0.3 if v < 1.5]
    return sum(large) + len(large) + sum(x[i] * x[j] for i in range(10) for j in range(10) if i != j)


def of_functions(x):
    functions = [lambda v, k=k: v ** k for k in range(1, 9)]
    last = [lambda v: v * k for k in range(9)]     # of which all have one k
    return sum(f(x[0]) for f in functions) + sum(f(x[1]) for f in last)


def named(x):
    k = 3.0
    doubled = [k * 2 for k in x]                   # of its own k
    return k * doubled[4]


def carried(x):
    state = {"sum": 0.0}

    def add(v):
        state["sum"] = 0.5 * state["sum"] + v
        return state["sum"]

    kept = [add(v) for v in x]
    return kept[-1] * kept[2] + max(kept)


def fewer(x):
    return sum(np.array([v * w for w in x[:3]]) @ x[4:7] for v in x[:4])


LABELS = np.array([2, 0, 1, 1, 0, 2, 0, 1, 2, 2])


def of_known_arrays(x):
    """What is not traced is known: sizes, keys, indices of lists."""
    order = [int(k) for k in LABELS]
    names = [("a", "b", "c")[k] for k in order]
    table = {"a": x[0], "b": x[1], "c": x[2]}
    groups = [np.where(k == LABELS)[0] for k in range(3)]
    return sum(table[name] for name in names) + sum(x[:k].sum() for k in order) + sum(np.ones(len(one)) @ x[one] for one in groups)


PROGRAMS = [kernel_matrix, total_of_generator, three_levels, several_generators, pairs, triangle, factors, as_many_as_data_say,
            conditions, of_functions, named, carried, fewer, of_known_arrays]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, 0.5 * X[::-1] + 0.1)


@pytest.mark.parametrize("program", [kernel_matrix, total_of_generator, three_levels, pairs, factors], ids=lambda program: program.__name__)
def test_recorded_once(program):
    """The graph does not grow with the number of elements."""
    sizes = [len(trace(program, (np.tile(X, count),)).graph.body) for count in (1, 3)]
    assert sizes[0] == sizes[1]


def test_a_sum_of_as_many_as_data_say_makes_no_list():
    """It has no room that could be too small, and is one loop."""
    x = np.linspace(0.31, 1.0, 1500)
    assert bw.jit(as_many_as_data_say)(x) == pytest.approx(as_many_as_data_say(x), rel=1e-12)
    assert len(trace(as_many_as_data_say, (X,)).graph.body) < 60


def test_results_are_lists():
    def of(x):
        rows = [[v * w for w in x] for v in x]
        rows[1][2] = 0 * rows[1][2]
        rows[0].append(x[0])
        return rows, [v + 0 for v in rows[2]]

    rows, row = bw.jit(of)(X)
    expected, expected_row = of(X)
    assert [len(one) for one in rows] == [len(one) for one in expected]
    for one, other in zip([*rows, row], [*expected, expected_row], strict=True):
        np.testing.assert_array_equal(one, other)


def test_errors_name_the_line():
    with pytest.raises(ValueError, match="negative"):
        bw.jit(checked)(X)
    assert bw.jit(checked)(np.abs(X)) == checked(np.abs(X))


def root(x):
    if x < 0:
        raise ValueError("negative")
    return np.sqrt(x)


def checked(x):
    return sum(root(v) for v in x)


def test_names_of_comprehensions_are_not_variables_of_loops(rng):
    """`row` is bound by the comprehension itself: what the loop binds to the same name is not used behind it."""
    def squares(x):
        total = 0.0
        for k in range(30):
            row = x[k % 3]
            row = row * k
            total = total + np.sum(row ** 2)
        return total + sum([np.sum(row) for row in x])

    x = rng.standard_normal((3, 4))
    assert bw.jit(squares)(x) == pytest.approx(squares(x), rel=1e-12)
    assert loads(ast.parse("[a + b for b in c if b for a in b]").body[0]) == {"c"}
    assert loads(ast.parse("(lambda a, b=d: a + e)(f)").body[0]) == {"d", "e", "f"}
    assert loads(ast.parse("[a for a in a]").body[0]) == {"a"}


def test_what_computes_with_known_numbers_is_not_tried_again(monkeypatch):
    tried = []

    def counted(*args, **kwargs):
        tried.append(args[0])
        return loops_counted(*args, **kwargs)

    loops_counted = loops.counted
    monkeypatch.setattr(loops, "counted", counted)

    def weighted(x):
        signs = np.array([[1.0 if (state >> bit) & 1 else -1.0 for bit in range(9)] for state in range(64)])
        return np.sum(signs * x)

    np.testing.assert_allclose(bw.jit(weighted)(2.0), weighted(2.0), rtol=1e-14)
    assert len(tried) < 8                          # not once for each state

    def helper(scale):
        return [scale * k for k in range(12)]

    def both(x):
        return np.sum(np.array(helper(2)) * np.array(helper(x)))

    np.testing.assert_allclose(bw.jit(both)(3.0), both(3.0), rtol=1e-14)
    assert bw.jit(both).as_text("forward", 3.0).count("multiply") < 12
