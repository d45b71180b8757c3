"""How NumPy lays out results in memory, and what shares memory: what tracing claims, against NumPy's own arrays.

Every function of the tables of sample calls runs on operands in several memory orders.  The strides of each result (where an
axis has more than one element) and the arguments it is a view of must be NumPy's; the last test sees to it that no supported
function is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from bwcompiler import tree
from bwcompiler.errors import BwError
from bwcompiler.frontend import trace
from bwcompiler.frontend.tracing import calls, tracer
from bwcompiler.frontend.tracing.registry import FUNCTIONS
from bwcompiler.frontend.tracing.storages.memory_order import UnknownOrderError
from bwcompiler.frontend.tracing.storages.undecided_views import decide_views
from bwcompiler.frontend.tracing.tracer import Tracer
from tests.properties.test_numpy_samples import SAMPLES
from tests.unit.frontend.numpy import test_functions, test_keywords, test_linalg, test_selection, test_sorting

Array = np.ndarray[Any, Any]


def sliced(x: Array) -> Array:
    """Every second element of a larger array, along all axes."""
    larger = np.zeros([2 * n for n in x.shape], x.dtype)
    view = larger[(..., *[slice(None, None, 2)] * x.ndim)]
    view[...] = x
    return view


def permuted(x: Array) -> Array:
    """The second axis outermost in memory, the others in C order."""
    order = (1, 0, *range(2, x.ndim))
    return x.copy() if x.ndim < 2 else np.ascontiguousarray(x.transpose(order)).transpose(order)


ORDERS: dict[str, Callable[[Array], Array]] = {
    "C": lambda x: x.copy(order="C"),
    "F": lambda x: x.copy(order="F"),
    "permuted": permuted,
    "reversed": lambda x: np.flip(np.flip(x).copy()) if x.ndim else x.copy(),
    "sliced": sliced,
}
MIXED = ("F", "C", "permuted", "sliced")


def ordered(order: str, samples: Sequence[Any]) -> list[Any]:
    """The arrays among the samples in that order; "mixed": each in another one."""
    names = [MIXED[k % len(MIXED)] if order == "mixed" else order for k in range(len(samples))]
    return [ORDERS[name](x) if isinstance(x, np.ndarray) else x for name, x in zip(names, samples, strict=True)]


# Functions of one array, each of which is called with arrays of all shapes.
UNARY: tuple[Callable[[Any], Any], ...] = (
    lambda x: np.concatenate([x, x.T.T], 0), lambda x: np.concatenate([x.T, x.T]), lambda x: np.stack([x, x], -1),
    lambda x: np.vstack([x, x]), lambda x: np.hstack([x, x]), lambda x: np.append(x, x, 1), lambda x: np.tile(x, 2),
    lambda x: np.tile(x, (1,) * x.ndim), lambda x: np.repeat(x, 2, 0), lambda x: np.roll(x, 1, 1), lambda x: np.roll(x, 1),
    lambda x: np.cumsum(x, 0), lambda x: np.cumprod(x, 1), lambda x: np.cumulative_prod(x, axis=0), lambda x: np.sort(x, 0),
    lambda x: np.argsort(x, 1), lambda x: np.partition(x, 0, 0), lambda x: np.argpartition(x, 0, 1), lambda x: np.sum(x, 0),
    lambda x: np.sum(x, 0, keepdims=True), lambda x: np.mean(x, -1), lambda x: np.max(x, 1, keepdims=True), lambda x: np.var(x, 0, keepdims=True),
    lambda x: np.any(x, 1), lambda x: np.prod(x, 1), lambda x: np.median(x, 0), lambda x: np.sort_complex(x), lambda x: np.quantile(x, [0.2, 0.5], 0), lambda x: np.argmax(x, 0),
    lambda x: np.take(x, [0, 0], 0), lambda x: np.take(x, [0], 1), lambda x: x[[0, 0]], lambda x: x[:, [0, 0]], lambda x: x[..., [0]],
    lambda x: x[[0], :, None], lambda x: x[:, [0]][:, 0], lambda x: x[np.ones(x.shape[0], bool)], lambda x: np.pad(x, 1), lambda x: np.pad(x, 1, "edge"),
    lambda x: np.insert(x, 0, 0.0, 1), lambda x: np.delete(x, 0, 0), lambda x: np.tril(x), lambda x: np.triu(x, 1), lambda x: np.diff(x, axis=0),
    lambda x: np.gradient(np.concatenate([x, x], 0), axis=0), lambda x: np.select([x > 0, x < 0], [x, 2 * x]), lambda x: np.where(x > 0, x, 0),
    lambda x: np.clip(x, 0, 1), lambda x: x.clip(0), lambda x: np.round(x, 1), lambda x: np.nan_to_num(x), lambda x: np.copy(x), lambda x: x.copy(),
    *[lambda x, order=order: x.copy(order) for order in "FAK"], *[lambda x, order=order: x.astype(np.float32, order) for order in "CFAK"],
    *[lambda x, order=order: np.zeros_like(x, order=order) for order in "CFAK"], lambda x: np.full_like(x, 2), lambda x: np.empty_like(x, shape=x.shape[::-1]),
    lambda x: np.ones_like(x, int), lambda x: np.flip(x), lambda x: np.flip(x, 0) * 1, lambda x: np.rot90(x), lambda x: np.fliplr(x), lambda x: x.T * x.T,
    lambda x: x + x[:1], lambda x: x[:, :1] * x[:1], lambda x: x[0] + x.T[0][:1, ..., None] if x.ndim > 2 else x[0], lambda x: np.exp(x.swapaxes(0, 1)),
    lambda x: x.swapaxes(0, -1) + x.swapaxes(0, -1)[:, :1], lambda x: np.einsum("i...->...i", x), lambda x: np.einsum("i...,i...->...i", x, x),
    lambda x: np.einsum("ij...->ji...", x) * 1, lambda x: np.tensordot(x, x, (0, 0)), lambda x: x.T @ x.T.swapaxes(-1, -2), lambda x: np.dot(x, x.T),
    lambda x: np.outer(x, x), lambda x: np.kron(x, x), lambda x: np.linalg.qr(x)[1], lambda x: np.linalg.svd(x, full_matrices=False)[2],
    lambda x: np.linalg.eig(x @ x.mT), lambda x: np.linalg.eigvals(x @ x.mT), lambda x: np.linalg.pinv(x), lambda x: np.broadcast_to(x, (2, *x.shape)), lambda x: np.broadcast_to(x, (2, *x.shape)) * 1, lambda x: np.expand_dims(x, 1),
    lambda x: np.squeeze(x), lambda x: np.moveaxis(x, 0, -1), lambda x: np.atleast_3d(x), lambda x: np.apply_along_axis(lambda row: row * row.sum(), 0, x),
    lambda x: np.apply_along_axis(np.cumsum, 1, x), lambda x: np.apply_over_axes(np.sum, x, [0]), lambda x: np.piecewise(x, [x > 0], [np.square, np.negative]),
    lambda x: np.add.outer(x, x[0]), lambda x: np.add.reduce(x, 0), lambda x: np.maximum.accumulate(x, 0), lambda x: np.add.reduceat(x, [0], 0),
    lambda x: np.logaddexp.reduce(x, 1), lambda x: np.divmod(x, 2), lambda x: np.modf(x), lambda x: np.frexp(x), lambda x: np.fft.fftshift(x, 0),
    lambda x: np.fft.fft(x), lambda x: np.fft.ifft(x, axis=0), lambda x: np.fft.rfft(x, axis=1), lambda x: np.fft.irfft(x, 4), lambda x: np.fft.hfft(x),
    lambda x: np.fft.ihfft(x), lambda x: np.fft.fft2(x), lambda x: np.fft.ifft2(x), lambda x: np.fft.fftn(x), lambda x: np.fft.ifftn(x, axes=(0,)),
    lambda x: np.fft.rfft2(x), lambda x: np.fft.rfftn(x), lambda x: np.fft.irfft2(x, (3, 4)), lambda x: np.fft.irfftn(x, (3, 4)),
    lambda x: np.take_along_axis(x, np.argsort(x, 0), 0), lambda x: np.nancumsum(x, 0), lambda x: np.nanmax(x, 0), lambda x: np.ptp(x, 0),
    lambda x: np.average(x, 0), lambda x: np.cov(x[0]), lambda x: np.unwrap(x), lambda x: np.trapezoid(x, axis=0), lambda x: np.interp(x, [0.0, 1.0], [1.0, 0.0]),
    lambda x: np.searchsorted([0.0, 1.0], x), lambda x: np.digitize(x, [0.0, 1.0]), lambda x: np.heaviside(x, 0.5), lambda x: np.polyval([1.0, 2.0], x),
    lambda x: np.reshape(x, -1), lambda x: np.reshape(x, (*x.shape, 1)), lambda x: x.reshape(x.shape[::-1], order="F"), lambda x: x.reshape(x.shape[::-1]),
    lambda x: np.ravel(x), lambda x: np.ravel(x, "F"), lambda x: x.ravel("K"), lambda x: x.ravel("A"), lambda x: x.flatten("K"), lambda x: x.conj(),
    lambda x: np.real(x), lambda x: x.imag, lambda x: np.imag(x), lambda x: np.isneginf(x), lambda x: np.isposinf(x), lambda x: np.isreal(x), lambda x: np.amin(x, 0),
    lambda x: np.matrix_transpose(x), lambda x: np.linalg.matrix_transpose(x), lambda x: np.matmul(x.T, x.T.mT), lambda x: np.unstack(x), lambda x: np.nanargmax(x, 0),
    lambda x: np.nanargmin(x, 1), lambda x: np.diagonal(x), lambda x: np.array_split(x, 2, 1), lambda x: np.split(x, 1), lambda x: np.meshgrid(x[0], x[:, 0], copy=False),
    lambda x: np.meshgrid(x[0], x[:, 0], indexing="ij"), lambda x: np.broadcast_arrays(x, x[0]), lambda x: np.atleast_2d(x, x[0]), lambda x: np.ix_(x[0, ..., 0] > 5)[0],
    lambda x: np.linspace(x[0], x[-1], 3), lambda x: np.linspace(x[0], x[-1], 3, axis=-1), lambda x: np.resize(x, (3, 3)), lambda x: np.diagflat(x[0]),
    lambda x: np.astype(x, np.float32), lambda x: np.asarray(x, like=x), lambda x: np.array(x, like=x), lambda x: np.ones((2, 3), order="F", like=x),
    lambda x: np.empty((2, 3), like=x), lambda x: np.identity(3, like=x), lambda x: np.tri(3, like=x), lambda x: np.polyadd(x[0, ..., 0], x[0, ..., 0]),
    lambda x: np.emath.sqrt(-x), lambda x: np.emath.log(-x), lambda x: np.emath.log10(-x), lambda x: np.emath.log2(-x), lambda x: np.emath.logn(2, -x),
    lambda x: np.emath.power(-x, 0.5), lambda x: np.emath.arccos(x + 2), lambda x: np.emath.arcsin(x + 2), lambda x: np.emath.arctanh(x + 2),
    lambda x: np.roots(x.ravel()[:3]), lambda x: np.i0(x), lambda x: np.packbits(x > 0.5, 0), lambda x: np.unpackbits(np.asarray(x * 200, np.uint8, like=x), 0),
    lambda x: np.polydiv(x[0, ..., 0], x[0, ..., 0])[0], lambda x: np.dsplit(x[..., None, None], 1), lambda x: np.polysub(x[0, ..., 0], x[0, ..., 0]), lambda x: _written(x.copy("K")),
)


def _written(y: Any) -> Any:
    """Functions that write, and what they leave."""
    np.copyto(y, y * 2)
    np.put_along_axis(y, np.argmax(y, 0, keepdims=True), 9.0, 0)
    v = y.reshape(-1)
    v[0] = 5.0
    return y, v


rng = np.random.default_rng(31)
SHAPES: dict[str, Array] = {str(shape): rng.uniform(0.2, 0.9, shape) for shape in ((3, 4), (4, 4), (2, 3, 4), (3, 1, 4), (1, 4), (3, 1), (2, 2, 2, 3))}

CALLS: dict[str, tuple[Any, ...]] = {
    **{f"samples: {name}": row for name, row in SAMPLES.items()},
    **{f"{module.__name__.rpartition('_')[2]}: {name}": row
       for module in (test_functions, test_keywords, test_linalg, test_selection, test_sorting)
       for name, row in module.EXPRESSIONS.items()},
}

UNKNOWN: frozenset[str] = frozenset()       # sample calls of which some layout need not be known
COPIED: frozenset[str] = frozenset(("samples: views", "selection: sliding windows"))        # sliding_window_view is a copy here, a view in NumPy
# what answers with no array, what is refused because the number of results is not known, and ufuncs, which do not come this way
WITHOUT_ARRAYS = frozenset("""array_equiv can_cast common_type einsum_path isrealobj may_share_memory min_scalar_type shares_memory argwhere flatnonzero nonzero trim_zeros intersect1d
    setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values""".split())


def steps(array: Array) -> tuple[int, ...] | None:
    """Strides in elements where they mean something."""
    if not array.size:
        return None
    return tuple([step // array.itemsize for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1])


def expectations(function: Callable[..., Any], arrays: Sequence[Array]) -> list[Any]:
    """Per leaf of the result: its strides, and the arguments that it shares memory with."""
    result = tree.leaves(function(*arrays))
    return [(steps(leaf), [k for k, x in enumerate(arrays) if leaf.size and np.shares_memory(leaf, x)])
            if isinstance(leaf, np.ndarray) and leaf.ndim else None for leaf in result]


def claims(function: Callable[..., Any], arrays: Sequence[Array]) -> list[Any]:
    """The same, of the handles."""
    found: list[Any] = []

    def traced(*handles: Any) -> None:
        arguments = list(handles)
        for leaf in iter(tree.leaves(function(*handles))):                       # no loop that is recorded
            if not isinstance(leaf, Tracer) or not leaf.ndim:
                found.append(None)
                continue
            try:
                decide_views(leaf._storage)
                shadow = leaf._memory().shadow()
                found.append((steps(shadow), [k for k, x in enumerate(arguments) if leaf.size and leaf._storage is x._storage]))
            except UnknownOrderError as error:
                found.append(error)

    trace(traced, arrays)
    return found


def check(function: Callable[..., Any], arrays: Sequence[Any], what: str, unknown: bool = False) -> bool:
    """Whether the function was traced."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = expectations(function, arrays)
        except (ValueError, IndexError):
            return False
        try:
            found = claims(function, arrays)
        except BwError:
            return False
    for k, (one, other) in enumerate(zip(found, expected, strict=True)):
        if isinstance(one, UnknownOrderError):
            assert unknown, f"{what}: result {k}: {one}"
        elif one is not None and other is not None and what not in COPIED:
            assert one == other, f"{what}: result {k}: strides and shared arguments are {one}, NumPy's {other}"
    return True


@pytest.mark.parametrize("order", [*ORDERS, "mixed"])
@pytest.mark.parametrize("table", range(4))
def test_results_of_sample_calls(table: int, order: str) -> None:
    for name in list(CALLS)[table::4]:
        function, *samples = CALLS[name]
        check(function, ordered(order, samples), name, name in UNKNOWN)


# Every order of three shapes; of the others, whose axes of one element or of two say nothing more about orders, one that is not C's.
OF_ONE_ARRAY = [(order, shape) for shape in SHAPES for order in (ORDERS if shape in ("(4, 4)", "(2, 3, 4)", "(3, 1, 4)") else ("F", "reversed"))]


@pytest.mark.parametrize(("order", "shape"), OF_ONE_ARRAY)
def test_results_of_functions_of_one_array(order: str, shape: str) -> None:
    (x,) = ordered(order, [SHAPES[shape]])
    traced = [check(function, [x], f"function {k}") for k, function in enumerate(UNARY)]
    assert sum(traced) > 0.5 * len(UNARY)


@pytest.mark.parametrize("function", range(len(UNARY)))
def test_results_of_broadcast_operands(function: int) -> None:
    for x in (np.broadcast_to(np.array([[0.5], [0.25], [0.75]]), (3, 4)), np.broadcast_to(np.arange(1.0, 5.0), (2, 3, 4))):
        check(UNARY[function], [x], f"function {function}")


def test_no_function_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    called = set()
    original = calls.run_entry

    def noted(function: Any, entry: Any, args: Any, kwargs: Any) -> Any:
        called.add(entry.name)
        return original(function, entry, args, kwargs)

    for module in (calls, tracer):
        monkeypatch.setattr(module, "run_entry", noted)
    for function, *samples in [*CALLS.values(), *[(function, SHAPES["(4, 4)"]) for function in UNARY]]:
        with suppress(BwError, ValueError):                  # some are not for arrays of this shape
            claims(function, samples)
    missing = {entry.name for entry in FUNCTIONS.values()} - called
    assert missing == WITHOUT_ARRAYS, sorted(missing ^ WITHOUT_ARRAYS)
