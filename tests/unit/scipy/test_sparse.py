"""Products and solves with sparse arrays whose structure is known, SciPy's own and those with traced data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import bwcompiler as bw
from bwcompiler.errors import ShapeError, TracerError, UnsupportedError
from tests.support.derivatives import check_derivatives

rng = np.random.default_rng(17)
A = scipy.sparse.random_array((6, 5), density=0.4, format="csr", rng=rng)
B = scipy.sparse.csc_array(scipy.sparse.random_array((6, 6), density=0.4, format="csc", rng=rng) + 10 * scipy.sparse.eye_array(6, format="csc"))
C = A.tocoo()
X, Y, M = rng.normal(size=5), rng.normal(size=6), rng.normal(size=(5, 3))
ours = bw.scipy.sparse


def test_products_with_known_arrays() -> None:
    for fun, x in ((lambda x: A @ x, X), (lambda x: A @ x, M), (lambda x: A.dot(x), X), (lambda x: x @ A, Y), (lambda x: A.T @ (A @ x), X),
                   (lambda x: M.T @ x + (x @ A.T)[:3], X), (lambda x: scipy.sparse.csr_matrix(A) @ x, X), (lambda x: A @ x, np.arange(5))):
        np.testing.assert_allclose(bw.jit(fun)(x), fun(x), rtol=1e-12)
    check_derivatives(lambda x: (A @ x) ** 2, X)
    jacobian = bw.jacobian(lambda x: A @ x)(X)
    np.testing.assert_allclose(jacobian, A.toarray())
    np.testing.assert_allclose(bw.vmap(lambda x: A @ x)(M.T), (A @ M).T)
    assert bw.jit(lambda x: A.astype(np.float32) @ x)(X.astype(np.float32)).dtype == np.float32


def test_products_in_a_loop() -> None:
    def walk(x):
        for _ in range(5):
            x = x + 0.1 * (B @ x)
        return x

    np.testing.assert_allclose(bw.jit(walk)(Y), walk(Y))
    check_derivatives(walk, Y, order=1)


# ----- places that loops make beside the elements
def neighbours(i: int, j: int, rows: int, columns: int) -> Any:
    if i > 0:
        yield i - 1, j
    if i < rows - 1:
        yield i + 1, j
    if j > 0:
        yield i, j - 1
    if j < columns - 1:
        yield i, j + 1


def conductances(k: Any, shape: tuple[int, int] = (3, 4)) -> Any:
    rows, columns, values = [], [], []
    for i in range(shape[0]):
        for j in range(shape[1]):
            here = i * shape[1] + j
            for ii, jj in neighbours(i, j, *shape):
                there = ii * shape[1] + jj
                rows += [here, here]
                columns += [here, there]
                values += [k[here] * k[there], -k[here] * k[there]]
    return scipy.sparse.coo_matrix((values, (rows, columns)), shape=(k.size, k.size)).tocsr()


def upwind(k: Any) -> Any:
    rows, columns, values = [], [], []
    for i in range(k.size):
        rows.append(i)
        columns.append(i)
        values.append(k[i])
        if i > 0:
            rows.append(i)
            columns.append(i - 1)
            values.append(-k[i - 1])
    return scipy.sparse.csr_matrix((values, (rows, columns)), shape=(k.size, k.size))


@pytest.mark.parametrize("assembled", [conductances, upwind])
def test_places_that_loops_make(assembled) -> None:
    def program(k: Any) -> Any:
        return np.sum((assembled(k) @ np.arange(12.0)) ** 2)

    k = 1.0 + np.linspace(0, 1, 12) ** 2
    np.testing.assert_allclose(bw.jit(program)(k), program(k))
    check_derivatives(program, k, order=1)


def test_places_made_in_each_iteration_of_a_loop() -> None:
    def program(k: Any) -> Any:
        heads = np.full(12, 2.0)
        for _ in range(20):
            new = scipy.sparse.linalg.spsolve((conductances(k * heads) + scipy.sparse.eye_array(12)).tocsc(), np.arange(12.0))
            change = np.max(np.abs(new - heads))
            heads = new
            if change < 1e-9:
                break
        return np.sum(heads ** 2)

    k = 0.1 + 0.02 * np.linspace(0, 1, 12) ** 2
    assert "the loop in test_sparse.py" in bw.jit(program).explain(k)
    np.testing.assert_allclose(bw.jit(program)(k), program(k))
    check_derivatives(program, k, order=1)


def test_places_that_data_decide_are_refused() -> None:
    def program(k: Any) -> Any:
        rows = []
        for i in range(12):
            rows.append(i if k[i] > 1.0 else 0)
        return scipy.sparse.coo_matrix((k, (rows, rows)), shape=(12, 12)) @ k

    with pytest.raises(TracerError, match="must be known while tracing"):
        bw.jit(program)(np.linspace(0, 2, 12))


def test_traced_data() -> None:
    def by_place(data, x):
        return scipy.sparse.coo_array((data, (C.row, C.col)), shape=(6, 5)) @ x

    def by_rows(data, x):
        return scipy.sparse.csr_array((data, A.indices, A.indptr), shape=(6, 5)) @ x

    def by_columns(data, x):
        return scipy.sparse.csc_array((data, B.indices, B.indptr), shape=(6, 6)).T @ x

    for fun, args in ((by_place, (C.data, X)), (by_rows, (A.data, X)), (by_rows, (A.data, M)), (by_columns, (B.data, Y))):
        np.testing.assert_allclose(bw.jit(fun)(*args), fun(*args), rtol=1e-12)
        check_derivatives(lambda *args, fun=fun: fun(*args) ** 2, *args, order=1)


def test_lists_of_numbers() -> None:
    """As elements are assembled one by one."""
    def assembled(k):
        rows, columns, numbers = [], [], []
        for e in range(5):
            rows.extend([e, e, e + 1, e + 1])
            columns.extend([e, e + 1, e, e + 1])
            numbers.extend((k[e] * np.array([[1.0, -1.0], [-1.0, 1.0]])).ravel())
        free = np.arange(1, 6)
        matrix = scipy.sparse.coo_matrix((numbers, (rows, columns)), shape=(6, 6)).tocsc()
        return scipy.sparse.linalg.spsolve(matrix[free][:, free], np.ones(5))

    stiffness = np.array([1.0, 2.0, 1.5, 0.7, 1.2])
    np.testing.assert_allclose(bw.jit(assembled)(stiffness), assembled(stiffness), rtol=1e-10)
    check_derivatives(lambda k: assembled(k) ** 2, stiffness, order=1)


def test_arithmetic() -> None:
    array = ours.csr_array(A)
    same = np.testing.assert_allclose
    same((array * 2 + array - array.T.T / 2).toarray(), 2.5 * A.toarray())
    same((-array + A).toarray(), 0 * A.toarray())
    same(array.sum(), A.sum())
    for axis in (0, 1):
        same(array.sum(axis), A.sum(axis))
    same(array.diagonal(), A.diagonal())
    same(M.T @ array.T, M.T @ A.T.toarray())
    assert array.nnz == A.nnz and array.shape == A.shape and array.dtype == np.float64
    repeated = ours.coo_array((np.ones(3), (np.array([0, 0, 1]), np.array([1, 1, 0]))))
    same(repeated.toarray(), [[0, 2], [1, 0]])
    same(bw.grad(lambda d: (ours.csr_array((d, A.indices, A.indptr), (6, 5)).toarray() ** 2).sum())(A.data), 2 * A.data)


# ----- programs as they are written with scipy.sparse
N = 7
H = scipy.sparse.coo_matrix((np.arange(1.0, 5), ([0, 0, 1, 2], [1, 2, 0, 3])), shape=(3, 4)).tocsr()


def heat_in_two_dimensions(k):
    line = scipy.sparse.diags([-k[1:], 2 * k, -k[1:]], [-1, 0, 1], shape=(N, N), format="csr")
    one = scipy.sparse.identity(N)
    matrix = scipy.sparse.kron(line, one) + scipy.sparse.kron(one, line)
    u = scipy.sparse.linalg.spsolve(matrix.tocsr(), np.ones(N * N))
    return u, matrix * u, matrix.sum(1)


def implicit_steps(k):
    u, matrix = np.sin(np.arange(N)), scipy.sparse.eye(N) - 0.1 * scipy.sparse.diags([k[:-1], -2 * np.ones(N), k[1:]], [-1, 0, 1])
    for _ in range(10):
        u = scipy.sparse.linalg.spsolve(matrix.tocsc(), u)
    return u


def parts(k):
    around = (np.arange(N) + 1) % N
    matrix = scipy.sparse.coo_matrix((np.concatenate([k, 2 * k]), (np.tile(np.arange(N), 2), np.concatenate([np.arange(N), around]))),
                                     shape=(N, N)).tocsr()
    free, mask = np.arange(1, N), np.arange(N) != 2
    return (matrix[free, :][:, free].toarray(), matrix[mask][:, 1:4].toarray(), matrix[0, 1], matrix[-1, -1], (matrix.T @ matrix).toarray(),
            matrix.multiply(np.arange(1.0, N + 1)).toarray(), matrix[[3, 3, 1]].toarray(), (matrix.T * matrix).toarray(), matrix * k)


def matrices_times_arrays(k):
    return H * k[:4], H * k[:4][:, None], k[:3] * H, H.T * k[:3]


def diagonals(k):
    array = scipy.sparse.diags_array([k, 1.0], offsets=[0, 2], shape=(N, N))
    return (array @ k, array.diagonal(), (array @ array).toarray(), array.sum(axis=0), (array / k[:, None]).toarray(),
            scipy.sparse.diags(k[1:], 1).toarray(), scipy.sparse.diags_array([k[:3]], offsets=[-2], shape=(5, 3)).toarray())


@pytest.mark.parametrize("program", [heat_in_two_dimensions, implicit_steps, parts, matrices_times_arrays, diagonals])
def test_program_of_scipy_sparse(program: Any) -> None:
    k = np.linspace(1.0, 2.0, N) ** 1.5
    expected, found = program(k), bw.jit(program)(k)
    for one, other in zip(found if isinstance(found, tuple) else [found], expected if isinstance(expected, tuple) else [expected], strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-11)
    check_derivatives(lambda k: sum([np.sum(part ** 2) for part in bw.tree.leaves(program(k))]), k, order=1)


def test_solves(rng: np.random.Generator) -> None:
    def known(b):
        return scipy.sparse.linalg.spsolve(B, b)

    def traced(data, b):
        return scipy.sparse.linalg.spsolve(scipy.sparse.csc_array((data, B.indices, B.indptr), shape=(6, 6)), b)

    right = rng.normal(size=(6, 2))
    for b in (Y, right):
        np.testing.assert_allclose(bw.jit(known)(b), known(b), rtol=1e-10)
        np.testing.assert_allclose(bw.jit(traced)(B.data, b), known(b), rtol=1e-10)
        check_derivatives(lambda data, b: traced(data, b) ** 2, B.data, b, tolerance=1e-5)
    np.testing.assert_allclose(bw.vmap(known)(np.stack([Y, 2 * Y])), np.stack([known(Y), 2 * known(Y)]))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        bw.jit(traced)(0 * B.data, Y)


S = scipy.sparse.csr_array(B + B.T)
PLACES = S.tocoo()


@pytest.mark.parametrize("name", ours.linalg.ITERATIVE)
def test_iterative_solves(name: str) -> None:
    solve = getattr(ours.linalg, name)

    def found(data: Any, b: Any) -> Any:
        return solve(ours.coo_array((data, (PLACES.row, PLACES.col)), shape=(6, 6)), b, rtol=1e-12)[0]

    def exact(data: Any, b: Any) -> Any:
        return np.linalg.solve(ours.coo_array((data, (PLACES.row, PLACES.col)), shape=(6, 6)).toarray(), b)

    theirs = getattr(scipy.sparse.linalg, name)(S, Y, rtol=1e-12)[0]
    np.testing.assert_allclose(bw.jit(found)(PLACES.data, Y), theirs, rtol=1e-8)
    for transform in (bw.jacrev, bw.jacfwd):
        for one, other in zip(transform(found, (0, 1))(PLACES.data, Y), bw.jacrev(exact, (0, 1))(PLACES.data, Y), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-10)


def test_what_iterative_solvers_take() -> None:
    cg, matrix = scipy.sparse.linalg.cg, S.toarray()
    x = np.linalg.solve(matrix, Y)
    assert bw.jit(lambda b, x0: cg(S, b, x0, rtol=1e-10)[1])(Y, x) == 0
    assert bw.jit(lambda b: cg(S, b, rtol=1e-14, maxiter=1)[1])(Y) == 1
    curved = bw.hessian(lambda b: np.sum(cg(S, b, rtol=1e-12)[0] ** 3))(Y)
    np.testing.assert_allclose(curved, bw.hessian(lambda b: np.sum(np.linalg.solve(matrix, b) ** 3))(Y), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(bw.vmap(lambda b: cg(S, b, rtol=1e-12)[0])(np.stack([Y, 2 * Y])), [x, 2 * x], rtol=1e-9)
    dense = bw.grad(lambda a: ours.linalg.gmres(a, Y, rtol=1e-12)[0].sum())(matrix)
    np.testing.assert_allclose(dense, bw.grad(lambda a: np.linalg.solve(a, Y).sum())(matrix), rtol=1e-8)
    scaled = scipy.sparse.diags_array(1 / B.diagonal())
    sums = bw.grad(lambda b: scipy.sparse.linalg.bicgstab(B, b, M=scaled, rtol=1e-12)[0].sum())(Y)
    np.testing.assert_allclose(sums, np.linalg.solve(B.toarray().T, np.ones(6)), rtol=1e-9)
    turned = Y + 1j * Y[::-1]
    np.testing.assert_allclose(bw.jit(lambda z: ours.linalg.gmres(S, z, rtol=1e-12)[0])(turned), np.linalg.solve(matrix, turned), rtol=1e-9)
    operator = scipy.sparse.linalg.LinearOperator((6, 6), matvec=lambda x: matrix @ x)
    np.testing.assert_allclose(ours.linalg.cg(operator, Y, rtol=1e-12)[0], ours.linalg.cg(ours.csr_array(S), Y, rtol=1e-12)[0], rtol=1e-9)
    with pytest.raises(UnsupportedError, match="custom_linear_solve"):
        bw.jit(lambda b: ours.linalg.cg(operator, b)[0])(Y)
    with pytest.raises(TracerError, match="must be known"):
        bw.jit(lambda t: ours.linalg.cg(S, Y, rtol=t)[0])(1e-3)


def test_factors_and_triangles() -> None:
    factors = ours.linalg.splu(B)
    for trans, matrix in (("N", B.toarray()), ("T", B.toarray().T)):
        np.testing.assert_allclose(bw.jit(lambda b, t=trans: factors.solve(b, t))(Y), np.linalg.solve(matrix, Y), rtol=1e-10)
    np.testing.assert_allclose(bw.jacfwd(lambda b: ours.linalg.factorized(B)(b))(Y), np.linalg.inv(B.toarray()), rtol=1e-9, atol=1e-12)
    for lower, unit in ((True, False), (False, False), (True, True)):
        triangle = np.tril(B.toarray()) if lower else np.triu(B.toarray())
        matrix = triangle - np.diag(np.diag(triangle) - 1) if unit else triangle
        known = scipy.sparse.csr_array(matrix)
        solve = lambda b, a=known, k=(lower, unit): scipy.sparse.linalg.spsolve_triangular(a, b, lower=k[0], unit_diagonal=k[1])
        np.testing.assert_allclose(bw.jit(solve)(Y), np.linalg.solve(matrix, Y), rtol=1e-9)
        check_derivatives(lambda b, solve=solve: solve(b) ** 2, Y, order=1)


def test_refused() -> None:
    def run(fun: Any) -> Any:
        return bw.jit(fun)(M)

    for fun, kind, message in ((lambda x: scipy.sparse.csr_array(x) @ X[:3], TracerError, "not known while tracing"),
                               (lambda x: ours.coo_array((x[:, 0], (x[:, 0], np.arange(5)))).toarray(), TracerError, "close over the structure"),
                               (lambda x: A @ x.T, ShapeError, "dimension mismatch"), (lambda x: ours.csr_array(A) * x, ShapeError, "toarray"),
                               (lambda x: ours.linalg.spsolve(A, x), ShapeError, "do not fit"), (lambda x: ours.csr_array(B) + x, ShapeError, "toarray"),
                               (lambda x: ours.csr_array(B)[x[:, 0]], TracerError, "toarray"), (lambda x: ours.csr_array(B)[1], ShapeError, "toarray"),
                               (lambda x: ours.diags([x[:, 0]], [1], shape=(4, 4)), ValueError, "does not agree"),
                               (lambda x: ours.kron(x, A), TracerError, "np.kron")):
        with pytest.raises(kind, match=message):
            run(fun)
    with pytest.raises(ValueError, match="exceeds"):
        ours.coo_array((np.ones(1), (np.array([5]), np.array([0]))), shape=(2, 2))


def test_conjugates_of_sparse_matrices() -> None:
    places = np.arange(3)

    def power(angles: Any) -> Any:
        voltages = scipy.sparse.csr_matrix((np.exp(1j * angles), (places, places)))
        currents = np.conj(voltages * scipy.sparse.csr_matrix(np.arange(9.0).reshape(3, 3) + 1j)) + voltages.conj().conjugate()
        return np.sum(np.real((currents * voltages).toarray()) * np.arange(9.0).reshape(3, 3))

    angles = np.array([0.1, -0.3, 0.7])
    value, slopes = bw.value_and_grad(power)(angles)
    assert value == pytest.approx(power(angles), rel=1e-12)
    steps = 1e-6 * np.eye(3)
    np.testing.assert_allclose(slopes, [(power(angles + step) - power(angles - step)) / 2e-6 for step in steps], rtol=1e-6)
