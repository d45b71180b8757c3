"""pure_callback and primitive: host functions in programs, under every transform; their derivatives; their errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import bwcompiler as bw
from bwcompiler.errors import CallbackError, SignatureError, UnsupportedError

X = np.array([3.0, 1.0, 2.0])
F64 = bw.ShapeDtypeStruct((), np.float64)


# ----- pure_callback
def test_host_rules_may_call_the_primitive_itself_and_this_package() -> None:
    @bw.primitive
    def logsumexp(x):
        return bw.scipy.special.logsumexp(np.sort(x), axis=0)

    def fwd(x):
        out = logsumexp(x)
        return out, (out, x)

    logsumexp.defvjp(fwd, lambda residuals, ct: (ct * np.exp(residuals[1] - residuals[0]),))
    for function in (bw.grad(logsumexp), bw.jit(bw.grad(logsumexp))):
        np.testing.assert_allclose(function(X), bw.nn.softmax(X, axis=0), rtol=1e-14)


def test_trees_dtypes_and_options() -> None:
    def host(x, options, *, scale, name):
        assert type(x) is np.ndarray and type(options["k"]) is np.ndarray and name == "b"
        return {"sorted": np.sort(x) * scale, "k": options["k"] + 1, "text": [np.float32(1.5), True]}

    spec = {"sorted": X, "k": bw.ShapeDtypeStruct((), np.int64), "text": [bw.ShapeDtypeStruct((), np.float32), bw.ShapeDtypeStruct((), bool)]}
    function = lambda x, k: bw.pure_callback(host, spec, x, {"k": k}, scale=2.0, name="b")
    for found in (bw.jit(function)(X, 3), function(X, 3), bw.jit(lambda x, k: function(x, k))(X, 3)):
        assert found["sorted"].tolist() == [2.0, 4.0, 6.0] and found["k"] == 4
        assert found["text"] == [1.5, True] and found["text"][0].dtype == np.float32


def test_called_at_every_run_and_once() -> None:
    calls = []

    def host(x):
        calls.append(x)
        return x * 2, np.sum(x)

    function = bw.jit(lambda x: bw.pure_callback(host, (X, F64), x))
    for k in range(3):
        out, total = function(X + k)
        assert out.tolist() == (2 * (X + k)).tolist() and total == np.sum(X + k)
    assert len(calls) == 3
    assert not np.shares_memory(calls[0], X)


@pytest.mark.parametrize("vectorized", [False, True])
def test_vmap(vectorized: bool) -> None:
    shapes = []

    def host(x, y):
        shapes.append(x.shape)
        return np.sort(x, axis=-1) + y[..., None]

    function = lambda x, y: bw.pure_callback(host, X, x, y, vectorized=vectorized)
    batch = np.stack([X, -X])
    expected = np.sort(batch, axis=-1) + 5.0
    np.testing.assert_allclose(bw.vmap(function, in_axes=(0, None))(batch, 5.0), expected)
    assert shapes == ([(2, 3)] if vectorized else [(3,), (3,)])
    nested = bw.vmap(bw.vmap(function, in_axes=(0, None)), in_axes=(None, 0))(batch, np.array([5.0, 6.0]))
    np.testing.assert_allclose(nested, np.stack([expected, expected + 1]))


def test_no_derivative_says_what_to_do() -> None:
    function = lambda x: np.sum(bw.pure_callback(np.sin, x, x))
    for derivative in (bw.grad(function), lambda x: bw.jvp(function, (x,), (x,)), bw.hessian(function)):
        with pytest.raises(UnsupportedError, match=r"(?s)test_callbacks.py:\d+: .*pure_callback\(np.sin.*bw.primitive\(fun\)"):
            derivative(X)
    stopped = lambda x: np.sum(bw.pure_callback(np.sin, x, bw.stop_gradient(x)) * x)
    np.testing.assert_allclose(bw.grad(stopped)(X), np.sin(X))
    np.testing.assert_allclose(bw.jvp(stopped, (X,), (np.ones(3),))[1], np.sum(np.sin(X)))
    index = lambda x: x[bw.pure_callback(np.argmax, bw.ShapeDtypeStruct((), np.int64), x)]
    np.testing.assert_allclose(bw.grad(index)(X), [1.0, 0.0, 0.0])


class Oops(Exception):
    pass


def test_exceptions_come_through_with_the_line() -> None:
    def host(x):
        if x[0] > 3:
            raise Oops("host says no")
        return x

    function = bw.jit(lambda x: bw.pure_callback(host, X, x) + 1)
    assert function(X).tolist() == [4.0, 2.0, 3.0]
    with pytest.raises(Oops, match=r"(?s)test_callbacks.py:\d+: .*pure_callback\(host.*host says no"):
        function(X + 1)
    assert function(X).tolist() == [4.0, 2.0, 3.0]
    with pytest.raises(CallbackError, match=r"(?s)test_callbacks.py:\d+: .*returned result of shape \(2,\)"):
        bw.jit(lambda x: bw.pure_callback(lambda x: x[:2], x, x))(X)
    with pytest.raises(CallbackError, match="returned result of shape"):
        bw.pure_callback(lambda x: x[:2], X, X)
    with pytest.raises(CallbackError, match=r"result_spec\[0\] is a float; result_spec holds"):
        bw.jit(lambda x: bw.pure_callback(lambda x: x, (1.0,), x))(X)


def test_compiled_functions_inside_of_host_functions() -> None:
    inner = bw.jit(lambda x: np.cumsum(x))
    outer = bw.jit(lambda x: bw.pure_callback(lambda x: inner(x) + outer_again(x), x, x))
    outer_again = bw.jit(lambda x: bw.pure_callback(np.sort, x, x))
    assert outer(X).tolist() == (np.cumsum(X) + np.sort(X)).tolist()


def test_threads() -> None:
    function = bw.jit(lambda x: sum(bw.pure_callback(lambda x: (x * 2, x + 1), (X, X), x)))
    function(X)
    results: dict[int, Any] = {}

    def work(k: int) -> None:
        results[k] = [function(X + k + j).tolist() for j in range(50)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(results[k][j] == (3 * (X + k + j) + 1).tolist() for k in range(4) for j in range(50))


# ----- primitive
def sparse_solver() -> Any:
    """x of A(d) x = b, where A has d on its diagonal and -1 beside it."""
    def matrix(d):
        n = len(d)
        return scipy.sparse.diags_array([d, -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1], format="csc")

    def solve(d, b):
        return scipy.sparse.linalg.spsolve(matrix(d), b)

    def fwd(d, b):
        x = solve(d, b)
        return x, {"d": d, "x": x}

    def bwd(residuals, ct):
        y = scipy.sparse.linalg.spsolve(matrix(residuals["d"]).T.tocsc(), ct)
        return -y * residuals["x"], y

    def jvp(primals, tangents):
        (d, b), (td, tb) = primals, tangents
        x = solve(d, b)
        return x, solve(d, tb - td * x)

    return bw.primitive(solve).defvjp(fwd, bwd).defjvp(jvp)


def dense(d, b):
    n = len(b)
    return np.linalg.solve(np.diag(d) - np.eye(n, k=1) - np.eye(n, k=-1), b)


D, B = np.array([4.0, 5.0, 6.0, 7.0]), np.array([1.0, -2.0, 3.0, 0.5])


BB = np.stack([B, 2 * B])
TRANSFORMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "value": (lambda f: f, B),
    "jit": (bw.jit, B),
    "grad": (lambda f: bw.grad(f, (0, 1)), B),
    "jvp": (lambda f: lambda d, b: bw.jvp(f, (d, b), (b, d)), B),
    "vmap of grad": (lambda f: bw.vmap(bw.grad(f), in_axes=(None, 0)), BB),
    "grad of vmap": (lambda f: bw.grad(lambda d, b: np.sum(bw.vmap(f, in_axes=(None, 0))(d, b))), BB),
    "jvp of vmap": (lambda f: lambda d, b: bw.jvp(bw.vmap(f, in_axes=(None, 0)), (d, b), (None, b)), BB),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_sparse_solver_with_derivatives(name: str) -> None:
    transform, b = TRANSFORMS[name]
    found, expected = (transform(lambda d, b, solve=solve: np.sum(np.sin(solve(d, b) * b)))(D, b) for solve in (sparse_solver(), dense))
    for one, two in zip(bw.tree.leaves(found), bw.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-11)


def test_jacobians_of_a_sparse_solver() -> None:
    solver = sparse_solver()
    np.testing.assert_allclose(solver(D, B), dense(D, B))
    np.testing.assert_allclose(bw.jacfwd(solver)(D, B), bw.jacrev(solver)(D, B), rtol=1e-12)
    np.testing.assert_allclose(bw.linearize(solver, D, B)[1](B, D), bw.jvp(dense, (D, B), (B, D))[1])


def test_derivatives_of_derivatives_need_traced_rules() -> None:
    with pytest.raises(UnsupportedError, match="has no derivative"):
        bw.hessian(lambda b: np.sum(sparse_solver()(D, b) ** 2))(B)
    sine = bw.primitive(np.sin, result_spec=lambda x: x)
    cosine = bw.primitive(np.cos, result_spec=lambda x: x)
    sine.defvjp(lambda x: (sine(x), x), lambda x, ct: (ct * cosine(x),), traced=True)
    cosine.defvjp(lambda x: (cosine(x), x), lambda x, ct: (-ct * sine(x),), traced=True)
    function = lambda x: np.sum(sine(x) * x)
    np.testing.assert_allclose(bw.hessian(function)(X), np.diag(2 * np.cos(X) - X * np.sin(X)), rtol=1e-12)
    np.testing.assert_allclose(bw.hvp(function)(X, X), (2 * np.cos(X) - X * np.sin(X)) * X, rtol=1e-12)


def test_one_mode_only() -> None:
    forward_only = bw.primitive(np.sin).defjvp(lambda primals, tangents: (np.sin(primals[0]), np.cos(primals[0]) * tangents[0]))
    np.testing.assert_allclose(bw.jvp(forward_only, (X,), (X,))[1], np.cos(X) * X)
    np.testing.assert_allclose(bw.jacfwd(forward_only)(X), np.diag(np.cos(X)))
    np.testing.assert_allclose(bw.vmap(lambda x: bw.jvp(forward_only, (x,), (x,))[1])(X), np.cos(X) * X)
    reverse_only = bw.primitive(np.sin).defvjp(lambda x: (np.sin(x), x), lambda x, ct: np.cos(x) * ct)
    np.testing.assert_allclose(bw.grad(lambda x: np.sum(reverse_only(x)))(X), np.cos(X))
    for call in (lambda: bw.grad(lambda x: np.sum(forward_only(x)))(X), lambda: bw.jvp(reverse_only, (X,), (X,)),
                 lambda: bw.grad(lambda x: np.sum(bw.primitive(np.sin)(x)))(X)):
        with pytest.raises(UnsupportedError, match=r"defvjp\(fwd, bwd\) for reverse mode or .defjvp\(rule\) for forward mode"):
            call()


def test_types_are_declared_or_found() -> None:
    calls = []

    def host(x, k):
        calls.append(x)
        return {"head": x[:2], "n": np.int32(k)}

    found = bw.primitive(host)
    function = bw.jit(lambda x, k: found(x, k))
    for _ in range(2):
        assert function(X, 3)["head"].tolist() == [3.0, 1.0]
    assert function(np.arange(5.0), 3)["n"] == 3
    assert len(calls) == 3 + 2                                                     # once for each kind of arguments
    declared = bw.primitive(host, {"head": bw.ShapeDtypeStruct((2,), np.float64), "n": bw.ShapeDtypeStruct((), np.int32)})
    assert bw.jit(lambda x: declared(x, 3))(X)["n"] == 3 and len(calls) == 6
    by_shape = bw.primitive(lambda x: np.concatenate([x, x]), lambda x: bw.ShapeDtypeStruct((2 * x.shape[0],), x.dtype))
    assert bw.jit(lambda x: by_shape(x))(X).shape == (6,) and bw.jit(lambda x: by_shape(x))(X[:1]).shape == (2,)

    def picky(x):
        if x[0] < 2:
            raise ValueError("too small")
        return x

    with pytest.raises(CallbackError, match=r"(?s)picky was called with made-up numbers.*ValueError: too small.*result_spec="):
        bw.jit(lambda x: bw.primitive(picky)(x))(X)
    with pytest.raises(CallbackError, match="result is a str"):
        bw.jit(lambda x: bw.primitive(lambda x: "text")(x))(X)
    with pytest.raises(SignatureError, match="a function is needed"):
        bw.primitive(3)


def test_integer_arguments_and_none() -> None:
    take = bw.primitive(lambda x, k: x[k], lambda x, k: bw.ShapeDtypeStruct(k.shape, x.dtype))

    def bwd(residuals, ct):
        k, n = residuals
        found = np.zeros(n)
        np.add.at(found, k, ct)
        return found, None

    take.defvjp(lambda x, k: (x[k], (k, np.int64(len(x)))), bwd)
    take.defjvp(lambda primals, tangents: (primals[0][primals[1]], None if tangents[0] is None else tangents[0][primals[1]]))
    k = np.array([2, 0, 2])
    assert bw.grad(lambda x: np.sum(take(x, k) * X))(X).tolist() == [1.0, 0.0, 5.0]
    assert bw.jvp(lambda x: take(x, k), (X,), (X,))[1].tolist() == X[k].tolist()
