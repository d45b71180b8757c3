"""Splines and sparse arrays of SciPy that loops and branches make, bind anew, and leave to what comes after them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse as sp
from scipy.sparse.linalg import splu, spsolve

from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

PLACES = (np.array([0.7, 0.61, 1.3]), np.array([2.1, 0.37, 0.9]), np.array([0.2, 1.37, 0.3]))
ROWS, COLUMNS = np.array([0, 1, 2, 0, 1]), np.array([0, 1, 2, 1, 0])


def matrix(x: Any) -> Any:
    return sp.coo_matrix((np.concatenate([2.0 + x, -0.5 * x[:2]]), (ROWS, COLUMNS)), shape=(3, 3)).tocsr()


def last_matrix(x: Any) -> Any:
    y, weight = np.zeros(3), x
    for _ in range(40):
        k = matrix(weight)
        after = spsolve(k.tocsc(), np.ones(3))
        weight = 0.5 * weight + 0.1 * np.sum(after**2)
        change = np.linalg.norm(after - y)
        y = after
        if change < 1e-12:
            break
    return y @ (k @ y)


def last_factors(x: Any) -> Any:
    y = x
    for k in range(12):
        factors = splu(matrix(y).tocsc())
        y = 0.3 * y + factors.solve(np.ones(3)) / (1 + k)
    return factors.solve(x).sum()


def carried_matrix(x: Any) -> Any:
    k, y = matrix(x), np.ones(3)
    for _ in range(12):
        y = k @ y / np.linalg.norm(y)
        k = 0.9 * k
    return y.sum() + k.sum()


def matrix_of_a_branch(x: Any) -> Any:
    if x[0] > 0.5:
        k = matrix(x)
    else:
        k = matrix(x[::-1] ** 2)
    return (k @ x).sum()


def last_spline(x: Any) -> Any:
    knots, values = np.linspace(0.0, 1.0, 3), x
    for _ in range(15):
        spline = scipy.interpolate.CubicSpline(knots, values)
        moved = values + 0.1 * spline(np.array([0.2, 0.5, 0.7]))
        if np.max(np.abs(moved - values)) > 5.0:
            break
        values = moved / np.linalg.norm(moved)
    return spline(0.3) + spline(0.9, 1)


def spline_of_a_branch(x: Any) -> Any:
    knots = np.linspace(0.0, 1.0, 3)
    spline = scipy.interpolate.CubicSpline(knots, x) if x[0] > 0.5 else scipy.interpolate.CubicSpline(knots, x**2, bc_type="natural")
    return spline(0.4)


def changed_spline(x: Any) -> Any:
    """An attribute of one that was made before the loop is assigned to in it."""
    spline = scipy.interpolate.PPoly(x[:, None] * np.ones((3, 2)), np.array([0.0, 0.5, 1.0]))
    for _ in range(12):
        spline.c = 0.9 * spline.c
    return spline(0.3) + spline(0.8)


def matrices_with_elements_in_other_places(x: Any) -> Any:
    k = matrix(x)
    if x[0] > 0.5:
        k = k + sp.coo_matrix((x[:1], (np.array([2]), np.array([0]))), shape=(3, 3))
    return (k @ x).sum()


@pytest.mark.parametrize("fun", [last_matrix, last_factors, carried_matrix, matrix_of_a_branch, last_spline, spline_of_a_branch,
                                 changed_spline, matrices_with_elements_in_other_places])
def test_made_in_loops_and_branches(fun: Callable[[Any], Any]) -> None:
    as_python(fun, *PLACES)


def test_the_loop_is_recorded_whose_last_matrix_is_read() -> None:
    assert "while_loop" in {value.op.name for value in trace(last_matrix, (PLACES[0],)).graph.body}
