"""sparse_jacobian and sparse_hessian: patterns of every family of ops, colourings, values against dense ones, costs, errors."""

from __future__ import annotations

import math
import pickle
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import bwcompiler as bw
from bwcompiler.api.sparse.colouring import column_colours, star_colours
from bwcompiler.api.sparse.sparsity import pattern_of
from bwcompiler.errors import GradientError, UnsupportedError
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.end_to_end.test_transform_pairs import FUNCTIONS, X

U = np.array([0.5, 1.5, -0.7, 2.0, 0.25, -1.0])


def pattern(function: Callable[..., Any], *args: Any) -> Any:
    result = trace(function, args)
    return pattern_of(result.graph.replace(outputs=result.outputs), 0, [*result.arguments.dynamic_leaves, *result.captured])


def dense(function: Callable[..., Any], *args: Any) -> Any:
    result = trace(bw.jacrev(function), args)
    found = interpret(result.graph, [*result.arguments.dynamic_leaves, *result.captured])[0]
    return found.reshape(-1, args[0].size)


# ----- patterns
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_pattern_has_all_that_differs_from_zero(name: str) -> None:
    found = pattern(FUNCTIONS[name], X).sets[0].toarray()
    expected = dense(FUNCTIONS[name], X) != 0
    assert found.shape == expected.shape and not np.any(expected & ~found)


def updates(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] += x[:-1] ** 2
    y[::2] -= x[::2]
    y[3] = x[0] * x[5]
    return y


EXACT: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: np.tanh(x) * x,
    "three points": lambda x: np.pad(x, 1)[2:] - 2 * x + np.pad(x, 1)[:-2] * x,
    "reversed": lambda x: x[::-1] * np.arange(1.0, 7.0),
    "reductions": lambda x: np.sum(x.reshape(2, 3) ** 2, axis=1) * np.max(x.reshape(3, 2)),
    "gather and scatter": lambda x: x[np.array([5, 0, 0])] ** 2,
    "scatter": lambda x: _added(x, np.array([1, 4, 1])),
    "updates": updates,
    "matrix products": lambda x: x.reshape(2, 3) @ np.ones((3, 2)) + np.ones((2, 2)) * x[0],
    "products of both": lambda x: x.reshape(2, 3) @ x.reshape(3, 2),
    "running sums": lambda x: np.cumsum(x.reshape(2, 3) ** 2, axis=1),
    "from the end": lambda x: np.cumsum(x[::-1])[::-1],
    "concatenated": lambda x: np.concatenate([x[:2], np.ones(2), x[4:] * x[0]]),
    "transposed": lambda x: np.broadcast_to(x.reshape(2, 3).T[:, :, None], (3, 2, 2)) ** 2,
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3).sum(-1),
    "where": lambda x: np.where(x > 0, x, x[::-1]),
    "where, known": lambda x: np.where(np.arange(6) % 2 == 0, x, x * x[::-1]),
    "where in a loop": lambda x: bw.fori_loop(0, 3, lambda k, x: np.where(np.arange(6) == k, x, x[::-1] * x), x),
    "stopped": lambda x: x * bw.stop_gradient(np.sum(x)),
    "batched solve": lambda x: np.linalg.solve(x[:4].reshape(2, 1, 2) * np.eye(2) + np.ones((2, 2)), np.ones((2, 2, 1)))[..., 0],
    "batched eigenvalues": lambda x: np.linalg.eigvals(x[:4].reshape(2, 1, 2) * np.array([[1.0, 2.0], [3.0, 1.0]])).real,
    "scan": lambda x: bw.scan(lambda c, e: (c + e**2, c * e), 1.0, x)[1],
    "loop": lambda x: bw.fori_loop(1, 6, lambda k, x: _set(x, k, x[k] + x[k - 1] ** 2), x),
    "branch": lambda x: bw.cond(x[0] > 0, lambda x: x * 2, lambda x: x[::-1] * x, x),
}
MORE = ("where", "branch", "products of both")              # whose patterns are those of all branches


def _added(x: Any, k: Any) -> Any:
    y = x[::-1].copy()
    np.add.at(y, k, x[:3] ** 2)
    return y


def _set(x: Any, k: Any, value: Any) -> Any:
    x = x.copy()
    x[k] = value
    return x


@pytest.mark.parametrize("name", EXACT)
def test_exact_patterns(name: str) -> None:
    """What differs from zero at one of several points; and nothing else, where no branch decides."""
    function = EXACT[name]
    found = pattern(function, U).sets[0].toarray()
    expected = np.zeros_like(found)
    for seed in range(3):
        expected |= dense(function, np.random.default_rng(seed).uniform(0.5, 2.0, 6)) != 0
    assert not np.any(expected & ~found)
    if name not in MORE:
        if name == "reductions":                   # any element may be the greatest
            expected[:] = True
        np.testing.assert_array_equal(found, expected)


def test_a_branch_has_the_patterns_of_both() -> None:
    found = pattern(EXACT["where"], U).sets[0].toarray()
    np.testing.assert_array_equal(found, np.eye(6, dtype=bool) | np.eye(6, dtype=bool)[::-1])


def test_indices_that_depend_on_numbers_point_anywhere() -> None:
    found = pattern(lambda x: x[np.argsort(x)] * 2, U).sets[0].toarray()
    assert found.all()
    assert bw.sparse_jacobian(lambda x: x[np.argsort(x)] * 2)(U).toarray().tolist() == (2 * np.eye(6)[np.argsort(U)]).tolist()


# ----- colourings
def random_pattern(seed: int, m: int, n: int, symmetric: bool = False) -> Any:
    found = scipy.sparse.random_array((m, n), density=0.15, rng=np.random.default_rng(seed), format="csr").astype(bool)
    if symmetric:
        found = (found + found.T + scipy.sparse.eye_array(n, dtype=bool)).tocsr()
    return found


@pytest.mark.parametrize("seed", range(5))
def test_no_row_has_two_columns_of_a_colour(seed: int) -> None:
    found = random_pattern(seed, 20, 15)
    colours = column_colours(found)
    for row in range(20):
        mine = colours[found.indices[found.indptr[row]:found.indptr[row + 1]]]
        assert len(set(mine.tolist())) == len(mine)
    assert colours.max() < max(found.sum(1).max() * found.sum(0).max(), 2)


@pytest.mark.parametrize("seed", range(5))
def test_star_colours_tell_every_element_apart(seed: int) -> None:
    found = random_pattern(seed, 15, 15, symmetric=True)
    colours = star_colours(found)
    matrix = found.toarray()
    for i, j in zip(*np.nonzero(matrix), strict=True):
        alone = [np.sum(matrix[row] & (colours == colours[column])) == 1 for row, column in ((i, j), (j, i))]
        assert any(alone)


def test_numbers_of_colours() -> None:
    arrow = scipy.sparse.eye_array(30, dtype=bool, format="lil")
    arrow[0, :] = arrow[:, 0] = True
    arrow = arrow.tocsr()
    assert column_colours(arrow).max() + 1 == 30 and star_colours(arrow).max() + 1 == 2
    band = scipy.sparse.diags_array([np.ones(50)] * 3, offsets=[-1, 0, 1], shape=(50, 50)).astype(bool).tocsr()
    assert column_colours(band).max() + 1 == 3 and star_colours(band).max() + 1 == 3


def on_grid(extents: tuple[int, ...], reach: int, corners: bool) -> Any:
    """Which points of a grid are within reach of a point along axes, or in the box around it."""
    found: Any = scipy.sparse.eye_array(1, dtype=bool) if corners else None
    for axis, extent in enumerate(extents):
        line = scipy.sparse.diags_array([np.ones(extent)] * (2 * reach + 1), offsets=range(-reach, reach + 1), shape=(extent, extent)).astype(bool)
        before, behind = (scipy.sparse.eye_array(math.prod(part), dtype=bool) for part in (extents[:axis], extents[axis + 1:]))
        along = scipy.sparse.kron(scipy.sparse.kron(before, line), behind)
        found = scipy.sparse.kron(found, line) if corners else along if found is None else found + along
    found = scipy.sparse.csr_array(found).astype(bool)
    found.sort_indices()
    return found


@pytest.mark.parametrize("extents, reach, corners, least", [
    ((40,), 2, False, 5), ((8, 8), 1, False, 5), ((10, 15), 1, False, 5), ((11, 9), 1, True, 9), ((5, 6, 7), 1, False, 7),
])
def test_stencils_on_grids_have_the_fewest_colours(extents: tuple[int, ...], reach: int, corners: bool, least: int) -> None:
    """As many as the stencil has points: each row tells as many columns apart."""
    found = on_grid(extents, reach, corners)
    assert np.diff(found.indptr).max() == least
    for colours in (column_colours(found), star_colours(found)):
        assert colours.max() + 1 <= least
    rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
    assert len(set(zip(rows.tolist(), column_colours(found)[found.indices].tolist(), strict=True))) == found.nnz


def test_a_laplacian_on_a_grid_takes_five_products() -> None:
    def residual(u):
        u = np.pad(u.reshape(6, 7), 1)
        return (4 * u[1:-1, 1:-1] - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:] + np.exp(u[1:-1, 1:-1])).ravel()
    u = np.linspace(-1, 1, 42)
    jacobian = bw.sparse_jacobian(residual)
    assert jacobian.products(u) == 5
    np.testing.assert_allclose(jacobian(u).toarray(), bw.jacobian(residual)(u), rtol=1e-13)
    energy = bw.sparse_hessian(lambda u: 0.5 * np.sum(residual(u) * u))
    assert energy.products(u) <= 5
    np.testing.assert_allclose(energy(u).toarray(), bw.hessian(lambda u: 0.5 * np.sum(residual(u) * u))(u), rtol=1e-12, atol=1e-13)


# ----- values
@pytest.mark.parametrize("name", ["three points", "updates", "windows", "scan", "products of both"])
def test_jacobians(name: str) -> None:
    function = EXACT[name]
    sparse = bw.sparse_jacobian(function)
    for x in (U, U[::-1].copy()):
        found = sparse(x)
        assert type(found) is scipy.sparse.csr_array and found.has_sorted_indices
        np.testing.assert_allclose(found.toarray(), bw.jacobian(function)(x).reshape(-1, 6), rtol=1e-13, atol=1e-13)


def test_the_cheaper_side() -> None:
    row = lambda x: np.concatenate([x, [np.sum(x)]])
    column = lambda x: np.concatenate([x[1:] ** 2 + x[0], x[:1]])
    both = {"row": bw.sparse_jacobian(row), "column": bw.sparse_jacobian(column)}
    assert both["row"].products(U) == 2 and both["column"].products(U) == 2
    np.testing.assert_allclose(both["row"](U).toarray(), bw.jacobian(row)(U))
    np.testing.assert_allclose(both["column"](U).toarray(), bw.jacobian(column)(U))


def test_arguments() -> None:
    function = lambda p, x, scale=1.0: scale * np.tanh(x) * p["a"] * x[::-1]
    for argnums in (1, -1):
        found = bw.sparse_jacobian(function, argnums)({"a": 2.0}, U.reshape(2, 3), scale=3.0)
        expected = bw.jacobian(lambda x: function({"a": 2.0}, x, 3.0))(U.reshape(2, 3)).reshape(6, 6)
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-15)
    static = bw.sparse_jacobian(lambda n, x: x**n, 1, static_argnums=0)
    np.testing.assert_allclose(static(3, U).toarray(), np.diag(3 * U**2))
    assert bw.sparse_jacobian(lambda x: x * 2)(U.astype(np.float32)).dtype == np.float32
    assert bw.sparse_jacobian(lambda x: np.floor(x))(U).nnz == 0
    assert bw.sparse_jacobian(lambda x: x[:0])(U).shape == (0, 6)
    assert bw.sparse_jacobian(lambda x: x**2)(3.0).toarray().tolist() == [[6.0]]


def test_patterns_follow_integer_arguments_and_arrays_from_outside() -> None:
    function = bw.sparse_jacobian(lambda x, edges: x[edges[:, 0]] * x[edges[:, 1]])
    for edges in (np.array([[0, 1], [1, 2]]), np.array([[3, 4], [5, 0]]), np.array([[0, 1], [1, 2]])):
        expected = np.zeros((2, 6))
        for row, (i, j) in enumerate(edges):
            expected[row, i], expected[row, j] = U[j], U[i]
        np.testing.assert_allclose(function(U, edges).toarray(), expected)


def test_patterns_follow_what_is_read_from_outside() -> None:
    """Arrays that are written to, names that are bound again, attributes: the pattern is that of the call."""
    places, keep, settings = np.array([0, 1, 2]), np.arange(6) < 3, types.SimpleNamespace(width=2, scale=2.0)
    functions: list[Callable[[Any], Any]] = [
        lambda x: x[places] ** 2,
        lambda x: np.where(keep, x, x[::-1]),
        lambda x: x * np.sum(x[:settings.width]) * settings.scale,
        lambda x: np.sum(x[places] ** 2) * x[0],
    ]

    def check() -> None:
        for function, derivative in zip(functions, derivatives, strict=True):
            dense = bw.hessian if derivative.symmetric else bw.jacobian
            np.testing.assert_allclose(derivative(U).toarray(), dense(function)(U), atol=1e-14)

    derivatives = [*map(bw.sparse_jacobian, functions[:3]), bw.sparse_hessian(functions[3])]
    check()
    places[:] = [5, 3, 3]
    check()
    keep[:] = ~keep
    check()
    settings.width = 4
    check()
    programs = {id(one.program) for known in derivatives[2]._known.values() for one in known}
    settings.scale = 3.0
    check()
    assert programs == {id(one.program) for known in derivatives[2]._known.values() for one in known}      # the pattern is the same
    places = np.array([4, 2])
    check()


def energy(x: Any) -> Any:
    return np.sum((x[1:] - x[:-1] ** 2) ** 2) + np.sum(np.cos(x)) + x[0] * x[5]


def test_hessians() -> None:
    sparse = bw.sparse_hessian(energy)
    found = sparse(U)
    np.testing.assert_allclose(found.toarray(), bw.hessian(energy)(U), rtol=1e-12, atol=1e-12)
    assert found.nnz == 6 + 2 * 6 and sparse.products(U) <= 4
    assert (found != found.T).nnz == 0
    arrow = lambda x: np.sum(x[0] * x[1:] ** 2)
    assert bw.sparse_hessian(arrow).products(U) == 2
    np.testing.assert_allclose(bw.sparse_hessian(arrow)(U).toarray(), bw.hessian(arrow)(U), atol=1e-15)


def test_pickle() -> None:
    np.testing.assert_allclose(pickle.loads(pickle.dumps(bw.sparse_hessian(energy)))(U).toarray(), bw.hessian(energy)(U), rtol=1e-12, atol=1e-12)


def test_a_hundred_thousand_unknowns_cost_three_products() -> None:
    n = 100_000
    residual = lambda u: np.pad(u, 1)[2:] - 2 * u + np.pad(u, 1)[:-2] + np.sin(u)
    sparse = bw.sparse_jacobian(residual)
    u = np.linspace(0.0, 1.0, n)
    found = sparse(u)
    assert sparse.products(u) == 3 and found.nnz == 3 * n - 2
    np.testing.assert_allclose(found.diagonal(), -2 + np.cos(u))
    np.testing.assert_allclose(found @ u, bw.jvp(residual, (u,), (u,))[1], rtol=1e-12, atol=1e-12)


# ----- errors
def test_errors() -> None:
    with pytest.raises(UnsupportedError, match="the result must be one array"):
        bw.sparse_jacobian(lambda x: (x, x))(U)
    with pytest.raises(UnsupportedError, match="the argument must be one array"):
        bw.sparse_jacobian(lambda t: t["a"])({"a": U})
    with pytest.raises(GradientError, match="the argument has dtype int64"):
        bw.sparse_jacobian(lambda x: x * 2.0)(np.arange(3))
    with pytest.raises(GradientError, match="the result has dtype int64"):
        bw.sparse_jacobian(lambda x: np.argsort(x))(U)
    with pytest.raises(GradientError, match="argnums=2"):
        bw.sparse_jacobian(lambda x: x, 2)(U)
    with pytest.raises(UnsupportedError, match="inside a traced function"):
        bw.jit(lambda x: bw.sparse_jacobian(lambda x: x)(x))(U)
    with pytest.raises(UnsupportedError, match="more than 200,000,000 elements"):
        bw.sparse_jacobian(lambda x: np.cumsum(x))(np.ones(30_000))
