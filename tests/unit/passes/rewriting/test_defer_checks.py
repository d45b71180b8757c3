"""Indices are checked by the loops that read with them: same results, same errors, and nothing is read outside of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.graph import Graph
from bwcompiler.passes.rewriting.defer_checks import defer_checks


def checks(graph: Graph) -> list[str]:
    """The checks of a graph and of its regions, in order; those in regions in brackets."""
    found: list[str] = []
    for value in graph.body:
        found += [value.op.name] * (value.op.name in ("normalize_index", "check_range"))
        for region in value.op.regions:
            found += [f"({name})" for name in checks(value.attrs[region])]
    return found


def legal(function: Callable[..., Any], *arguments: Any) -> Graph:
    return bw.jit(function).lower(*arguments).lowered().simplified


X, PLACES = np.cos(np.arange(7.0)), np.array([3, -1, 0, 6, -7])


def plain(x, i):
    return x[i] * 2


def added(x, i):
    h = np.zeros(7)
    np.add.at(h, i, x[:5])
    return h


def looped(x, i):
    s = 0.0
    for k in range(i.shape[0]):
        s = s * 0.5 + x[i[k]]
    return s


def nested(x, i):
    y = np.zeros((5, 5))
    for j in range(5):
        for k in range(5):
            y[j, k] = y[j, k - 1] + x[i[k]] * x[i[j]]
    return y


def written(x, i):
    y = x * 1.0
    for k in range(5):
        y[i[k]] = y[i[k]] * 0.5 + k
    return y


def followed(x, i):
    """Each index is read where the one before says."""
    k, s = 0, 0.0
    for _ in range(9):
        k = i[k % 5]
        s = s * 0.5 + x[k]
    return s


FUNCTIONS = [plain, added, looped, nested, written, followed]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_index_is_checked_by_a_step_of_its_own(function: Callable[..., Any]) -> None:
    assert set(checks(legal(function, X, PLACES))) == {"check_range"}
    np.testing.assert_allclose(bw.jit(function)(X, PLACES), function(X, PLACES), rtol=1e-14)


@pytest.mark.parametrize("wrong", [7, -8, 2**40, -2**63])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_index_out_of_range_is_found(function: Callable[..., Any], wrong: int) -> None:
    indices = PLACES.copy()
    indices[3] = wrong
    for compiled in (bw.jit(function), bw.value_and_grad(lambda x, i: np.sum(function(x, i)))):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis") as caught:
            compiled(X, indices)
        assert "x[" in str(caught.value) or "y[" in str(caught.value) or "np.add.at" in str(caught.value)
        compiled(X, PLACES)                             # nothing of it stays


def test_the_first_wrong_index_of_a_loop_is_told() -> None:
    with pytest.raises(IndexError, match="index 9 is"):
        bw.jit(looped)(X, np.array([1, 9, 70, -70, 8]))
    with pytest.raises(IndexError, match="index -9 is"):
        bw.jit(nested)(X, np.array([1, -9, 70, 70, 8]))


def test_loops_that_do_not_run_check_nothing() -> None:
    def function(x, i, n):
        s = 0.0
        for k in range(n):
            s = s + x[i[k]]
        return s
    wrong = np.full(5, 99)
    assert bw.jit(function)(X, wrong, 0) == 0.0
    assert bw.jit(plain)(X, wrong[:0]).shape == (0,)


def test_choices_check_at_their_end_and_while_loops_end() -> None:
    """What is read of wrong elements must not decide how often a loop runs."""
    def chosen(x, i):
        return bw.cond(x[0] > 0, lambda: x[i] * looped(x, i), lambda: x[:5])

    def searched(x, i):
        return bw.while_loop(lambda s: x[i[s[1]]] < 5, lambda s: (s[0] + x[i[s[1]]] ** 2, s[1] + 1), (0.0, 0))[0]

    def endless(x, i):
        return bw.while_loop(lambda s: s[0] < 5, lambda s: (x[i[s[1]]] * 0, s[1] + 1), (0.0, 0))[0]

    assert set(checks(legal(chosen, X, PLACES))) == {"(check_range)"}
    assert set(checks(legal(searched, X, PLACES))) == {"(check_range)", "check_range"}
    assert set(checks(legal(endless, X, PLACES))) == {"check_range"}
    np.testing.assert_allclose(bw.jit(chosen)(X, PLACES), X[PLACES] * looped(X, PLACES))
    assert np.array_equal(bw.jit(chosen)(-X, PLACES + 100), -X[:5])
    with pytest.raises(IndexError, match="index 106 is"):
        bw.jit(chosen)(X, PLACES + 100)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis with size 5"):
        bw.jit(searched)(X, PLACES)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis with size 5"):
        bw.jit(endless)(X, PLACES)


def test_python_is_not_called_with_wrong_elements() -> None:
    seen: list[float] = []

    def host(y):
        seen.append(float(y[0]))
        return y

    def function(x, i):
        return bw.pure_callback(host, np.empty(5), x[i])

    compiled = bw.jit(function)
    compiled(X, PLACES)
    with pytest.raises(IndexError):
        compiled(X, PLACES + 100)
    assert len(seen) == 1


def test_a_graph_without_indices_stays() -> None:
    graph = legal(lambda x: np.sin(x), X)
    assert defer_checks(graph) is graph


@pytest.mark.parametrize("threads", [1, 2])
def test_many_indices(threads: int, rng: np.random.Generator) -> None:
    x, i = rng.normal(size=1000), rng.integers(-1000, 1000, 300_000)
    before = bw.get_num_threads()
    bw.set_num_threads(threads)
    try:
        compiled = bw.jit(lambda x, i: x[i] + 1.0)
        assert np.array_equal(compiled(x, i), x[i] + 1.0)
        i[271_828] = -1001
        with pytest.raises(IndexError, match="index -1001 is out of bounds for axis with size 1000"):
            compiled(x, i)
    finally:
        bw.set_num_threads(before)


def test_arrays_of_the_caller_are_not_written_to_with_wrong_indices() -> None:
    """NumPy's state after the error: an assignment checks before it writes, a loop has written what came before."""
    def at_once(x, i):
        x[i] = -1.0

    def one_by_one(x, i):
        for k in range(i.shape[0]):
            x[i[k]] = x[i[k]] * 0.5 + 3.0

    for function in (at_once, one_by_one):
        after = []
        for call in (function, bw.jit(function)):
            x = X.copy()
            with pytest.raises(IndexError):
                call(x, np.array([0, -1, 7, 3]))
            after.append(x)
        assert np.array_equal(*after)
