"""Linear algebra, sorts and integer functions of compiled programs against NumPy: every routine that `library` declares.

Sizes lie on both sides of what is written out as loops of the program and what goes to BLAS and LAPACK.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import scipy.special

import bwcompiler as bw
from bwcompiler.compiler import native, pipeline
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.lowering.libraries.call_texts import Libraries
from bwcompiler.lowering.libraries.cholesky_calls import WHOLE
from bwcompiler.lowering.libraries.factorization_calls import SMALL
from bwcompiler.runtime import blas_calls
from tests.support.threads import with_threads

SIZES = (1, 3, SMALL, SMALL + 1)


def matrices(n: int, lead: tuple[int, ...] = (), dtype: str = "f8") -> Any:
    """Well-conditioned matrices that are not symmetric, and need rows exchanged."""
    found = np.random.default_rng(n).standard_normal((*lead, n, n)) + 2 * n * np.eye(n)[::-1]
    return found.astype(dtype)


def positive(a: Any) -> Any:
    return a @ a.swapaxes(-1, -2) / a.shape[-1]


SQUARE: dict[str, Callable[..., Any]] = {
    "solve": lambda a, b: np.linalg.solve(a, b),
    "solve a vector": lambda a, b: np.linalg.solve(a, b[..., :1]),
    "solve transposed": lambda a, b: np.linalg.solve(a.swapaxes(-1, -2), b),
    "inv": lambda a, b: np.linalg.inv(a),
    "inv transposed": lambda a, b: np.linalg.inv(a.swapaxes(-1, -2)),
    "det": lambda a, b: np.linalg.det(a / a.shape[-1]),
    "slogdet": lambda a, b: tuple(np.linalg.slogdet(a)),
    "cholesky": lambda a, b: np.linalg.cholesky(positive(a)),
    "factor and solve": lambda a, b: np.linalg.solve(np.linalg.cholesky(positive(a)), b),
    "factor and solve transposed": lambda a, b: np.linalg.solve(np.linalg.cholesky(positive(a)).swapaxes(-1, -2), b[..., :1]),
    "upper": lambda a, b: np.linalg.solve(np.triu(a[..., ::-1, :]), b),
    "lower transposed": lambda a, b: np.linalg.solve(np.tril(a[..., ::-1, :]).swapaxes(-1, -2), b),
    "inv of a triangle": lambda a, b: np.linalg.inv(np.tril(a[..., ::-1, :])) + np.linalg.inv(np.linalg.cholesky(positive(a)).swapaxes(-1, -2)),
    "eigvalsh": lambda a, b: np.linalg.eigvalsh(positive(a)),
    "eigh": lambda a, b: (lambda w, v: (v * w[..., None, :]) @ v.swapaxes(-1, -2))(*np.linalg.eigh(positive(a), "U")),
    "svd": lambda a, b: (lambda u, s, vt: (u * s[..., None, :]) @ vt)(*np.linalg.svd(a[..., :-1], full_matrices=False)),
    "svd wide": lambda a, b: np.linalg.svd(a[..., :-1, :], full_matrices=False)[1],
    "svdvals": lambda a, b: np.linalg.svd(a, compute_uv=False),
    "qr": lambda a, b: tuple(np.linalg.qr(a[..., :-1])),
    "pinv": lambda a, b: np.linalg.pinv(a[..., :-1, :]),
}


def assert_same(name: str, found: Any, expected: Any, tolerance: float) -> None:
    for one, other in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, expected)], strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), name
        scale = float(np.max(np.abs(other[np.isfinite(other)]), initial=1.0)) if other.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale, err_msg=name)


def all_of(names: Iterable[str]) -> Callable[..., Any]:
    """One function of many results: it is compiled once."""
    return lambda a, b: {name: SQUARE[name](a, b) for name in names}


def assert_all(found: Any, expected: Any, tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        assert_same(name, found[name], expected[name], tolerance)


@pytest.mark.parametrize("n", SIZES)
def test_like_numpy(n: int) -> None:
    """Batches in axes that are not one axis in memory, read where they lie."""
    dtype = "f4" if n in (3, SMALL + 1) else "f8"
    a, b = matrices(n, (3, 2), dtype), np.ones((2, 3, n, 2), dtype) * np.arange(1, n + 1, dtype=dtype)[:, None]
    function = all_of(SQUARE)

    def turned(a: Any, b: Any) -> Any:
        return function(a.swapaxes(0, 1), b)

    assert_all(bw.jit(turned)(a, b), turned(a, b), 2e-3 if dtype == "f4" else 1e-9)


@pytest.mark.parametrize("shape", [(0, 2, 2), (0, 0), (3, 0, 0)])
def test_of_nothing(shape: tuple[int, ...]) -> None:
    a, b = np.ones(shape), np.ones((*shape[:-1], 2))
    expected: dict[str, Any] = {}
    for name, function in SQUARE.items():
        try:
            expected[name] = function(a, b)
        except ValueError:                         # one row less than none
            assert shape[-1] == 0 and name in ("svd", "svd wide", "qr", "pinv")
    assert_all(bw.jit(all_of(expected))(a, b), expected, 0.0)


# ----- gradients: through routines of either kind, and again
PIECES: dict[str, Callable[..., Any]] = {
    "cholesky": lambda a: np.sum(np.sin(np.linalg.cholesky(positive(a)))),
    "likelihood": lambda a: np.sum(np.log(np.diagonal(np.linalg.cholesky(positive(a)), axis1=-2, axis2=-1))) + np.sum(
        np.linalg.solve(np.linalg.cholesky(positive(a)), np.cos(a[..., :1])) ** 2),
    "solve and logdet": lambda a: np.sum(np.linalg.solve(a, np.cos(a[..., :2]))) + np.sum(np.linalg.slogdet(a)[1]),
    "det and inv": lambda a: np.sum(np.linalg.det(a / a.shape[-1]) * np.sum(np.linalg.inv(a) ** 2, (-2, -1))),
    "values": lambda a: np.sum(np.linalg.eigvalsh(positive(a)) ** 2) + np.sum(np.sin(np.linalg.svd(a, compute_uv=False))),
    "qr": lambda a: np.sum(np.linalg.qr(a)[1] ** 3),
    "sort": lambda a: np.sum(np.sort(a, 0) * np.cos(a)) + np.median(a ** 2),
}


@pytest.mark.parametrize("n", [3, WHOLE + 5])
@pytest.mark.parametrize("name", PIECES)
def test_gradient(name: str, n: int) -> None:
    """Against central differences along a direction, of the value and of the gradient."""
    function, a = PIECES[name], matrices(n) / n
    gradient = bw.grad(function)
    direction = np.sin(np.arange(n * n)).reshape(n, n) / n
    step = 1e-5
    change = (function(a + step * direction) - function(a - step * direction)) / (2 * step)
    np.testing.assert_allclose(np.sum(gradient(a) * direction), change, rtol=2e-5, atol=1e-7)
    if n == 3:
        second = bw.grad(lambda a: np.sum(gradient(a) * direction))(a)
        change = (gradient(a + step * direction) - gradient(a - step * direction)) / (2 * step)
        np.testing.assert_allclose(np.sum(second * direction), np.sum(change * direction), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", PIECES)
def test_compiled_is_interpreted(name: str) -> None:
    a = matrices(WHOLE + 5) / 69
    program = bw.compile(PIECES[name], a)
    value, [gradient] = program.value_and_backward(a)
    expected = interpret(program.lowered().simplified, [a, np.ones(())])
    assert_same(name, (value, gradient), tuple(expected), 1e-8)


# ----- without libraries
@pytest.fixture
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "native_libraries", Libraries)


def test_without_libraries(no_libraries: None) -> None:
    """Loops of our own of any size, and callbacks that read views."""
    a, b = matrices(19, (2,)), np.ones((2, 19, 2))
    function = all_of(SQUARE)

    def turned(a: Any, b: Any) -> Any:
        return function(a.swapaxes(-1, -2), b)

    assert_all(bw.jit(turned)(a, b), turned(a, b), 1e-9)


def test_gradients_without_libraries(no_libraries: None) -> None:
    a = matrices(WHOLE + 7) / 70
    direction = np.sin(np.arange(a.size)).reshape(a.shape) / 70
    for name in ("cholesky", "solve and logdet"):
        change = (PIECES[name](a + 1e-5 * direction) - PIECES[name](a - 1e-5 * direction)) / 2e-5
        np.testing.assert_allclose(np.sum(bw.grad(PIECES[name])(a) * direction), change, rtol=2e-5, atol=1e-7)


def test_explain_says_callback_where_there_is_no_routine(no_libraries: None) -> None:
    text = bw.compile(lambda x: np.sort(x) + 7.25, np.ones(3)).explain()
    assert "callback into NumPy: argsort runs in Python and takes the GIL" in text


# ----- failures
FAILURES: dict[str, tuple[Callable[..., Any], Any, type[Exception], str]] = {
    **{f"solve {n}": (lambda a: np.linalg.solve(a, a), np.ones((n, n)), np.linalg.LinAlgError, "Singular matrix") for n in (2, 20)},
    "inv": (lambda a: np.linalg.inv(a), np.zeros((2, 3, 3)), np.linalg.LinAlgError, "Singular matrix"),
    **{f"triangle {n}": (lambda a: np.linalg.solve(np.tril(a), a), np.eye(n) - np.eye(n)[-1:] * np.eye(n), np.linalg.LinAlgError,
                         "Singular matrix") for n in (2, 20)},
    "cholesky": (lambda a: np.linalg.cholesky(a), np.stack([np.eye(2), -np.eye(2)]), np.linalg.LinAlgError, "not positive definite"),
    "svd": (lambda a: np.linalg.svd(a, compute_uv=False), np.full((2, 2), np.nan), np.linalg.LinAlgError, "SVD did not converge"),
    "power": (lambda a: a ** (a - 2), np.arange(4), ValueError, "negative integer powers"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_those_of_numpy(name: str) -> None:
    function, argument, kind, message = FAILURES[name]
    with pytest.raises(kind, match=message):
        function(argument)
    compiled = bw.jit(function)
    for _ in range(2):                             # and the program can be called again
        with pytest.raises(kind, match=message) as raised:
            compiled(argument)
        assert "test_library_calls.py" in str(raised.value)


def test_flags_of_the_processor_stay_as_they_were() -> None:
    """An invalid operation before the call is not taken for a failure, and a failure leaves no flag behind."""
    a = positive(matrices(5))
    factor = bw.jit(lambda a: np.linalg.cholesky(a))
    with np.errstate(invalid="ignore"):
        _ = np.float64(np.inf) - np.float64(np.inf)
    np.testing.assert_allclose(factor(a), np.linalg.cholesky(a), rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        factor(-a)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(np.ones(3) + 1.0, 2.0)


@pytest.mark.parametrize("name", ["solve", "inv", "slogdet", "eigvalsh", "cholesky"])
def test_nan_goes_through(name: str) -> None:
    """Where NumPy has nan there is nan (which others there are depends on the order of elimination), or the same error."""
    a, b = matrices(3), np.ones((3, 2))
    a[1, 1] = np.nan
    try:
        with np.errstate(invalid="ignore"):
            expected = SQUARE[name](a, b)
    except np.linalg.LinAlgError as error:
        with pytest.raises(np.linalg.LinAlgError, match=str(error)):
            bw.jit(SQUARE[name])(a, b)
        return
    assert np.isnan(bw.jit(SQUARE[name])(a, b))[np.isnan(expected)].all()


def test_many_threads_at_once() -> None:
    a = matrices(60, (4,))
    functions = [bw.jit(SQUARE[name]) for name in ("solve", "eigvalsh", "cholesky", "svdvals", "slogdet")]
    functions.append(bw.jit(lambda a, b: np.argsort(a, -1, kind="stable")))
    b = np.ones((4, 60, 2))
    expected = [function(a, b) for function in functions]
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(8):
            wrong.extend(k for k, function in enumerate(functions)
                         if not all(np.array_equal(x, y) for x, y in zip(function(a, b), expected[k], strict=True)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


SHARED_CALL = r"@call[\d.]*\.range\("
LANES: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "eigvalsh": (lambda a: np.linalg.eigvalsh(positive(a)), (300, 3, 3)), "in two axes": (lambda a: np.linalg.inv(a[:, ::2]), (90, 16, 5, 5)),
    "cholesky": (lambda a: np.linalg.cholesky(positive(a)), (60, 30, 30)), "small solve": (lambda a: np.linalg.solve(a, a), (3000, 3, 3)),
    "sort": (lambda a: np.sort(a, -1), (500, 90)), "argsort": (lambda a: np.argsort(a, -1, kind="stable"), (50, 10, 90)),
    "odd number": (lambda a: np.linalg.svd(a)[1], (67, 7, 7)),
    "selection": (lambda a: np.median(a, -1), (40, 700)), "partition": (lambda a: np.sort(np.partition(a, 9, -1)[:, :9], -1), (40, 700)),
}


@pytest.mark.parametrize("name", LANES)
def test_threads_share_lanes(name: str) -> None:
    """Matrices, rows and elements are computed by whoever is free, with the same bits."""
    function, shape = LANES[name]
    a = np.random.default_rng(7).standard_normal(shape) + (3 * np.eye(shape[-1]) if shape[-1] == shape[-2] else 0.0)
    compiled = bw.jit(function)
    found = [with_threads(count, compiled, a) for count in (1, 2, 3)]
    assert re.search(SHARED_CALL, compiled.as_text("llvm", a))
    np.testing.assert_allclose(found[0], function(a), rtol=1e-9, atol=1e-12)
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_what_may_call_python_is_not_shared() -> None:
    """Loops of SciPy warn and raise as scipy.special.errstate says, in the thread that set it."""
    x = np.linspace(-5.0, 5.0, 8000)
    function = bw.jit(lambda x: bw.scipy.special.jv(0.5, x))
    assert not re.search(SHARED_CALL, function.as_text("llvm", x))
    with scipy.special.errstate(all="warn"), pytest.warns(scipy.special.SpecialFunctionWarning) as warned:
        with_threads(2, function, x)
    assert len(warned) == np.sum(x < 0)


@pytest.mark.parametrize("bad", [0, 150, 299])
def test_a_failure_in_any_lane_is_the_failure_of_the_call(bad: int) -> None:
    a = np.tile(np.eye(20), (300, 1, 1))
    factor = bw.jit(lambda a: np.linalg.cholesky(a))
    np.testing.assert_array_equal(factor(a), a)
    a[bad] *= -1
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            factor(a)
    np.testing.assert_array_equal(factor(np.abs(a)), np.abs(a))


# ----- sorting
def ties(dtype: str) -> Any:
    found = np.random.default_rng(5).integers(0, 5, (3, 40)).astype(dtype)
    if found.dtype.kind == "f":
        found[0, ::7], found[1, 3], found[2, :3], found[2, 5::9] = np.nan, -np.inf, -0.0, np.nan
    return found


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "u8", "f4", "f8"])
def test_sorts(dtype: str) -> None:
    x = ties(dtype)

    def sorts(x: Any) -> Any:
        return [(np.sort(x, axis), np.argsort(x, axis, kind="stable")) for axis in (0, -1, None)]

    *all_, found = bw.jit(lambda x: (*sorts(x), np.argsort(x)))(x)
    for one, other in zip(all_, sorts(x), strict=True):
        assert_same(dtype, one, other, 0.0)
    np.testing.assert_array_equal(np.take_along_axis(x, found, -1), np.sort(x))
    assert all(sorted(row) == list(range(40)) for row in found.tolist())


def hard_to_order(dtype: str, count: int) -> dict[str, Any]:
    """Lanes whose elements differ in any of their bits: far apart, close together, in clusters, equal, at the ends of the range."""
    rng, kind = np.random.default_rng(count), np.dtype(dtype).kind
    if kind == "f":
        near = rng.permutation(1.0 + np.arange(count) * np.finfo(dtype).eps)
        far = rng.standard_normal(count) * 10.0 ** rng.integers(-30, 30, count)
        special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, 1.0, -1.0], count)
        lanes = {"random": rng.standard_normal(count), "near": near, "far": far, "special": special, "cluster and outlier": np.where(
            np.arange(count) == 0, -1e30, near), "pairs": np.repeat(rng.standard_normal(count), 2)[:count] * (1 + np.finfo(dtype).eps * (
                rng.integers(0, 2, count)))}
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        whole = rng.integers(low, high, count, endpoint=True, dtype=dtype)
        lanes = {"whole range": whole, "few": rng.integers(0, 9, count).astype(dtype), "ends": np.where(rng.random(count) < 0.5, low, whole),
                 "top": np.array(high, dtype) - rng.integers(0, 3, count).astype(dtype)}
    return {name: lane.astype(dtype) for name, lane in lanes.items()}


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 100, 5000])
def test_stable_positions(dtype: str, count: int) -> None:
    lanes = hard_to_order(dtype, count)
    found = bw.jit(lambda x: np.argsort(x, kind="stable"))(np.stack(list(lanes.values())))
    for (name, lane), positions in zip(lanes.items(), found, strict=True):
        np.testing.assert_array_equal(positions, np.argsort(lane, kind="stable"), err_msg=name)


def test_gradient_of_a_sort_is_that_of_a_stable_one() -> None:
    x = ties("f8")[2]
    bar = bw.grad(lambda x: np.sum(np.sort(x) * np.arange(40.0)))(x)
    expected = np.empty(40)
    expected[np.argsort(x, kind="stable")] = np.arange(40.0)
    np.testing.assert_array_equal(bar, expected)


# ----- integers, and floats as NumPy stores them
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "u4", "i8", "u8"])
def test_integer_functions(dtype: str) -> None:
    x, y = np.arange(-6, 18).reshape(4, 6).astype(dtype), np.arange(24).reshape(6, 4).T.astype(dtype) % 5

    def functions(x: Any, y: Any) -> Any:
        return np.gcd(x, y), np.lcm(x, y), np.power(x, y), np.bitwise_count(x)

    assert_same(dtype, bw.jit(functions)(x, y), functions(x, y), 0.0)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floats_as_they_are_stored(dtype: str) -> None:
    x = np.array([0.0, -1.5, np.inf, np.nan, 1e-40, 7.0], dtype)
    assert_same("stored", bw.jit(lambda x: (np.nextafter(x, 1.0), *np.frexp(x)))(x), (np.nextafter(x, 1.0), *np.frexp(x)), 0.0)
    np.testing.assert_array_equal(bw.jit(lambda x: np.spacing(x[[0, 1, 5]]))(x), np.spacing(x[[0, 1, 5]]))


# ----- what runs where
def test_no_op_needs_python() -> None:
    """Where NumPy is as its wheels are, every library op has a routine or is made of ops that have one."""
    symbols = native.native_libraries().symbols
    if "bw_dgemm" not in symbols:
        pytest.skip("this NumPy has no BLAS to be found")
    composed = {"matmul", "matmul_add", "qr", "pinv", "cofactors", "cofactor_change", "callback"}             # callback: the user's own Python
    assert {op.name for op in REGISTRY.values() if op.kind == "library" and op.library is None} == composed
    assert not bw.compile(all_of(SQUARE), matrices(3), np.ones((3, 2))).lowered().program.callbacks
    for function in PIECES.values():
        assert not bw.compile(function, matrices(3)).lowered().program.callbacks


def test_code_around_blas_is_made_for_programs_that_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling it takes longer than a small program does."""
    if "bw_dgemm" not in native.native_libraries().symbols:
        pytest.skip("this NumPy has no BLAS to be found")
    monkeypatch.delattr(blas_calls, "symbols")
    assert_same("no product", bw.jit(lambda x: np.sin(x) * 0.731)(np.ones(3)), np.sin(np.ones(3)) * 0.731, 1e-15)
    assert_same("product", bw.jit(lambda x: x @ x * 0.731)(np.ones((200, 200))), np.full((200, 200), 200 * 0.731), 1e-12)
    with pytest.raises(AttributeError, match="symbols"):
        bw.jit(lambda x: np.linalg.solve(x, x * 0.731))(np.eye(200))


def test_one_matrix_is_factored_once() -> None:
    program = bw.compile(PIECES["solve and logdet"], matrices(4))
    names = [value.op.name for value in program.lowered().simplified.body]
    assert names.count("lu") == 1
    assert "solve" not in names and "inv" not in names


def test_operands_are_read_where_they_lie() -> None:
    lowered = bw.compile(lambda a, b: np.linalg.eigvalsh(a[1:, ::2, ::2].swapaxes(1, 2)) + b, np.ones((3, 8, 8)), np.ones(4)).lowered()
    first = lowered.fused.steps[0]
    assert [view.strides for view in first.operands] == [(64, 2, 16)]


def test_a_factor_is_solved_by_substitution() -> None:
    def function(a: Any, b: Any) -> Any:
        factor = np.linalg.cholesky(a)
        return np.linalg.solve(factor.T, np.linalg.solve(factor, b)), np.linalg.inv(factor)

    names = [value.op.name for value in bw.compile(function, np.eye(4), np.ones(4)).graph.body]
    assert names.count("triangular_solve") == 3 and not {"solve", "inv"} & set(names)
