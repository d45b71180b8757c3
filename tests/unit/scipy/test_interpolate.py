"""`bw.scipy.interpolate` against SciPy: values over kinds, axes and conditions, derivatives to second order by data and points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse.linalg

import bwcompiler as bw
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.scipy.interpolate.piecewise import MOST_DENSE
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

ours = bw.scipy.interpolate
rng = np.random.default_rng(23)
CONDITIONS = ["not-a-knot", "natural", "clamped", "periodic", ((1, 0.5), (2, -1.0)), ("not-a-knot", (1, 2.0))]


def traced(fun: Callable[..., Any], *args: Any) -> Any:
    return run_traced(fun, *args)[0]


def close(found: Any, expected: Any, tolerance: float = 1e-8) -> None:
    assert np.shape(found) == np.shape(expected)
    size = np.nanmax(np.abs(expected)) if np.size(expected) and not np.isnan(expected).all() else 1.0
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(size, 1e-3))


def points_of(x: Any) -> Any:
    """Inside, outside, on the points, and a nan."""
    return np.concatenate([np.linspace(x[0] - 1, x[-1] + 1, 9), x[:2], x[-1:], [np.nan]])


def samples(rng: np.random.Generator, n: int, tail: tuple[int, ...] = ()) -> tuple[Any, Any]:
    return np.sort(rng.uniform(0, 10, n)), rng.normal(size=(n, *tail))


# ----- piecewise cubics
@pytest.mark.parametrize("bc", CONDITIONS, ids=str)
def test_cubic_splines(bc: Any, rng: np.random.Generator) -> None:
    for n in (2, 3, 4, 7, MOST_DENSE + 20):
        x, y = samples(rng, n)
        y[-1] = y[0] if bc == "periodic" else y[-1]
        expected = scipy.interpolate.CubicSpline(x, y, bc_type=bc)
        at = points_of(x)

        def every(x: Any, y: Any, at: Any) -> Any:
            spline = ours.CubicSpline(x, y, bc_type=bc)
            integrals = spline.integrate(1.0, 4.0), spline.integrate(9.0, -2.0), spline.antiderivative(2)(at)
            return spline(at), spline(at, 1), spline(at, 3), spline.derivative()(at), *integrals

        found = traced(every, x, y, at)
        for one, other in zip(found, [expected(at), expected(at, 1), expected(at, 3), expected.derivative()(at), expected.integrate(1.0, 4.0),
                                      expected.integrate(9.0, -2.0), expected.antiderivative(2)(at)], strict=True):
            close(one, other, 1e-7)


@pytest.mark.parametrize("make", [
    lambda m, x, y, axis: m.CubicSpline(x, y, axis), lambda m, x, y, axis: m.CubicSpline(x, y, axis, "natural", False),
    lambda m, x, y, axis: m.PchipInterpolator(x, y, axis), lambda m, x, y, axis: m.Akima1DInterpolator(x, y, axis),
    lambda m, x, y, axis: m.Akima1DInterpolator(x, y, axis, method="makima", extrapolate=True),
    lambda m, x, y, axis: m.CubicHermiteSpline(x, y, np.ones_like(y), axis), lambda m, x, y, axis: m.make_interp_spline(x, y, axis=axis)])
def test_axes(make: Callable[..., Any], rng: np.random.Generator) -> None:
    x = np.array([0.0, 0.5, 2.0, 3.0, 4.5])
    for shape, axis in (((5,), 0), ((5, 2), 0), ((2, 5), 1), ((2, 5, 3), -2)):
        y = rng.normal(size=shape)
        for at in (np.array(1.25), np.array([[0.25, 2.5, 9.0], [0.0, 4.5, -1.0]])):
            close(traced(lambda x, y, at, axis=axis: make(ours, x, y, axis)(at), x, y, at), make(scipy.interpolate, x, y, axis)(at))


@pytest.mark.parametrize("name", ["CubicSpline", "PchipInterpolator", "Akima1DInterpolator"])
def test_few_points(name: str, rng: np.random.Generator) -> None:
    for n in (2, 3):
        x, y = samples(rng, n)
        close(traced(lambda x, y: getattr(ours, name)(x, y)(x[0] + 0.01), x, y), getattr(scipy.interpolate, name)(x, y)(x[0] + 0.01))


@pytest.mark.parametrize("make", [
    lambda x, y: ours.CubicSpline(x, y), lambda x, y: ours.CubicSpline(x, y, bc_type="natural"), ours.PchipInterpolator,
    lambda x, y: ours.Akima1DInterpolator(x, y, extrapolate=True), lambda x, y: ours.make_interp_spline(x, y, 3),
    lambda x, y: ours.make_interp_spline(x, y, 2), lambda x, y: ours.interp1d(x, y, "cubic"), ours.interp1d,
    lambda x, y: ours.interp1d(x, y, "nearest")])
def test_derivatives(make: Callable[..., Any], rng: np.random.Generator) -> None:
    x = np.array([0.0, 0.6, 1.9, 3.1, 4.2, 5.0])
    check_derivatives(lambda x, y, at: make(x, y)(at), x, rng.normal(size=6), np.array([0.2, 1.1, 4.7]), tolerance=1e-5)


def test_large_systems_have_derivatives(rng: np.random.Generator) -> None:
    x, y = samples(rng, MOST_DENSE + 5)

    def f(y: Any) -> Any:
        return ours.CubicSpline(x, y)(np.array([2.0, 5.0]))

    jacobian = bw.jacobian(f)(y)
    close(jacobian @ y, scipy.interpolate.CubicSpline(x, y)(np.array([2.0, 5.0])))             # it is linear in y
    close(bw.vmap(f)(np.stack([y, 2 * y])), np.stack([f(y), 2 * f(y)]))


def test_conditions_of_traced_values(rng: np.random.Generator) -> None:
    x, y = np.array([0.0, 1.0, 2.5, 3.0]), rng.normal(size=4)
    check_derivatives(lambda y, slope: ours.CubicSpline(x, y, bc_type=((1, slope), (2, slope * slope)))(1.5), y, np.array(0.7))
    for wrong, message in ((lambda: ours.CubicSpline(x[::-1], y), "strictly increasing"), (lambda: ours.CubicSpline(x, y[:3]), "match the length"),
                           (lambda: ours.CubicSpline(x, y, bc_type="odd"), "not allowed"), (lambda: ours.CubicSpline(x[:1], y[:1]), "at least 2"),
                           (lambda: ours.CubicSpline(x, y, bc_type="periodic"), "identical"),
                           (lambda: ours.PchipInterpolator(x, y + 1j), "only works with real")):
        with pytest.raises(ValueError, match=message):
            wrong()
    complex_ = y + 1j * y[::-1]
    close(traced(lambda y: ours.CubicSpline(x, y)(np.array([0.3, 2.0])), complex_), scipy.interpolate.CubicSpline(x, complex_)(np.array([0.3, 2.0])))


# ----- B-splines
@pytest.mark.parametrize(("k", "bc"), [
    (0, None), (1, None), (2, None), (3, None), (4, None), (5, None), (3, "natural"), (3, "clamped"), (3, ([(2, 0.5)], [(1, 1.0)])),
    (5, ([(1, 0.5), (2, 0.0)], [(2, 0.5), (1, 1.0)])), (5, ([(3, 0.5), (1, 0.0)], [(3, 0.5), (1, 1.0)]))])
def test_splines_through_points(k: int, bc: Any, rng: np.random.Generator) -> None:
    for n in (7, MOST_DENSE + 10):
        x, y = np.linspace(0, 9, n) ** 1.1, rng.normal(size=n)
        expected, at = scipy.interpolate.make_interp_spline(x, y, k, bc_type=bc), points_of(x)[:-1]

        def every(x: Any, y: Any, at: Any) -> Any:
            spline = ours.make_interp_spline(x, y, k, bc_type=bc)
            found = spline(at), spline(at, 2), spline.integrate(0.5, 3.0), spline(at, 0, False)
            return (*found, spline.derivative()(at)) if k else found

        values = [expected(at), expected(at, 2), expected.integrate(0.5, 3.0), expected(at, 0, False)]
        values += [expected.derivative()(at)] if k else []
        for one, other in zip(traced(every, x, y, at), values, strict=True):
            close(one, other, 1e-7)


def test_splines_with_given_knots(rng: np.random.Generator) -> None:
    t, c = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 2.5, 4.0, 4.0, 4.0]), rng.normal(size=6)
    at = np.array([0.0, 0.5, 1.0, 2.5, 3.9, 4.0, 4.5, -0.5])
    expected = scipy.interpolate.BSpline(t, c, 2)
    for extrapolate in (True, "periodic", False):
        close(traced(lambda t, c, at, how=extrapolate: ours.BSpline(t, c, 2, how)(at), t, c, at), expected(at, extrapolate=extrapolate))
    for ext in (0, 1, 3):
        close(traced(lambda c, at, ext=ext: ours.splev(at, (t, c, 2), 1, ext), c, at), scipy.interpolate.splev(at, (t, c, 2), 1, ext))
    close(traced(lambda c: ours.BSpline(t, c, 2, False).integrate(-1.0, 3.0), c), scipy.interpolate.BSpline(t, c, 2, False).integrate(-1.0, 3.0))
    check_derivatives(lambda c, at: ours.BSpline(t, c, 2)(at), c, np.array([0.3, 1.7, 3.0]))
    knots = np.array([0.0, 0.0, 0.0, 0.0, 2.0, 3.0, 3.0, 3.0, 3.0])
    x, y = np.array([0.0, 1.0, 1.5, 2.5, 3.0]), rng.normal(size=5)
    close(ours.make_interp_spline(x, y, 3, knots)(0.7), scipy.interpolate.make_interp_spline(x, y, 3, knots)(0.7))
    with pytest.raises(ValueError, match="need at least"):
        ours.make_interp_spline(x, y, 3, knots[1:])
    with pytest.raises(ValueError, match="does not match"):
        ours.make_interp_spline(x, y, 3, bc_type=([(1, 0.0)], None))
    with pytest.raises(UnsupportedError, match="CubicSpline"):
        ours.make_interp_spline(x, y, bc_type="periodic")
    with pytest.raises(UnsupportedError, match="plain arrays"):
        ours.CubicSpline(x, y).roots()


# ----- interp1d and grids
@pytest.mark.parametrize("kind", ["linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic", 2])
def test_interp1d(kind: Any, rng: np.random.Generator) -> None:
    x, y = samples(rng, 6)
    at = np.concatenate([points_of(x)[:-1], (x[1:] + x[:-1]) / 2])
    for fill in (0.5, (1.0, np.array(2.0)), "extrapolate", np.nan):
        expected = scipy.interpolate.interp1d(x, y, kind, fill_value=fill, bounds_error=False)
        close(traced(lambda x, y, at, fill=fill: ours.interp1d(x, y, kind, fill_value=fill, bounds_error=False)(at), x, y, at), expected(at))
    matrix = rng.normal(size=(2, 6))
    turned = scipy.interpolate.interp1d(x[::-1], matrix[:, ::-1], kind)
    middle = np.array([[(x[0] + x[-1]) / 2]])
    close(traced(lambda x, y: ours.interp1d(x, y, kind)(middle), x[::-1].copy(), matrix[:, ::-1].copy()), turned(middle))


def test_interp1d_outside() -> None:
    x, y = np.arange(4.0), np.arange(4.0) ** 2
    with pytest.raises(ValueError, match="below the interpolation range's minimum"):
        ours.interp1d(x, y)(np.array([-0.5]))
    assert np.isnan(traced(lambda at: ours.interp1d(x, y)(at), np.array([-0.5])))              # a program cannot raise for a value
    with pytest.raises(NotImplementedError, match="unsupported"):
        ours.interp1d(x, y, "odd")
    with pytest.raises(ValueError, match="at least 4 entries"):
        ours.interp1d(x[:3], y[:3], "cubic")


@pytest.mark.parametrize("method", ["linear", "nearest", "slinear", "cubic", "quintic"])
@pytest.mark.parametrize("shape", [(6,), (6, 7), (6, 7, 6), (6, 7, 2)], ids=str)
def test_grids(method: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    axes = 2 if shape[-1] == 2 else len(shape)
    grids = tuple(np.sort(rng.uniform(0, 5, n)) for n in shape[:axes])
    data, at = rng.normal(size=shape), rng.uniform(-0.5, 5.5, (7, axes))
    at[2, 0] = np.nan
    exact = {"solver": scipy.sparse.linalg.spsolve} if method in ("cubic", "quintic") else {}
    for fill in (None, 7.0):
        expected = scipy.interpolate.RegularGridInterpolator(grids, data, method, False, fill, **exact)(at)
        close(traced(lambda v, at, fill=fill: ours.RegularGridInterpolator(grids, v, method, False, fill)(at), data, at), expected, 1e-6)
    inside = np.stack([rng.uniform(one[0], one[-1], 5) for one in grids], -1)
    expected = scipy.interpolate.RegularGridInterpolator(grids, data, method, **exact)(inside)
    close(traced(lambda v, at: ours.interpn(grids, v, tuple(at.T), method), data, inside), expected, 1e-6)
    if axes == 2 and method != "quintic":
        check_derivatives(lambda v, at, *grids: ours.interpn(grids, v, at, method), data, inside, *grids, order=2 if method == "linear" else 1,
                          tolerance=1e-5)


def test_grids_refuse(rng: np.random.Generator) -> None:
    grid, data = (np.arange(4.0), np.arange(3.0)), rng.normal(size=(4, 3))
    close(ours.interpn((grid[0][::-1], grid[1]), data, np.array([1.25, 0.5])), scipy.interpolate.interpn((grid[0][::-1], grid[1]), data, [1.25, 0.5]))
    with pytest.raises(ValueError, match="out of bounds in dimension 1"):
        ours.interpn(grid, data, np.array([1.0, 2.5]))
    with pytest.raises(ValueError, match="at least 4 points"):
        ours.interpn(grid, data, np.array([1.0, 1.5]), "cubic")
    with pytest.raises(UnsupportedError, match="PchipInterpolator"):
        ours.interpn(grid, data, np.array([1.0, 1.5]), "pchip")
    with pytest.raises(ValueError, match="strictly ascending"):
        ours.interpn((np.array([0.0, 2.0, 1.0, 3.0]), grid[1]), data, np.array([1.0, 1.5]))


# ----- SciPy's own names in captured functions
X = np.linspace(0.0, 3.0, 8)
SPLINE, LINE = scipy.interpolate.CubicSpline(X, np.sin(X)), scipy.interpolate.interp1d(X, np.cos(X), kind="quadratic")
B_SPLINE = scipy.interpolate.make_interp_spline(X, np.exp(X))
TABLE = scipy.interpolate.RegularGridInterpolator((X, X), np.outer(np.sin(X), X))


def made_inside(y, q):
    return scipy.interpolate.CubicSpline(X, y)(q).sum() + scipy.interpolate.PchipInterpolator(X, y)(q)[0]


def made_outside(y, q):
    return (SPLINE(q) * LINE(q)).sum() + SPLINE.derivative()(q)[1] + SPLINE(q, 2)[0] + B_SPLINE(q)[1] + TABLE(np.stack([q, q], -1)).sum() * y[0]


def in_a_loop(y, q):
    spline, total = scipy.interpolate.CubicSpline(X, np.cos(X)), 0.0
    for k in range(6):
        total += spline(q * k / 5).sum() * y[k]
    return total + SPLINE.integrate(0.0, q[1])


@pytest.mark.parametrize("function", [made_inside, made_outside, in_a_loop], ids=lambda one: one.__name__)
def test_captured(function: Callable[..., Any]) -> None:
    y, q = np.cos(X), np.array([0.3, 1.7])
    np.testing.assert_allclose(bw.jit(function)(y, q), function(y, q), rtol=1e-9)
    check_derivatives(function, y, q, order=1)


def test_captured_refusal(rng: np.random.Generator) -> None:
    places = rng.normal(size=(6, 2))
    with pytest.raises(UnsupportedError, match="RegularGridInterpolator"):
        bw.jit(lambda a: scipy.interpolate.griddata(places, a, np.zeros((1, 2))))(np.ones(6))


@pytest.mark.parametrize("kernel", ["linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic",
                                    "gaussian"])
def test_radial_basis_functions(kernel: str, rng: np.random.Generator) -> None:
    y, d, x = rng.normal(size=(12, 2)), rng.normal(size=(12, 3)), rng.normal(size=(4, 2))
    for keywords in ({"epsilon": 1.3}, {"epsilon": 0.7, "smoothing": 0.1, "degree": 2}):
        theirs = scipy.interpolate.RBFInterpolator(y, d, kernel=kernel, **keywords)
        ours = lambda y, d, x, k=keywords: bw.scipy.interpolate.RBFInterpolator(y, d, kernel=kernel, **k)(x)
        np.testing.assert_allclose(bw.jit(ours)(y, d, x), theirs(x), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(bw.jit(lambda x: theirs(x))(x), theirs(x), rtol=1e-8, atol=1e-10)

    def fun(y: Any, d: Any, x: Any, s: Any, e: Any) -> Any:
        return bw.scipy.interpolate.RBFInterpolator(y, d, kernel=kernel, smoothing=s, epsilon=e)(x)
    bw.check_grads(fun, (y, d[:, 0], x, 0.1, 1.3), order=1)


def test_what_radial_basis_functions_take(rng: np.random.Generator) -> None:
    y, x = rng.normal(size=(9, 2)), rng.normal(size=(3, 2))
    turned = rng.normal(size=9) + 1j * rng.normal(size=9)
    theirs = scipy.interpolate.RBFInterpolator(y, turned)
    np.testing.assert_allclose(bw.jit(lambda x: theirs(x))(x), theirs(x), rtol=1e-9)
    np.testing.assert_allclose(bw.scipy.interpolate.RBFInterpolator(y, turned)(x), theirs(x), rtol=1e-9)
    assert np.isfinite(bw.grad(lambda x: bw.scipy.interpolate.RBFInterpolator(y, turned.real)(x).sum())(y)).all()        # at the data
    make = bw.scipy.interpolate.RBFInterpolator
    for call, kind in ((lambda: make(y, turned, neighbors=3), UnsupportedError), (lambda: make(y, turned[:3]), ValueError),
                       (lambda: make(y, turned, kernel="other"), ValueError), (lambda: make(y, turned, kernel="gaussian"), ValueError),
                       (lambda: make(y[:2], turned[:2]), ValueError), (lambda: make(y, turned)(x[:, :1]), ShapeError)):
        with pytest.raises(kind):
            call()


# ----- one polynomial through all points
NODES, HEIGHTS = np.array([0.0, 1.2, 2.0, 3.5, 4.1]), np.random.default_rng(5).normal(size=(5, 2))


def extended(module: Any, x: Any, y: Any, t: Any) -> Any:
    made = module.BarycentricInterpolator(x[:3], y[:3])
    made.add_xi(x[3:], y[3:])
    first = made(t)
    made.set_yi(y * 2)
    return first, made(t)


POLYNOMIALS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {      # of a module (ours or SciPy's), points, values, places
    **{f"{name} {what}": (lambda m, x, y, t, name=name, call=call: call(getattr(m, name), x, y, t), args)
       for name in ("KroghInterpolator", "BarycentricInterpolator") for what, (call, args) in {
           "values": (lambda make, x, y, t: make(x, y)(t), (NODES, HEIGHTS, np.array([[-0.3, 1.2], [2.7, 5.0]]))),
           "along an axis": (lambda make, x, y, t: make(x, y, axis=1)(t), (NODES, HEIGHTS.T, np.array([-0.3, 2.7]))),
           "derivatives": (lambda make, x, y, t: (make(x, y).derivative(t), make(x, y).derivatives(t, 3), make(x, y).derivatives(t[0])),
                           (NODES, HEIGHTS[:, 0], np.array([1.7, 3.5])))}.items()},
    "functions": (lambda m, x, y, t: (m.krogh_interpolate(x, y, t, der=[0, 2]), m.barycentric_interpolate(x, y, t), m.krogh_interpolate(x, y, t[0]),
                                      m.barycentric_interpolate(x, y, t, der=2)), (NODES, HEIGHTS, np.array([1.7, 3.5]))),
    "repeated points": (lambda m, y, t: m.KroghInterpolator(np.array([0.0, 0, 0, 1, 1, 2]), y)(t), (np.cos(np.arange(6.0)), np.array([0.3, 1.0, 4.0]))),
    "more points": (extended, (NODES, HEIGHTS, np.array([1.7, 3.5]))),
    "complex values": (lambda m, x, y, t: m.BarycentricInterpolator(x, y[:, 0] + 1j * y[:, 1])(t), (NODES, HEIGHTS, np.array([1.7, 3.5]))),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_whole_polynomials(name: str) -> None:
    fun, args = POLYNOMIALS[name]
    found, expected = traced(lambda *args: fun(ours, *args), *args), fun(scipy.interpolate, *args)
    for one, other in zip(bw.tree.leaves(found), bw.tree.leaves(expected), strict=True):
        close(one, other)
    if name != "complex values":
        check_derivatives(lambda *args: fun(ours, *args), *args, order=2 if "values" in name else 1, tolerance=3e-6)


def test_whole_polynomials_made_before_and_of_many_points() -> None:
    nodes = np.cos(np.arange(60) * np.pi / 59)
    for known in (scipy.interpolate.BarycentricInterpolator(nodes, np.sin(5 * nodes)),
                  scipy.interpolate.KroghInterpolator(NODES, HEIGHTS.T, axis=1), scipy.interpolate.BarycentricInterpolator(NODES, HEIGHTS)):
        close(bw.jit(lambda t, known=known: known(t))(np.array([-0.3, 0.8])), known(np.array([-0.3, 0.8])), 1e-12)


def test_splines_with_fitpacks_methods() -> None:
    x, at = np.sort(np.random.default_rng(3).uniform(0, 3, 9)), np.linspace(-0.5, 3.5, 13)
    y, spline = np.sin(2 * x), scipy.interpolate.InterpolatedUnivariateSpline
    for k in (2, 3):
        def of_all(y, at, k=k):
            s = spline(x, y, k=k)
            parts = [s(at), s(at, 1), spline(x, y, k=k, ext="const")(at), spline(x, y, k=k, ext=1)(at), s.derivatives(1.2), s.get_knots(),
                     s.get_coeffs(), s.derivative()(at), spline(x, y, k=k, ext=3).derivative()(at) if k > 1 else at]
            return np.concatenate([*parts, np.array([s.integral(-0.4, 2.2)]), s.antiderivative()(at) if k < 5 else at])
        np.testing.assert_allclose(bw.jit(of_all)(y, at), of_all(y, at), rtol=1e-8, atol=1e-8)
    check_derivatives(lambda y: spline(x, y).integral(0.0, 2.0) + spline(x, y)(1.1) ** 2, y, order=1)
    smooth = scipy.interpolate.UnivariateSpline(x, y, s=0.01)

    def at_points(at):
        return smooth(at).sum() + smooth.derivative()(at).sum() + smooth.integral(0.1, at[3])
    assert bw.jit(at_points)(at) == pytest.approx(at_points(at), rel=1e-10)
    check_derivatives(at_points, at, order=1)
    with pytest.raises(UnsupportedError, match="bbox="):
        bw.jit(lambda y: spline(x, y, bbox=[0, 5])(1.0))(y)


# ----- splines with chosen knots, and over rectangles
def grid_of(x: Any, y: Any) -> Any:
    return np.arange(6.0) ** 1.1, x, np.cos(np.arange(6.0))[:, None] * y


SPLINES: dict[str, Callable[..., Any]] = {
    "knots, coefficients": lambda m, x, y, t: m.splrep(x, y, k=2)[:2],
    "through all points": lambda m, x, y, t: (m.splev(t, m.splrep(x, y)), m.splev(t, m.splrep(x, y, s=0, k=4), der=1),
                                              m.UnivariateSpline(x, y, s=0)(t, 1)),
    "near to points": lambda m, x, y, t: (m.splev(t, m.splrep(x, y, t=[4.0, 6.0])), m.LSQUnivariateSpline(x, y, [5.0], k=2).derivative()(t)),
    "with weights": lambda m, x, y, t: m.LSQUnivariateSpline(x, y, [5.0], w=1 + np.arange(12.0))(t),
    "two columns": lambda m, x, y, t: m.make_lsq_spline(x, np.stack([y, y ** 2], 1), np.repeat([x[0], 5.0, x[-1]], [4, 1, 4]))(t),
    "on a grid": lambda m, x, y, t: (m.RectBivariateSpline(*grid_of(x, y))(t, t + 0.5), m.RectBivariateSpline(*grid_of(x, y))(1.5, 2.5)),
    "at points": lambda m, x, y, t: (m.RectBivariateSpline(*grid_of(x, y)).ev(0.7 * t, t), m.RectBivariateSpline(*grid_of(x, y)).ev(3 * t, t - 3),
                                     m.RectBivariateSpline(*grid_of(x, y), kx=2, ky=4)(0.7 * t, t, dx=1, dy=2, grid=False)),
}


@pytest.mark.parametrize("name", SPLINES)
def test_splines_of_fitpack(name: str) -> None:
    fun, (x, y), t = SPLINES[name], samples(np.random.default_rng(5), 12), np.array([0.9, 2.0, 4.4, 6.1])
    found, expected = traced(lambda *args: fun(ours, *args), x, y, t), fun(scipy.interpolate, x, y, t)
    for one, other in zip(bw.tree.leaves(found), bw.tree.leaves(expected), strict=True):
        close(one, other)
    check_derivatives(lambda *args: fun(ours, *args), x, y, t, order=1, tolerance=3e-6)


def test_splines_over_rectangles_made_before() -> None:
    x, y = samples(np.random.default_rng(5), 12)
    known = scipy.interpolate.RectBivariateSpline(*grid_of(x, y), kx=2)
    at = np.array([0.9, 2.0, 4.4])
    close(bw.jit(lambda t: known(t, t))(at), known(at, at))
    close(bw.jit(lambda t: known.ev(t, 2 * t))(at), known.ev(at, 2 * at))


def test_splines_whose_knots_data_would_choose() -> None:
    x, y = samples(np.random.default_rng(5), 12)
    for fun in (lambda y: scipy.interpolate.splrep(x, y, s=0.1)[1], lambda y: scipy.interpolate.splrep(x, y, w=np.ones(12))[1],
                lambda y: scipy.interpolate.UnivariateSpline(x, y)(1.0)):
        with pytest.raises(UnsupportedError, match="how many knots it chooses"):
            bw.jit(fun)(y)
    with pytest.raises(UnsupportedError, match="per="):
        bw.jit(lambda y: scipy.interpolate.splrep(x, y, per=1)[1])(y)
    for options in ({"s": 0.1}, {"bbox": (0, 1, 0, 1)}):
        with pytest.raises(UnsupportedError, match="RectBivariateSpline"):
            bw.jit(lambda y, options=options: scipy.interpolate.RectBivariateSpline(*grid_of(x, y), **options)(1.0, 1.0))(y)
    with pytest.raises(ValueError, match="one number per point of the grid"):
        ours.RectBivariateSpline(x, x, np.ones((3, 3)))
