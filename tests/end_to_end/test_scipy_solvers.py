"""`bw.scipy.optimize` against SciPy with the same derivatives by hand: results, numbers of evaluations; and derivatives of solutions."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.optimize as reference

import bwcompiler as bw
from bwcompiler.errors import DTypeError, ShapeError, UnsupportedError

optimize = bw.scipy.optimize
START = np.array([0.5, -0.3, 1.2])


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def quartic(x: Any, a: Any) -> Any:
    return np.sum((x - a) ** 2) + 0.1 * np.sum(x**4)


def counts(result: Any) -> list[Any]:
    return [result.get(name) for name in ("nit", "nfev", "njev", "nhev")]


# ----- minimize
SECOND = ("dogleg", "trust-exact")
PRODUCTS = ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr")
WITHOUT = ("Nelder-Mead", "Powell", "COBYQA")


@pytest.mark.parametrize("method", [None, "CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", *SECOND, *PRODUCTS, *WITHOUT])
def test_every_method_gets_the_derivatives_that_it_uses(method: str | None) -> None:
    start = np.array([1.1, 0.9, 1.2]) if method == "dogleg" else START                  # which needs a positive Hessian
    given: dict[str, Any] = {} if method in WITHOUT else {"jac": reference.rosen_der}
    if method in SECOND:
        given["hess"] = reference.rosen_hess
    if method in PRODUCTS:
        given["hessp"] = reference.rosen_hess_prod
    found = optimize.minimize(rosenbrock, start, method=method, tol=1e-8)
    expected = reference.minimize(rosenbrock, start, method=method, tol=1e-8, **given)
    assert found.success == expected.success
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-5, atol=1e-3 if method == "TNC" else 1e-6)
    if method not in ("CG", "TNC", *WITHOUT):                      # where a last bit decides about a step
        assert abs(found.nit - expected.nit) <= 2
        assert (found.get("njev") is None) == (expected.get("njev") is None)
        assert (found.get("nhev") is None) == (expected.get("nhev") is None)
    if not given:
        assert "jac" not in found


def test_the_value_and_the_gradient_are_one_program(compilations: list[str]) -> None:
    loss = lambda x, a: quartic(x, a)
    for a in (1.0, 2.0, 3.0):
        optimize.minimize(loss, START, args=(np.full(3, a),))
    assert len(compilations) == 1
    found = optimize.minimize(loss, START, args=np.full(3, 2.0), method="L-BFGS-B")
    assert found.nfev == found.njev and len(compilations) == 1
    step = 1e-6 * np.eye(3)
    differences = [(quartic(found.x + h, 2.0) - quartic(found.x - h, 2.0)) / 2e-6 for h in step]
    np.testing.assert_allclose(found.jac, differences, atol=1e-8)


def test_trees_and_shapes() -> None:
    as_vector = lambda p: np.concatenate([np.ravel(p["a"]), np.reshape(p["b"], 1)])
    seen = []
    found = optimize.minimize(lambda p: rosenbrock(as_vector(p)), {"a": np.zeros((2, 2)), "b": 0}, callback=seen.append)
    expected = reference.minimize(rosenbrock, np.zeros(5), jac=reference.rosen_der)
    np.testing.assert_allclose(as_vector(found.x), expected.x, rtol=1e-6)
    assert counts(found) == counts(expected)
    assert found.x["a"].shape == found.jac["a"].shape == (2, 2) and np.shape(found.x["b"]) == ()
    assert len(seen) == found.nit and seen[-1]["a"].shape == (2, 2)
    results = []
    found = optimize.minimize(lambda x: np.sum((x - 3.0) ** 2), np.zeros((2, 2)), callback=lambda intermediate_result: results.append(intermediate_result))
    assert found.x.shape == results[-1].x.shape == (2, 2)
    found = optimize.minimize(lambda x: (x - 2.0) ** 2, 0)          # a number is an array of one element, as for SciPy
    assert found.x.shape == (1,) and abs(found.x[0] - 2.0) < 1e-6
    assert optimize.minimize(rosenbrock, [1, 1.0]).x.tolist() == [1.0, 1.0]
    half = optimize.minimize(lambda p: np.sum((p["x"] - np.float32(3)) ** 2), {"x": np.zeros(2, np.float32)})
    assert half.x["x"].dtype == np.float32 and np.allclose(half.x["x"], 3.0, atol=1e-3)
    with pytest.raises(DTypeError, match="x0\\['z'\\] has dtype complex128"):
        optimize.minimize(lambda p: np.abs(p["z"]), {"z": 1j})


def test_bounds() -> None:
    pairs = [(None, 0.5), (None, None), (0.0, 0.2)]
    for bounds in (pairs, reference.Bounds([-np.inf, -np.inf, 0.0], [0.5, np.inf, 0.2])):
        found, expected = (f(rosenbrock, START, bounds=bounds, **jac) for f, jac in (
            (optimize.minimize, {}), (reference.minimize, {"jac": reference.rosen_der})))
        np.testing.assert_allclose(found.x, expected.x, rtol=1e-8)
    tree = {"a": np.array([0.5, -0.3]), "b": 1.2}
    of = lambda p: rosenbrock(np.concatenate([p["a"], np.reshape(p["b"], 1)]))
    found = optimize.minimize(of, tree, bounds={"a": ([-1.0, -1.0], 0.5), "b": (0.0, 0.2)}, method="trust-constr")
    expected = reference.minimize(rosenbrock, START, bounds=[(-1.0, 0.5), (-1.0, 0.5), (0.0, 0.2)], jac=reference.rosen_der)
    np.testing.assert_allclose([*found.x["a"], found.x["b"]], expected.x, atol=1e-4)
    assert optimize.minimize(of, tree, bounds={"a": None, "b": (0.0, 0.2)}).x["b"] <= 0.2
    for wrong in ({"a": None}, {"a": (0.0, 1.0, 2.0), "b": None}):
        with pytest.raises(ShapeError, match="bounds"):
            optimize.minimize(of, tree, bounds=wrong)


@pytest.mark.parametrize("method", ["trust-constr", "SLSQP", "COBYLA"])
def test_constraints(method: str) -> None:
    disc = lambda x: x[0] ** 2 + x[1] ** 2 + x[2] ** 2
    keywords: dict[str, Any] = {} if method == "COBYLA" else {"jac": reference.rosen_der}
    nonlinear = reference.NonlinearConstraint(disc, -np.inf, 1.0)
    found = optimize.minimize(rosenbrock, np.zeros(3), method=method, constraints=nonlinear)
    expected = reference.minimize(rosenbrock, np.zeros(3), method="SLSQP", constraints=nonlinear)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-3)
    old = [{"type": "ineq", "fun": lambda x, r: r - disc(x), "args": (1.0,)}, reference.LinearConstraint([[1.0, 0.0, 0.0]], -1.0, 0.5)]
    found, expected = (f(rosenbrock, np.zeros(3), method=method, constraints=old, **given) for f, given in (
        (optimize.minimize, {}), (reference.minimize, keywords)))
    np.testing.assert_allclose(found.x, expected.x, atol=1e-3)


def test_derivatives_of_constraints_are_exact() -> None:
    seen = []

    def watched(x: Any, state: Any) -> bool:
        seen.append((x, state))
        return False

    constraint = reference.NonlinearConstraint(lambda p: {"one": np.sin(p["u"]) * p["v"], "two": p["u"]}, -1.0, 1.0)
    optimize.minimize(lambda p: np.sum((p["u"] - 1.0) ** 2 + (p["v"] - 5.0) ** 2), {"u": np.zeros(2), "v": np.zeros(2)}, method="trust-constr",
                      constraints=constraint, callback=watched, options={"maxiter": 8})
    at, state = seen[-1]
    u, v = at["u"], at["v"]
    np.testing.assert_allclose(state.jac[0], np.block([[np.diag(np.cos(u) * v), np.diag(np.sin(u))], [np.eye(2), np.zeros((2, 2))]]), rtol=1e-9)
    assert state.constr_nfev[0] < 40 and state.constr_nhev[0] > 0   # no differences


def test_derivatives_that_are_given() -> None:
    calls = []

    def slope(x: Any) -> Any:
        calls.append(x)
        return reference.rosen_der(x)

    found = optimize.minimize(rosenbrock, START, jac=slope)
    assert calls and found.njev == len(calls)
    assert optimize.minimize(rosenbrock, START, jac="3-point").nfev > found.nfev
    both = optimize.minimize(lambda x: (rosenbrock(x), reference.rosen_der(x)), START, jac=True)
    np.testing.assert_allclose(both.x, found.x, rtol=1e-6)
    hess = optimize.minimize(lambda p: rosenbrock(p["x"]), {"x": START}, method="trust-exact", hess=lambda p: reference.rosen_hess(p["x"]))
    np.testing.assert_allclose(hess.x["x"], np.ones(3), rtol=1e-5)
    custom = optimize.minimize(rosenbrock, START, method=lambda fun, x, **given: reference.OptimizeResult(x=x, g=given["jac"](x), h=given["hess"](x)))
    np.testing.assert_allclose(custom.g, reference.rosen_der(START))
    np.testing.assert_allclose(custom.h, reference.rosen_hess(START))


def test_minimize_scalar() -> None:
    f = lambda x, a: (x - a) ** 2 + np.cos(x)
    for keywords in ({}, {"bracket": (1.0, 3.0)}, {"bounds": (0.0, 1.0), "method": "bounded"}):
        found, expected = (m.minimize_scalar(f, args=(2.0,), **keywords) for m in (optimize, reference))
        assert abs(found.x - expected.x) < 1e-8 and found.nfev == expected.nfev
    at = lambda a: optimize.minimize_scalar(f, args=(a,), tol=1e-12).x
    x = at(2.0)
    np.testing.assert_allclose(bw.grad(at)(2.0), 2 / (2 - np.cos(x)), rtol=1e-6)
    np.testing.assert_allclose(bw.grad(lambda a: optimize.minimize_scalar(f, args=(a,), bounds=(0.0, 1.0)).x)(2.0), 0.0)


# ----- roots
def system(x: Any, r: Any) -> Any:
    return np.array([x[0] ** 2 + x[1] ** 2 - r**2, x[0] - 2 * x[1]])


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "krylov"])
def test_root(method: str) -> None:
    jac = (lambda x, r: np.array([[2 * x[0], 2 * x[1]], [1.0, -2.0]])) if method in ("hybr", "lm") else None
    found = optimize.root(lambda x, r: np.stack([x[0] ** 2 + x[1] ** 2 - r**2, x[0] - 2 * x[1]]), [1.0, 2.0], args=(2.0,), method=method)
    expected = reference.root(system, [1.0, 2.0], args=(2.0,), method=method, jac=jac)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-4)
    assert found.success and (found.get("njev"), found.nfev) == (expected.get("njev"), expected.nfev)


def test_root_of_trees() -> None:
    of = lambda p: {"one": p["u"] ** 2 - 4.0, "two": p["v"] - p["u"]}
    found = optimize.root(of, {"u": 1.0, "v": np.ones(2)})
    np.testing.assert_allclose(found.x["v"], [2.0, 2.0])
    assert np.shape(found.x["u"]) == () and found.fun.shape == (3,)
    given = optimize.root(lambda x: x**2 - 2.0, np.ones((1, 2)), jac=lambda x: np.diag(2 * np.ravel(x)))
    np.testing.assert_allclose(given.x, np.full((1, 2), np.sqrt(2.0)))


def test_fsolve() -> None:
    listed = lambda x, r: [x[0] ** 2 + x[1] ** 2 - r**2, x[0] - 2 * x[1]]
    slopes = lambda x, r: [[2 * x[0], 2 * x[1]], [1.0, -2.0]]
    found, expected = (f(listed, [1.0, 2.0], args=(2.0,), full_output=True, **given) for f, given in (
        (optimize.fsolve, {}), (reference.fsolve, {"fprime": slopes})))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    assert (found[1]["nfev"], found[1]["njev"], found[2]) == (expected[1]["nfev"], expected[1]["njev"], expected[2])
    for keywords in ({"fprime": slopes}, {"fprime": lambda x, r: np.transpose(slopes(x, r)), "col_deriv": True}, {"xtol": 1e-10}):
        np.testing.assert_allclose(optimize.fsolve(listed, [1.0, 2.0], 2.0, **keywords), expected[0], rtol=1e-8)
    tree = optimize.fsolve(lambda p: (p["u"] ** 2 - 4.0, p["v"] - p["u"]), {"u": 1.0, "v": np.ones(2)})
    assert abs(tree["u"] - 2.0) < 1e-9 and np.allclose(tree["v"], 2.0)
    for x0 in (1.0, [1.0], np.ones((1, 1))):
        assert optimize.fsolve(lambda x: x**3 + x - 2.0, x0).shape == reference.fsolve(lambda x: x**3 + x - 2.0, x0).shape == (1,)
        cubic = lambda a, x0=x0: optimize.fsolve(lambda x: x**3 + x - a, x0)[0]
        np.testing.assert_allclose((cubic(2.0), bw.grad(cubic)(2.0), bw.grad(bw.grad(cubic))(2.0)), (1.0, 1 / 4, -6 / 64), rtol=1e-7)
    by_start = lambda start: np.sum(optimize.fsolve(lambda x: x**3 - 8.0, start))
    assert bw.value_and_grad(by_start)(np.ones(2))[1].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(bw.jit(lambda a: optimize.fsolve(lambda x: x**3 - a, 1.0, full_output=True)[0])(8.0), 2.0)
    with pytest.warns(RuntimeWarning, match="iteration is not making"):
        bw.jit(lambda a: optimize.fsolve(lambda x: x**2 + a, 1.0))(1.0)


@pytest.mark.parametrize("name", ["bisect", "brenth", "brentq", "ridder", "toms748"])
def test_roots_between_two_places(name: str) -> None:
    cubic = lambda x, a: x**3 - a
    mine, theirs = getattr(optimize, name), getattr(reference, name)
    found, expected = (m(cubic, 0.0, 10.0, args=(8.0,), xtol=1e-10, full_output=True) for m in (mine, theirs))
    assert found[0] == expected[0] and found[1].function_calls == expected[1].function_calls
    with pytest.raises(ValueError, match="different signs|f\\(a\\) and f\\(b\\)"):
        mine(cubic, 5.0, 10.0, args=(8.0,))
    np.testing.assert_allclose(bw.grad(lambda a: mine(lambda x: x**3 - a, 0.0, 10.0))(8.0), 1 / 12, rtol=1e-6)
    np.testing.assert_allclose(bw.jit(lambda lower, a: mine(cubic, lower, lower + 10.0, (a,)))(0.0, 8.0), 2.0)
    np.testing.assert_allclose(bw.jit(lambda a: mine(cubic, 0.0, 10.0, (a,), full_output=True)[0])(8.0), 2.0)


def test_root_scalar() -> None:
    cubic, slope, second = lambda x, a: x**3 - a, lambda x, a: 3 * x**2, lambda x, a: 6 * x
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"x0": 1.0}, {"fprime": slope}), ({"x0": 1.0, "method": "newton"}, {"fprime": slope}), ({"x0": 1.0, "x1": 3.0}, {}),
        ({"x0": 1.0, "method": "halley"}, {"fprime": slope, "fprime2": second}), ({"bracket": (0.0, 9.0)}, {}),
        ({"bracket": (0.0, 9.0), "method": "bisect"}, {})]
    for keywords, given in cases:
        found, expected = optimize.root_scalar(cubic, (8.0,), **keywords), reference.root_scalar(cubic, (8.0,), **keywords, **given)
        assert abs(found.root - 2.0) < 1e-7 and found.method == expected.method and found.iterations == expected.iterations
        result = bw.jit(lambda a, k=keywords: dict(optimize.root_scalar(cubic, (a,), **k)))(8.0)
        assert result["converged"] and abs(result["root"] - 2.0) < 1e-7 and result["iterations"] == found.iterations
    by_bracket = lambda top: optimize.root_scalar(cubic, (8.0,), bracket=(0.0, top)).root
    np.testing.assert_allclose(bw.value_and_grad(by_bracket)(9.0), (2.0, 0.0))
    pair = optimize.root_scalar(lambda x, a: (x**3 - a, 3 * x**2), (8.0,), x0=1.0, fprime=True)
    assert abs(pair.root - 2.0) < 1e-7


def test_newton() -> None:
    square = lambda x, a: x**2 - a
    a = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(optimize.newton(square, np.ones(3), args=(a,)), np.sqrt(a))
    for keywords in ({}, {"fprime2": True}, {"x1": 2.0}):
        theirs = {"fprime": None if "x1" in keywords else lambda x, a: 2 * x, **keywords}
        theirs |= {"fprime2": lambda x, a: 2.0} if "fprime2" in keywords else {}
        found = optimize.newton(square, 1.0, args=(9.0,), full_output=True, **keywords)
        expected = reference.newton(square, 1.0, args=(9.0,), full_output=True, **theirs)
        assert abs(found[0] - 3.0) < 1e-8 and found[1].iterations == expected[1].iterations
    root = lambda a: optimize.newton(square, np.ones(3), args=(a,))
    np.testing.assert_allclose(bw.jacobian(root)(a), np.diag(0.5 / np.sqrt(a)), rtol=1e-7)
    assert abs(bw.grad(bw.grad(lambda a: optimize.newton(square, 1.0, args=(a,))))(9.0) + 0.25 / 27) < 1e-9


# ----- fits
T = np.linspace(0.0, 2.0, 15)
Y = 3.0 * np.exp(-0.7 * T) + 0.05 * np.sin(20.0 * T)


def decay(t: Any, scale: Any, rate: Any) -> Any:
    return scale * np.exp(-rate * t)


def slopes(t: Any, scale: Any, rate: Any) -> Any:
    return np.stack([np.exp(-rate * t), -t * scale * np.exp(-rate * t)], axis=1)


@pytest.mark.parametrize("keywords", [{}, {"method": "lm"}, {"method": "dogbox"}, {"loss": "cauchy", "f_scale": 0.1}, {"loss": "huber"},
                                      {"bounds": ([0.0, 0.0], [2.5, 9.0])}, {"jac": "sparse"}, {"jac": "2-point"}], ids=str)
def test_least_squares(keywords: dict[str, Any]) -> None:
    residuals = lambda p, y: decay(T, p[0], p[1]) - y
    theirs = keywords if keywords.get("jac") == "2-point" else {**keywords, "jac": lambda p, y: slopes(T, p[0], p[1])}
    found, expected = (f(residuals, [1.0, 1.0], args=(Y,), **given) for f, given in (
        (optimize.least_squares, keywords), (reference.least_squares, theirs)))
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)
    if keywords.get("jac") != "sparse":
        assert (found.nfev, found.njev) == (expected.nfev, expected.njev)
    else:
        assert found.jac.nnz == 30


def test_least_squares_of_trees() -> None:
    def residuals(p: Any, *, y: Any) -> Any:
        return {"data": decay(T, p["scale"], p["rate"]) - y, "prior": 0.1 * p["rate"]}

    start = {"scale": np.float64(1.0), "rate": 1.0}
    for bounds in ((-np.inf, np.inf), ({"scale": 0.0, "rate": 0.0}, {"scale": 2.5, "rate": np.inf})):
        found = optimize.least_squares(residuals, start, kwargs={"y": Y}, bounds=bounds)
        flat = reference.least_squares(lambda p: [*(decay(T, p[1], p[0]) - Y), 0.1 * p[0]], [1.0, 1.0], bounds=(
            bounds if bounds[1] == np.inf else ([0.0, 0.0], [np.inf, 2.5])))
        np.testing.assert_allclose([found.x["rate"], found.x["scale"]], flat.x, rtol=1e-5)


def test_a_sparse_jacobian_is_used_where_it_pays() -> None:
    banded = lambda x: (x[1:] - x[:-1] ** 2) * 3.0 + 0.1 * x[1:]
    found = optimize.least_squares(banded, np.full(1100, 0.5), max_nfev=2)
    assert found.jac.nnz == 2 * 1099
    full = lambda x: x * np.sum(x)
    assert optimize.least_squares(full, np.full(1100, 0.5), max_nfev=1).jac.shape == (1100, 1100)


@pytest.mark.parametrize("keywords", [{}, {"sigma": 0.1 + T}, {"sigma": 0.1 + T, "absolute_sigma": True}, {"bounds": (0.0, 9.0)},
                                      {"bounds": ([0.0, -9.0], [2.5, np.inf])}, {"p0": [2.0, 1.0]}, {"p0": [2.0, 1.0], "maxfev": 99}], ids=str)
def test_curve_fit(keywords: dict[str, Any]) -> None:
    found, expected = optimize.curve_fit(decay, T, Y, **keywords), reference.curve_fit(decay, T, Y, jac=slopes, **keywords)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    for mine, theirs in zip(bw.jit(lambda y: optimize.curve_fit(decay, T, y, **keywords))(Y), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


# ----- derivatives of solutions
A = np.array([1.0, 2.0])
exactly = {"tol": 1e-13}
SOLUTIONS: dict[str, Any] = {
    "minimize": lambda a: optimize.minimize(quartic, np.zeros(2), args=(a,), **exactly).x,
    "its value": lambda a: optimize.minimize(quartic, np.zeros(2), args=(a,), **exactly).fun,
    "with Hessians": lambda a: optimize.minimize(lambda x: quartic(x, a), np.zeros(2), method="trust-exact", **exactly).x,
    "of a tree": lambda a: optimize.minimize(lambda p: quartic(p["x"], a) + (p["y"] - a[0]) ** 2, {"x": np.zeros(2), "y": a[1]}, **exactly).x["y"],
    "root": lambda a: optimize.root(lambda x: x + x**3 - a, a, **exactly).x,
    "least_squares": lambda a: optimize.least_squares(lambda x: np.concatenate([x - a, x**2]), np.zeros(2), ftol=1e-14, xtol=1e-14, gtol=1e-14).x,
    "with a loss": lambda a: optimize.least_squares(lambda x: np.concatenate([x - a, x**2]), np.zeros(2), loss="soft_l1", ftol=1e-14, xtol=1e-14,
                                                    gtol=1e-14).x,
    "curve_fit": lambda a: optimize.curve_fit(lambda t, s, r: decay(t, s, r) * a[0], T, Y + a[1])[0],
    "newton": lambda a: optimize.newton(lambda x: x + x**3 - a, a),
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_derivatives_of_solutions(name: str) -> None:
    solution = SOLUTIONS[name]
    compiled, v, h = bw.jit(solution), np.array([0.3, -0.7]), 1e-4
    moved = lambda f, k: f(A + k * h * v)
    difference = lambda f: (8 * (moved(f, 1) - moved(f, -1)) - moved(f, 2) + moved(f, -2)) / (12 * h)
    slope = bw.jit(lambda a: bw.jvp(solution, (a,), (v,))[1])
    np.testing.assert_allclose(slope(A), difference(compiled), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(bw.jacrev(solution)(A) @ v, slope(A), rtol=1e-7, atol=1e-9)
    if name in ("minimize", "root"):
        np.testing.assert_allclose(bw.jvp(slope, (A,), (v,))[1], difference(slope), rtol=1e-4, atol=1e-7)
        batch = np.stack([A, 2 * A])
        np.testing.assert_allclose(bw.vmap(solution)(batch), [compiled(one) for one in batch], rtol=1e-9)


def test_solutions_at_bounds_do_not_move() -> None:
    at = lambda a: optimize.minimize(quartic, np.zeros(2), args=(a,), bounds=[(None, 0.5), (None, None)], **exactly).x
    free = bw.jacobian(SOLUTIONS["minimize"])(A)
    np.testing.assert_allclose(bw.jacobian(at)(A), [[0.0, 0.0], [0.0, free[1, 1]]], atol=1e-8)
    fit = lambda a: optimize.least_squares(lambda x: x - a, np.zeros(2), bounds=(-9.0, [0.5, 9.0])).x
    np.testing.assert_allclose(bw.jacobian(fit)(A), [[0.0, 0.0], [0.0, 1.0]], atol=1e-6)


def test_what_is_refused_inside_of_traced_functions() -> None:
    with pytest.raises(UnsupportedError, match="no constraints"):
        bw.jit(lambda a: optimize.minimize(quartic, np.zeros(2), (a,), constraints={"type": "eq", "fun": np.sum}).x)(A)
    with pytest.raises(UnsupportedError, match="bounds must be numbers"):
        bw.jit(lambda a: optimize.minimize(quartic, np.zeros(2), (a,), bounds=[(a[0], None), (None, None)]).x)(A)
    with pytest.raises(UnsupportedError, match="losses"):
        bw.jit(lambda a: optimize.least_squares(lambda x: x - a, np.zeros(2), loss=np.exp).x)(A)


def test_derivatives_that_are_given_are_those_of_the_function() -> None:
    cubic = lambda x, a: x**3 - a
    slope, second = lambda x, a: 3 * x**2, lambda x, a: 6 * x
    pair, three = lambda x, a: (x**3 - a, 3 * x**2), lambda x, a: (x**3 - a, 3 * x**2, 6 * x)
    for solution in (lambda a: reference.newton(cubic, 1.5, slope, args=(a,)), lambda a: reference.newton(cubic, 1.5, slope, (a,), fprime2=second),
                     lambda a: reference.root_scalar(cubic, (a,), x0=1.5, fprime=slope).root,
                     lambda a: reference.root_scalar(cubic, (a,), x0=1.5, fprime=slope, fprime2=second).root,
                     lambda a: reference.root_scalar(pair, (a,), x0=1.5, fprime=True).root,
                     lambda a: reference.root_scalar(three, (a,), "halley", x0=1.5, fprime=True, fprime2=True).root,
                     lambda a: reference.fsolve(cubic, 1.5, (a,), fprime=lambda x, a: np.diag(3 * x**2))[0],
                     lambda a: reference.root(cubic, [1.5], (a,), jac=lambda x, a: np.diag(3 * x**2)).x[0],
                     lambda a: reference.root(lambda x, a: (x**3 - a, np.diag(3 * x**2)), [1.5], (a,), jac=True).x[0],
                     lambda a: reference.least_squares(cubic, [1.5], lambda x, a: np.diag(3 * x**2), args=(a,), gtol=1e-14).x[0],
                     lambda a: reference.least_squares(cubic, [1.5], "3-point", args=(a,), gtol=1e-14).x[0]):
        np.testing.assert_allclose(bw.value_and_grad(solution)(8.0), (2.0, 1 / 12), rtol=1e-6)
    by_gradient = bw.grad(quartic)
    for keywords in ({"jac": by_gradient}, {"jac": by_gradient, "hess": bw.hessian(quartic), "method": "trust-exact"}):
        found = bw.jacobian(lambda a, k=keywords: reference.minimize(quartic, np.zeros(2), (a,), tol=1e-13, **k).x)(A)
        np.testing.assert_allclose(found, bw.jacobian(SOLUTIONS["minimize"])(A), rtol=1e-6)
    both = lambda x, a: (quartic(x, a), by_gradient(x, a))
    np.testing.assert_allclose(bw.jit(lambda a: reference.minimize(both, np.zeros(2), (a,), jac=True).x)(A), SOLUTIONS["minimize"](A), rtol=1e-6)
    fitted = lambda y: reference.curve_fit(decay, T, y, jac=slopes)[0]
    np.testing.assert_allclose(bw.jit(fitted)(Y), fitted(Y), rtol=1e-6)


def test_scipys_own_functions_in_captured_code() -> None:
    by_argument = lambda a: reference.brentq(lambda x, a: x**3 - a, 0.0, 10.0, args=(a,))
    by_closure = lambda a: reference.brentq(lambda x: x**3 - a, 0.0, 10.0)
    plain = lambda a: a * reference.brentq(lambda x: x**3 - 8.0, 0.0, 10.0)
    solved = lambda a: reference.fsolve(lambda x: x**3 - a, 1.0)[0]
    np.testing.assert_allclose([bw.grad(f)(8.0) for f in (by_argument, by_closure, plain, solved)], [1 / 12, 1 / 12, 2.0, 1 / 12], rtol=1e-6)


def test_solvers_that_are_not_here_take_no_functions_of_traced_values() -> None:
    known = lambda a: a * reference.leastsq(lambda x: x - 3.0, 1.0)[0][0]
    assert abs(bw.grad(known)(8.0) - 3.0) < 1e-6
    with pytest.raises(UnsupportedError) as raised:
        bw.grad(lambda a: reference.leastsq(lambda x: x - a, 1.0)[0][0])(8.0)
    place, found, hint = str(raised.value).split("\n")
    assert place.startswith(f"{__file__}:") and "scipy.optimize.leastsq is given a function that computes with traced values" in found
    assert hint == "  hint: bw.scipy.optimize.least_squares(fun, x0).x"


def test_functions_are_traced_once_however_often_a_solver_is_called() -> None:
    traces: list[str] = []

    def noted(name: str, fun: Any) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            traces.append(name)
            return fun(*args, **kwargs)
        function.__signature__ = inspect.signature(fun)  # type: ignore[attr-defined]
        return function

    fit = noted("curve_fit", decay)
    residuals = noted("least_squares", lambda p, *, y: decay(T, p[0], p[1]) - y)
    loss, cubic = noted("minimize", quartic), noted("root_scalar", lambda x, a: x**3 - a)
    seen = []
    for k in range(3):
        optimize.curve_fit(fit, T, Y + k)
        optimize.least_squares(residuals, [1.0, 1.0], kwargs={"y": Y + k})
        optimize.minimize(loss, START, args=(np.full(3, float(k)),), method="trust-ncg")
        optimize.root_scalar(cubic, args=(8.0 + k,), x0=1.0)
        optimize.brentq(cubic, 0.0, 9.0, args=(8.0 + k,))
        seen.append(len(traces))
    assert set(traces) == {"curve_fit", "least_squares", "minimize", "root_scalar"} and seen[1] == seen[2]
