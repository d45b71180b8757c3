"""np.average of what data select, and with weights that data select: of each element, or of the axes that are averaged; as NumPy's."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.317, -0.923, 1.811, 0.731, -0.419, 1.263, 0.547, 1.629, -0.753, 0.159, 1.137, 0.941])
FEW = np.arange(3.0)


def rows(x):
    m, a = x > 0, np.outer(x, x[:3])
    found, total = np.average(a[m], axis=0, weights=x[m], returned=True)
    return (np.sum(np.average(a[m], axis=0, weights=x[m]) * FEW) + np.sum(np.average(a[m], axis=1, weights=FEW + 1) ** 2)
            + np.sum(found) + np.sum(total))


def columns(x):
    m, a = x > 0, np.outer(x[:3], x)
    return (np.sum(np.average(a[:, m], axis=1, weights=x[m])) + np.sum(np.average(a[:, m], axis=-1, weights=x[m], keepdims=True) * FEW[:, None])
            + np.sum(np.average(a[:, m], axis=0, weights=[1.0, 2.0, 3.0]) * x[m]))


def several_axes(x):
    m, a = x > 0, x[:, None, None] * x[:3, None] * x[:2]
    return (np.sum(np.average(a[m], axis=(0, 2), weights=x[m][:, None] * np.array([1.0, 2.0])) * FEW)
            + np.sum(np.average(a[m], axis=1, weights=x[:3] ** 2)))


def without_weights(x):
    found, total = np.average(x[x > 0], returned=True)
    return found * total + total + np.average(x[x > 0])


def as_many_as_an_array_has(x):
    few = x[np.argsort(x) >= 9]
    return np.average(few, weights=x[:3] ** 2 + 1) + np.average(x[:3], weights=few)


def of_lists_that_data_fill(x):
    flows, quality = [], []
    for k in range(12):
        if x[k] > 0:
            flows.append(np.array([x[k], x[k] ** 2]))
            quality.append(x[k] + 1)
    flows, quality = np.vstack(flows), np.array(quality)
    mean = np.average(flows, axis=0, weights=quality)
    return mean[0] + np.median(((flows - mean) ** 2).sum(axis=1)) + np.log(quality).sum() + mean[1]


@pytest.mark.parametrize("program", [rows, columns, several_axes, without_weights, as_many_as_an_array_has, of_lists_that_data_fill],
                         ids=lambda program: program.__name__)
def test_as_numpy(program):
    as_python(program, X, np.roll(X, 5) + 0.01, X[::-1] * 1.1, X)


def test_weights_that_do_not_fit():
    with pytest.raises(TypeError, match="Axis must be specified"):
        bw.jit(lambda x: np.average(np.outer(x, x)[x > 0], weights=x[x > 0])[0])(X)
    with pytest.raises(ValueError, match="consistent"):
        bw.jit(lambda x: np.average(np.outer(x, x)[x > 0], axis=(0, 1), weights=x[x > 0]))(X)
