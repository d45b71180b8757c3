"""Functions of slices that grow, shrink or move with the index of a loop: native loops, with NumPy's values and derivatives.

Each row of `EXPRESSIONS` is part of the body of such a loop; `_program` says what its names are.
"""

import re

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from tests.support.derivatives import check_derivatives
from tests.support.source import from_text

N = 14
X, A = np.random.default_rng(3).standard_normal(N), np.random.default_rng(4).standard_normal((N, N))

EXPRESSIONS = """
products:
np.sum(np.outer(x[:k], x[:k]) ** 2)
np.sum(np.outer(x[k:], x) ** 2)
np.inner(x[:k], x[-k:])
np.sum(np.inner(A[:k, :k], A[k:, :k]) ** 2)
np.vdot(x[k:], A[k:, k])
np.vdot(A[k:, :k], A[k:, :k])
np.linalg.vecdot(x[:k], x[:k])
np.sum(np.matmul(A[:k, k:], x[k:]) ** 2)
np.einsum("i,i->", x[:k], A[k, :k])
np.sum(np.einsum("ij,j->i", A[:k, :k], x[:k]) ** 2)
np.sum(np.einsum("ij,kj->ik", A[:k, k:], A[k:, k:]) ** 2)
np.einsum("ij,ji->", A[:k, k:], A[k:, :k])
np.einsum("ii->", A[:k, :k])
np.tensordot(x[:k], x[:k], 1)
np.tensordot(A[:k, k:], A[:k, k:], 2)
np.sum(np.tensordot(A[:k, :k], A[:k, :k], axes=([1], [0])) ** 2)
norms:
np.linalg.norm(x[:k])
np.linalg.norm(x[k:], 1)
np.linalg.norm(x[k:], np.inf)
np.linalg.norm(x[k:], 3)
np.linalg.norm(A[k:, :k])
np.linalg.norm(A[k:, :k], "fro")
np.linalg.norm(A[k:, :k], 1) + np.linalg.norm(A[k:, :k], np.inf)
np.sum(np.linalg.norm(A[k:, :k], axis=0))
statistics:
np.mean(x[k:])
x[:k].mean()
np.mean(A[k:, :k])
np.sum(np.mean(A[k:, :k], axis=0) ** 2)
np.sum(A[k:, :k].mean(axis=1, keepdims=True) ** 2)
np.mean(x[:k] > 0) * x[k]
np.mean(x[:k], where=x[:k] > -9)
np.var(x[k:])
np.std(x[:k])
np.std(x[:k + 1], ddof=1)
np.sum(A[k:, :k].var(axis=0))
np.average(x[:k])
np.average(x[:k], weights=x[:k] ** 2 + 1)
np.average(x[:k], returned=True)[1] * x[k]
np.nanmean(x[:k]) + np.nansum(x[k:])
np.ptp(x[:k])
np.count_nonzero(x[:k] > 0) * x[k]
reductions:
np.prod(x[:k])
np.prod(A[:k, k])
np.sum(A[:k, :k].prod(axis=0))
x[np.argmax(x[:k])]
x[k + np.argmin(x[k:])]
A[k + np.argmax(np.abs(A[k:, k])), k]
x[np.argmax(A[:k, k:], axis=0)] @ x[k:]
np.any(x[:k] > 0) * x[k] + np.all(x[k:] < 9)
np.add.reduce(x[:k])
np.sum(np.add.reduce(A[:k, k:], axis=1) ** 2)
np.maximum.reduce(x[:k]) + np.multiply.reduce(x[:k])
x[:k][x[:k] > 0].sum()
running:
np.sum(np.cumsum(x[:k]) ** 2)
np.sum(x[k:].cumprod() ** 2)
np.sum(np.cumsum(A[:k, k:], axis=1) ** 2)
np.sum(np.add.accumulate(x[:k]) ** 2)
np.sum(np.maximum.accumulate(x[:k]) ** 2)
np.sum(np.diff(x[:k]) ** 2)
np.sum(np.diff(A[:k, k:], axis=0, n=2) ** 2) if k > 2 else x[k]
np.trapezoid(x[:k])
np.trapezoid(x[:k], dx=0.5) + np.trapezoid(A[:k, k:], axis=0).sum()
np.sum(np.gradient(x[:k + 1]) ** 2)
shapes:
np.sum(x[:k, None] * A[:k])
np.sum(np.expand_dims(x[:k], 1) * A[:k])
np.sum(np.squeeze(A[:k, k:k + 1]) ** 3)
np.sum(np.squeeze(A[:k, k:k + 1], axis=1) * x[:k])
np.sum(np.ravel(x[:k]) ** 2) + np.sum(x[k:].flatten() ** 3)
np.sum(x[:k].reshape(-1, 1) * A[:k])
np.sum(x[k:].reshape(len(x) - k, 1) * A[k:])
np.sum(x[k:].reshape((1, -1)) * A[:, k:])
np.sum(x[k:].reshape(-1) ** 2)
np.sum(x[k:].reshape(x[k:].shape + (1,)) ** 2)
np.sum(np.broadcast_to(x[:k], (4, k)) * 2)
np.sum(np.broadcast_to(x[k], (k,)) * x[:k])
np.sum(np.maximum(x[:k], A[:k, k:k + 1]))
np.sum(np.atleast_2d(x[:k]) @ A[:k])
np.sum(np.moveaxis(A[:k, k:], 0, 1) @ x[:k]) + np.sum(A[:k, k:].T @ x[:k])
np.sum(np.fliplr(A[:k, k:]) * A[:k, k:])
joined:
np.sum(np.stack([x[:k], x[:k] * 2]) ** 2) + np.sum(np.stack([x[:k], x[-k:]], axis=1)[:, 0])
np.sum(np.column_stack([x[:k], x[:k] * 2]) ** 2)
np.sum(np.hstack([x[:k], x[k:]]) * x)
np.sum(np.vstack([A[:k], x]) ** 2)
np.sum(np.pad(x[:k], (1, 0)) ** 2)
np.sum(np.pad(x[:k], (0, 14 - k)) * x)
np.sum(np.pad(A[:k, :k], ((0, 14 - k), (0, 14 - k))) * A)
np.sum(np.take(x[:k], [0, -1]) ** 2)
diagonals:
np.trace(A[:k, :k])
np.sum(np.diag(A[:k, :k]) ** 2)
np.sum(A[:k, :k].diagonal() ** 2)
np.sum(np.diagonal(A[:k, :k], 1) ** 2) + np.sum(np.diagonal(A[:k, :k], -1) ** 3)
np.sum(np.diag(A[:k]) ** 2)
np.sum(np.diag(A)[:k] ** 2)
np.sum(np.diag(x[:k]) @ A[:k])
np.sum(np.tril(A[:k, :k])) + np.sum(np.triu(A[:k, :k], 1) ** 2)
elements:
np.sum(np.square(x[:k])) + np.sum(np.abs(x[k:])) + np.sum(abs(x[:k]))
np.sum(np.real(x[:k])) + np.sum(x[:k].conj() * x[:k]) + np.sum(np.conj(x[k:]))
np.sum(np.round(x[:k], 1) * x[:k])
np.sum(np.clip(x[:k], -1, 1) ** 2) + np.sum(x[k:].clip(0, 1) ** 2)
np.sum(np.where(np.isfinite(x[:k]), x[:k], 0))
np.allclose(x[:k], x[:k]) * x[k]
np.sum(np.multiply.outer(x[:k], x[:k]) ** 2)
np.sum(np.subtract.outer(x[:k], x[k:]) ** 2)
np.log(np.sum(np.exp(x[:k] - np.max(x[:k]))))
made:
np.sum((np.zeros(14 - k) + x[k]) ** 2)
np.sum((np.zeros((k, 14 - k)) + A[:k, k:]) ** 2)
np.sum(np.zeros_like(A[:k, k:]) + A[:k, k:])
np.sum(np.ones(len(x[:k])) * x[:k]) + np.sum(np.ones(x[k:].shape) * x[k:])
np.sum(np.full(k, x[0]) ** 2) + np.sum(np.full_like(x[:k], 3.0) * x[:k])
np.sum(np.arange(k) * x[:k]) + np.sum(np.arange(len(x[k:])) * x[k:])
np.sum(np.eye(k) * A[:k, :k]) + np.sum(np.identity(k) @ x[:k])
np.sum(np.eye(k, 14, 1) * A[:k])
numbers:
1.0 / len(x[:k]) * x[k]
np.sum(x[:k]) / x[:k].shape[0]
np.sum(x[:k]) / x[:k].size + np.sum(x[k:]) / np.size(x[k:])
np.sum(A[:k, k:]) / A[:k, k:].size + np.sum(A[:k, k:]) / np.size(A[:k, k:], 1)
np.sum(x[:k]) / x[:k].nbytes
np.sum(x[:k] * len(x[:k]) ** 2) + x[k] ** len(x[:k])
np.sum(x[:k]) / np.sqrt(len(x[:k])) + np.sum(x[:k]) / float(len(x[:k]))
np.prod(A[:k, k:].shape) * x[k] + np.shape(A[:k])[0] * x[0] + A[:k].ndim
x[k] if len(x[:k]) < 99 else x[0]
x[k] if x[:k].shape == A[:k, 0].shape else x[0]
x[k] if x[k:].shape[0] + len(x[:k]) == 14 else x[0]
bw.scipy.special.logsumexp(x[:k]) + bw.nn.mse_loss(x[:k], A[k, :k]) + np.sum(bw.nn.softmax(x[k:]) ** 2)
"""
GROUPS = {group[0].rstrip(":"): group[1:] for group in [part.splitlines() for part in re.split(r"\n(?=[a-z]+:$)", EXPRESSIONS.strip(), flags=re.M)]}


def _program(name, expressions):
    """A loop of the sum of some: x has 14 elements, A is a matrix of as many rows and columns, and k is 2 to 12."""
    lines = "\n".join(f"        total = total + ({expression}) * (1.0 + 0.1 * k)" for expression in expressions)
    return from_text(f"""
import numpy as np
import bwcompiler as bw

def {name}(x, A):
    total = 0.0
    for k in range(2, 13):
{lines}
    return total
""", name)


@pytest.mark.parametrize("group", GROUPS)
def test_loops_are_native(group):
    for number, expression in enumerate(GROUPS[group]):
        notes = trace(_program(f"{group}_{number}", [expression]), (X, A)).notes
        assert not notes, (expression, notes)


@pytest.mark.parametrize("group", GROUPS)
def test_values_are_numpys_and_derivatives_differences(group):
    program = _program(group, GROUPS[group])
    value, gradients = bw.value_and_grad(program, argnums=(0, 1))(X, A)
    np.testing.assert_allclose(value, program(X, A), rtol=1e-12)
    directions = np.cos(np.arange(N)), np.sin(np.arange(N * N)).reshape(N, N)
    h = 1e-6
    there, back = (program(X + step * directions[0], A + step * directions[1]) for step in (h, -h))
    slope = sum(np.sum(gradient * direction) for gradient, direction in zip(gradients, directions, strict=True))
    assert slope == pytest.approx((there - back) / (2 * h), rel=1e-6, abs=1e-6)
    assert bw.jvp(program, (X, A), directions)[1] == pytest.approx(slope, rel=1e-11)


@pytest.mark.parametrize("group", ["products", "statistics", "running"])
def test_second_derivatives_and_batches(group):
    program = _program(f"{group}_again", GROUPS[group][:6])
    gradient = bw.grad(program)
    direction, h = np.cos(np.arange(N)), 1e-6
    forward = bw.jvp(lambda x: gradient(x, A), (X,), (direction,))[1]
    difference = (gradient(X + h * direction, A) - gradient(X - h * direction, A)) / (2 * h)
    np.testing.assert_allclose(forward, difference, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(bw.grad(lambda x: gradient(x, A) @ direction)(X), forward, rtol=1e-9, atol=1e-10)
    several = np.stack([X, 0.7 * X[::-1]])
    for found, x in zip(bw.vmap(gradient, (0, None))(several, A), several, strict=True):
        np.testing.assert_allclose(found, gradient(x, A), rtol=1e-10, atol=1e-10)


REFUSED = {
    "np.sum(np.linalg.solve(A[:k, :k], x[:k]))": r"solve of an array of shape \(k \+ 2, k \+ 2\), which depends on a loop index, is not supported",
    "np.sum(np.sort(x[:k]))": r"sort of an array of shape \(k \+ 2,\), which depends on a loop index",
    "np.median(np.stack([x[:k], x[:k]]))": r"median of an array of shape \(2, k \+ 2\), which depends on a loop index",
    "np.sum(A[:k, k:].ravel())": r"\(k \+ 2\) \* \(-1\*k \+ 12\) elements, of which both depend on indices",
    "np.sum(np.stack([x[:k], x[:k]]).reshape(k, 2)[0])": "axes whose extents depend on a loop index have to stay, in their order",
    "np.sum(np.squeeze(x[:k - 1]))": "which axes have one element depends on a loop index",
    "np.sum(np.ones(k - 3)) if k > 2 else x[0]": "that may be negative, as far as bounds of loops say",
    "np.argmax(x[:k - 2]) if k > 2 else 0": "attempt to get argmax of an empty sequence",
    "np.sum(np.diff(x[:k - 2]))": "by the bounds of the loop, there may be none",
    "np.logaddexp.reduce(x[:k])": r"reduce of an array of shape \(k \+ 2,\), which depends on a loop index",
    "np.sum(np.pad(x[:k], (0, 2), mode='edge'))": "is supported only with mode='constant'",
}


@pytest.mark.parametrize("expression", REFUSED)
def test_what_cannot_be_native_is_unrolled_and_says_why(expression):
    program = _program(f"refused_{list(REFUSED).index(expression)}", [expression])
    (note,) = trace(program, (X, A)).notes
    assert re.search(REFUSED[expression], str(note[1]))
    np.testing.assert_allclose(bw.jit(program)(X, A), program(X, A), rtol=1e-12)


def test_elements_of_arrays_that_grow_at_places_that_data_choose():
    """The number of elements that indices are compared with depends on the index of the loop: of one place, and of 40."""
    program = from_text("""
import numpy as np

def chosen(x, places):
    out = np.zeros(len(x))
    for k in range(len(x)):
        grown = np.append(x[:k], 1.5)
        out[k] = grown[np.argmin(grown)] + grown[places[k]] + np.sum(grown[places % (k + 1) - 1])
    return out
""", "chosen")
    x, places = np.sin(np.arange(40.0)), np.arange(40) // 2
    places[3::5] = -1
    np.testing.assert_allclose(bw.jit(program)(x, places), program(x, places), rtol=1e-12)
    check_derivatives(lambda x: program(x, places), x, order=1)
    places[7] = 8
    with pytest.raises(IndexError, match="index 8 is out of bounds for axis with size 8"):
        bw.jit(program)(x, places)
