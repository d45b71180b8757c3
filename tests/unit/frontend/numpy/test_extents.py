"""NumPy's functions over ranks, extents (0 and 1 too), dtypes and keywords: value, dtype and shape as NumPy's, or an error as there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

rng = np.random.default_rng(31)
SHAPES = [(), (1,), (0,), (3,), (2, 3), (1, 1), (0, 4), (3, 0), (2, 1, 3)]
DTYPES = [np.bool_, np.int32, np.uint8, np.float32, np.float64, np.complex128]
REAL = DTYPES[:-1]
FLOATS = DTYPES[3:]
AXES = (None, 0, -1)
MATRICES = [(3, 3), (1, 1), (0, 0), (2, 3), (0, 2), (2, 0), (2, 2, 2)]
QUANTILE_METHODS = ("linear", "nearest", "lower", "inverted_cdf", "hazen")


def sample(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    values = np.round(rng.normal(size=shape) * 3, 2) + (np.round(rng.normal(size=shape), 2) * 1j if np.dtype(dtype).kind == "c" else 0)
    return np.asarray(np.abs(values) if np.dtype(dtype).kind in "ub" else values).astype(dtype)


def over(function: Callable[..., Any], *choices: dict[str, Any]) -> list[Callable[[Any], Any]]:
    return [lambda x, options=options: function(x, *options.get("a", ()), **{key: one for key, one in options.items() if key != "a"})
            for options in choices]


def per_axis(name: str, **options: Any) -> list[Callable[[Any], Any]]:
    return over(getattr(np, name), *[{"axis": axis, **options} for axis in AXES])


Cases = tuple[list[Callable[[Any], Any]], list[Any], list[tuple[int, ...]]]
CASES: dict[str, Cases] = {
    **{name: (per_axis(name) + per_axis(name, keepdims=True), DTYPES, SHAPES)
       for name in "sum std max argmax count_nonzero nanmean nanmax".split()},
    "reductions with where": ([lambda x, f=f: f(x, where=x > 0) for f in (np.mean, np.var, np.nanmean)]
                              + [lambda x, f=f, i=i: f(x, initial=2, where=i) for f in (np.max, np.nanmax, np.nanmin) for i in (True, False)]
                              + over(np.var, {"dtype": np.complex128}, {"axis": 0, "ddof": 5}), FLOATS, SHAPES[1:]),
    "means of numbers": (over(np.nanmean, {"axis": 0}) + over(np.var, {"axis": 0, "where": True}), DTYPES, [()]),
    "quantile": (over(np.quantile, *[{"a": (q,), "axis": axis, "method": method} for q in (0.3, [0.1, 1.0]) for axis in AXES
                                     for method in QUANTILE_METHODS]) + over(np.percentile, {"a": (np.float32(20),)}), [np.int32, np.float32], SHAPES[1:6]),
    "nanquantile": (over(np.nanquantile, *[{"a": (q,), "axis": 0, "method": method} for q in (0.3, [0.1, 0.9]) for method in QUANTILE_METHODS]),
                    [np.float32, np.float64], [(1,), (3,), (2, 3)]),
    "cov": (over(np.cov, {}, {"rowvar": False}, {"ddof": 0}, {"ddof": 7}, {"y": [1.0, 2.0, 3.0]}, {"fweights": [1, 2, 3]}, {"fweights": [1.0, 2, 0]},
                 {"aweights": np.float32([0.1, 1, 2])}, {"fweights": [1, 2, 3], "aweights": [0.5, 1, 2]}, {"aweights": [0.1, 0.2, 0.3], "ddof": 3},
                 {"fweights": [1.5, 2, 3]}, {"aweights": [-1, 2, 3]}, {"dtype": np.complex64}), DTYPES[1:], SHAPES),
    "corrcoef": (over(np.corrcoef, {}, {"rowvar": False}), DTYPES[1:], [(2, 3), (3,), (0, 4)]),
    "pad": (over(np.pad, *[{"a": (width, mode)} for width in (0, 1, ((1, 2),)) for mode in
                           ("edge", "reflect", "wrap", "maximum", "mean", "median", "linear_ramp")],
                 {"a": (2, "linear_ramp"), "end_values": (1, 7)}), [np.int32, np.float64], SHAPES[1:8]),
    "cross": ([lambda x: np.cross(x, x[..., ::-1]), lambda x: np.cross(x[..., :2], x), lambda x: np.cross(x, x[..., :2]),
               lambda x: np.cross(x, x + x, axis=0)], DTYPES[1:], [(3,), (2,), (4, 2), (2, 3), (3, 2), (0, 2)]),
    "norm": (over(np.linalg.norm, *[{"ord": order, "axis": axis} for order in (None, 1, 2, np.inf, -np.inf, 0) for axis in AXES])
             + [lambda x: np.linalg.vector_norm(x, ord=np.inf)] + over(np.linalg.norm, {"ord": "nuc"}, {"ord": -2}, {"ord": "fro"}, {"ord": 1}), FLOATS, SHAPES[1:]),
    "square matrices": ([np.linalg.det, lambda x: np.linalg.inv(x + 30 * np.eye(x.shape[-1])), np.linalg.cond, np.linalg.matrix_rank, np.linalg.pinv, lambda x: np.linalg.cond(x * 0),
                         *[lambda x, n=n: np.linalg.matrix_power(x, n) for n in (0, 1, 2, 3)]], DTYPES, MATRICES),
    "digitize": (over(np.digitize, *[{"a": (edges,), "right": right} for edges in ([0, 1, 2.5], [2.5, 1, 0], [1, 1]) for right in (False, True)]),
                 DTYPES, SHAPES),
    "packbits": (over(np.packbits, *[{"axis": axis, "bitorder": order} for axis in AXES for order in ("big", "little")]),
                 [np.bool_, np.uint8, np.int32], [*SHAPES[1:], (2, 17)]),
    "unpackbits": (over(np.unpackbits, *[{"axis": axis, "count": count} for axis in AXES for count in (None, 3, -3, 40)]),
                   [np.uint8, np.int32], [(3,), (2, 3), (2, 1, 3)]),
    "round": (over(np.round, {}, {"decimals": 1}, {"decimals": -1}), DTYPES[1:], SHAPES),
    "order of operands": ([lambda x: np.rollaxis(x, 0, 2), lambda x: np.rollaxis(x, -1), lambda x: np.rot90(x, 1, (0, -1)), np.rot90], DTYPES, SHAPES),
    "bounds": ([lambda x: np.partition(x, 1), lambda x: np.partition(x, (0, -1), 0), np.sort_complex, np.isneginf, np.isposinf], DTYPES, SHAPES[1:]),
    "take": (over(np.take, *[{"a": (index,), "axis": axis, "mode": mode} for index in (0, [0, 0], [], 5) for axis in AXES
                             for mode in ("clip", "wrap")]), DTYPES, SHAPES[1:]),
    "correlate": ([lambda x: np.correlate(x, x, "full"), lambda x: np.convolve(x, x)], DTYPES, [(1,), (3,)]),
    "least squares": ([lambda x: np.linalg.lstsq(x, np.ones((x.shape[0], 2)))[0]], FLOATS, [(3, 2), (2, 3), (0, 0), (1, 1)]),
    "folds": ([np.bitwise_and.reduce, np.bitwise_or.reduce], [np.uint8, np.int32], SHAPES[1:]),
    "einsum": ([lambda x: np.einsum("...i->i", x), lambda x: np.einsum("...i,...i->", x, x)], DTYPES, SHAPES[1:]),
    "of dtypes": ([lambda x: np.zeros(1, np.common_type(x)), lambda x: np.zeros(1, np.min_scalar_type(x))], DTYPES, SHAPES[1:]),
    "isclose": (over(np.isclose, {"a": (1.0, np.array([1e-3, 1.0, 9.0]), 0)}, {"a": (1.0,), "rtol": 0, "atol": np.array([[0.5], [2.0]])},
                     {"a": (np.nan,), "equal_nan": True}) + [lambda x: np.isclose(x, 1, np.abs(x), 0.1)], DTYPES, [(1,), (3,), (2, 3), (2, 1, 3)]),
    "logspace": ([lambda x: np.logspace(x, 1, 3, base=[2.0, 3.0, 4.0]), lambda x: np.logspace(0, 1, 3, base=np.abs(x), axis=-1),
                  lambda x: np.logspace(x, x, 2, base=2)], [np.float64], [(1,), (3,), (2, 3)]),
    "folds with where": ([np.logaddexp.reduce, *[lambda x, f=f: f.reduce(x, axis=-1, where=x > 0) for f in (np.logaddexp, np.hypot, np.logaddexp2)],
                          lambda x: np.power.reduce(x, where=x > 0)], [np.float64], SHAPES[1:]),
    "vecdot": ([lambda x: np.vecdot(x, x, axis=0), lambda x: np.vecdot(x, x, axis=-1), lambda x: np.linalg.vecdot(x, x, axis=0)], FLOATS, SHAPES[1:]),
    "angle": (over(np.angle, {}, {"deg": True}), [np.bool_, np.int32, np.float32, np.complex128], SHAPES[1:]),
    "transforms along no axis": ([np.fft.fftn, np.fft.ifftn, lambda x: np.fft.fftn(x, axes=())], DTYPES, [(), (3,)]),
    "ix_": ([lambda x: np.ix_(x, [0, 1]), lambda x: np.ix_([True, False], x)], DTYPES[1:], SHAPES[1:]),
    "i0": ([np.i0], [*DTYPES, np.float16], SHAPES[1:]),
    "truth": ([lambda x: np.logical_and(x, 1j), lambda x: np.logical_xor(0j, x)], DTYPES, SHAPES[1:]),
}


if np.lib.NumpyVersion(np.__version__) >= "2.5.0":                   # which has no cross products of 2 elements
    CASES["cross"] = (CASES["cross"][0][:1], CASES["cross"][1], [(3,), (2, 3)])
if np.lib.NumpyVersion(np.__version__) < "2.3.0":                    # other dtypes of quantiles, and errors for norms of nothing
    for changed in ("quantile", "norm", "square matrices"):
        del CASES[changed]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_reads_one_triangle(dtype: Any, upper: bool, rng: np.random.Generator) -> None:
    """The upper factor is the adjoint of the lower one, of the triangle that NumPy reads."""
    half = sample(rng, (2, 3, 3), dtype)
    matrix = half @ np.conj(np.swapaxes(half, -1, -2)) + 20 * np.eye(3)
    other = (np.tril if upper else np.triu)(np.full((3, 3), 9.0), -1 if upper else 1)
    factor = run_traced(lambda x: np.linalg.cholesky(x + other, upper=upper), matrix)[0]
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix + other, upper=upper), rtol=1e-12, atol=1e-12)

    def parts(real: Any, imaginary: Any) -> Any:
        h = real + 1j * imaginary if dtype is np.complex128 else real + imaginary
        factor = np.linalg.cholesky(h @ np.conj(np.swapaxes(h, -1, -2)) + 20 * np.eye(3), upper=upper)
        return factor.real, factor.imag

    check_derivatives(parts, half.real.copy(), half.imag.copy(), tolerance=1e-5)


def leaves(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple | list) else [x]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_as_in_numpy(name: str, rng: np.random.Generator) -> None:
    """All calls of one array are one trace; a call that raises is to raise here too."""
    functions, dtypes, shapes = CASES[name]
    for dtype in dtypes:
        for shape in shapes:
            _compare(functions, sample(rng, shape, dtype))


def _compare(functions: list[Callable[[Any], Any]], x: Any) -> None:
    errors: dict[int, Exception] = {}

    def all_of_them(x: Any) -> Any:
        found = []
        for k, function in enumerate(functions):
            try:
                found.append(leaves(function(x)))
            except Exception as error:
                errors[k] = error
                found.append([])
        return found

    with np.errstate(all="ignore"):
        expected = all_of_them(x.copy() if x.ndim else x[()])
        raised = dict(errors)
        errors.clear()
        actual = run_traced(all_of_them, x)[0]
    for k, (some, others) in enumerate(zip(actual, expected, strict=True)):
        where = f"function {k} of {x.dtype}{x.shape}"
        if k in raised and k not in errors and "float16" in str(raised[k]):
            continue
        assert (k in errors) == (k in raised) or "float16" in str(errors.get(k)), f"{where}: {errors.get(k)!r}, NumPy: {raised.get(k)!r}"
        if k in errors:
            continue
        assert len(some) == len(others), where
        for one, other in zip(some, others, strict=True):
            _assert_close(one, other, x.dtype == np.float32, where)


def _assert_close(actual: Any, expected: Any, single: bool, where: str) -> None:
    """Equal dtype and shape; values of float32, or computed in it, to its precision."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, (
        f"{where}: {actual.dtype}{actual.shape}, NumPy: {expected.dtype}{expected.shape}")
    tolerance = 2e-5 if single or expected.dtype in (np.float32, np.complex64) else 2e-3 if expected.dtype == np.float16 else 1e-11
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance, err_msg=where)


@pytest.mark.parametrize("specification", [
    "ij,kj,lj->ikl", "ij,kj,lj,mj->iklm", "i,i,i->", "ij,ij,ij->j", "ij,jk,kl->il", "ij,jk,ki->", "ij,jk,kl,lm->im", "bi,bj,bij->b", "i,j,k,ij->k",
    "ii,ij,j->i", "ij,kj,ik->j", "aij,ajk,akl,al->i"])
def test_contractions_of_many_operands(specification: str, rng: np.random.Generator) -> None:
    """As the sum over all labels that the result does not have, written out; paths may take several operands at once."""
    terms, output = specification.split("->")[0].split(","), specification.split("->")[1]
    extents = {label: 2 + k for k, label in enumerate(sorted(set(specification) - set(",->")))}
    arrays = [rng.normal(size=[extents[label] for label in term]) for term in terms]
    expected = np.zeros([extents[label] for label in output])
    for place in np.ndindex(*extents.values()):
        at = dict(zip(extents, place, strict=True))
        expected[tuple(at[label] for label in output)] += np.prod([a[tuple(at[label] for label in term)] for a, term in zip(arrays, terms, strict=True)])
    for optimize in (False, True):
        found = run_traced(lambda *arrays, optimize=optimize: np.einsum(specification, *arrays, optimize=optimize), *arrays)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_einsum_path_of_traced_arrays(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3))
    found = []
    run_traced(lambda x: found.append(np.einsum_path("ij,kj->ik", x, x)[0]) or x, x)
    assert found == [np.einsum_path("ij,kj->ik", x, x)[0]]


@pytest.mark.parametrize("text", ["...ij->ij", "...ik,...j->ij"])
def test_an_ellipsis_needs_a_place(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.\.\."):
        run_traced(lambda x: np.einsum(text, *[x, x[..., 0]][:text.count(",") + 1]), np.ones((2, 2, 2)))


def test_fractions_have_the_sign_of_the_number_and_the_derivative_one() -> None:
    """At whole numbers too, from below zero as from above."""
    x = np.array([-1.0, -0.0, 0.0, 1.0, -1.5, 2.25, -2.0, np.inf, -np.inf, np.nan, -1e-310])
    for found, expected in zip(bw.jit(np.modf)(x), np.modf(x), strict=True):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found[:-2]), np.signbit(expected[:-2]))
    np.testing.assert_array_equal(bw.grad(lambda x: np.modf(x)[0].sum())(x[:7]), np.ones(7))


def test_sinc_is_smooth_at_zero() -> None:
    """Derivatives of all orders: (-1)**k pi**2k / (2k + 1) of even ones; and the values are those of NumPy on both sides of where series end."""
    functions: list[Any] = [np.sinc]
    for _ in range(4):
        functions.append(bw.grad(functions[-1]))
    np.testing.assert_allclose([f(0.0) for f in functions], [1, 0, -np.pi**2 / 3, 0, np.pi**4 / 5], rtol=1e-12, atol=1e-15)
    for dtype in (np.float64, np.complex128):
        x = np.array([0.0, 1e-300, 1e-5, 0.0318, 0.0319, 0.5, 1.0, -0.02, np.inf, np.nan]).astype(dtype)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(bw.jit(np.sinc)(x), np.sinc(x), rtol=1e-15, atol=1e-16)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("source", [np.float32, np.float64])
@pytest.mark.parametrize("target", [np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64, np.int32, np.int64])
def test_floats_become_integers_by_their_lowest_bits(source: Any, target: Any) -> None:
    """Compiled as interpreted: -1.0 is 255 as uint8, 300.0 is 44.  (Beyond the wider integers NumPy differs from processor to processor.)"""
    values = [-1.5, -0.4, 0.0, 7.9, -128.0] + ([300.0, -300.0, 70000.0] if np.dtype(target).itemsize < 4 else [300.0, -300.0])
    x = np.array(values * 9, source)
    expected = x.astype(np.int64).astype(target)
    np.testing.assert_array_equal(bw.jit(lambda x: x.astype(target))(x), expected)
    assert bw.jit(lambda x: x.astype(target))(np.array([np.nan], source))[0] == 0
