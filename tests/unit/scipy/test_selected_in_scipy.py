"""Functions of scipy.stats and scipy.special of selected elements, x[mask]."""

import numpy as np
import pytest
from scipy import special, stats

import bwcompiler as bw
from tests.support.gradcheck import central_differences

X = np.array([-0.9, 0.4, 1.3, -0.2, 0.7, 2.1, 0.1])


def tobit(x):
    found = np.empty(len(x))
    censored = x <= 0
    found[~censored] = stats.norm.logpdf(x[~censored] / x[4]) - np.log(x[4])
    found[censored] = stats.norm.logcdf(x[censored] - x[1], scale=x[2])
    return found.sum()


def of_frozen(x):
    return stats.norm(0.3, scale=1.2).sf(x[x > 0]).sum() + stats.norm(x[1], x[2]).pdf(x[x < 1]).sum()


def of_shapes_and_counts(x):
    positive = x > 0
    return np.sum(stats.gamma.logpdf(x[positive], 2.0, scale=x[positive] + 1)) + np.sum(stats.poisson.logpmf(
        np.arange(7)[positive], x[positive]))


def sums_of_exponentials(x):
    return special.logsumexp(x[x < 1]) + np.sum(special.softmax(x[x > 0]) ** 2)


def of_none(x):
    return stats.norm.logpdf(x[x > 7], loc=x[1]).sum() + x[0]


def of_vectors(x):
    rows = np.stack([x, x * x[1] + 0.2], axis=1)
    among = rows[:, 0] > 0.3
    normal = stats.multivariate_normal(x[:2], np.array([[1.0, 0.3], [0.3, 2.0]]))
    return (np.sum(normal.logpdf(rows[among])) + np.mean(stats.multivariate_normal.pdf(rows[~among], cov=0.7 * np.eye(2)))
            + stats.multivariate_t.logpdf(rows[among], x[:2], np.eye(2), df=3.0).sum())


@pytest.mark.parametrize("function", [tobit, of_vectors, of_frozen, of_shapes_and_counts, sums_of_exponentials, of_none])
def test_selected(function):
    value, gradient = bw.value_and_grad(function)(X)
    assert abs(value - function(X)) < 1e-12
    np.testing.assert_allclose(gradient, central_differences(function, X), atol=2e-8)
