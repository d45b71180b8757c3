"""Arrays that loops write anew are not set before them: which these are, which need what they hold, and that results stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.passes.loops.carried.forget_overwritten import forget_overwritten
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.derivatives import check_derivatives
from tests.support.loop_passes import rewritten

X = np.cos(np.arange(60.0)).reshape(12, 5) + 1.5


def forgotten(fun, *args) -> int:
    """How many arrays the pass leaves unset."""
    def change(graph: Graph) -> Graph:
        return forget_overwritten(simplify(graph).graph).graph
    return unset(rewritten(change, fun, *args)[1])


def unset(graph: Graph) -> int:
    return sum((value.op is ops.unset) + sum([unset(value.attrs[region]) for region in value.op.regions]) for value in graph.body)


# ----- what is forgotten
def bent(x):
    return 0.25 * x - 0.01 * x * x


def recurrence(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = bent(y[i - 1]) * x[i]
    return y


def columns_backwards(x):
    y = np.empty_like(x)
    y[:, -1] = 0.0
    y[:, -2] = x[:, -1]
    for j in range(x.shape[1] - 3, -1, -1):
        y[:, j] = 0.5 * y[:, j + 1] * y[:, j + 2] + x[:, j + 1]
    return y


def used_again(x):
    """The array of the second loop is that of the first one, whose values the rows before the loop are made of."""
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = bent(y[i - 1]) + x[i]
    z = y * y
    y[0] = z[0]
    y[1] = z[1] - y[0]
    for i in range(2, len(x)):
        y[i] = z[i] * bent(y[i - 1]) + y[i - 2]
    return y


def blocks(x):
    y = np.zeros_like(x)
    for i in range(0, len(x), 2):
        y[i:i + 2] = bent(x[i:i + 2])
        y[i + 1] += bent(y[i]) * y[i]
        if i == 4:
            x = x * 1.0
    return y


def in_a_loop(x):
    for _ in range(9):
        y = np.zeros_like(x)
        y[0] = x[1]
        for i in range(1, len(x)):
            y[i] = bent(y[i - 1] * x[i])
        x = x + y
    return x


# ----- what is kept
def a_row_is_left(x):
    y = x * 2.0
    for i in range(2, len(x)):
        y[i] = bent(y[i - 1]) * x[i]
    return y


def read_before(x):
    y = x * 2.0
    y[0] = x[1]
    for i in range(1, len(x)):
        y[i] = bent(y[i - 1]) * y[i]
    return y


def read_ahead(x):
    y = x * 2.0
    y[0] = x[1]
    y[-1] = x[2]
    for i in range(1, len(x) - 1):
        y[i] = bent(y[i - 1]) * y[i + 1]
    return y


def parts_of_rows(x):
    y = x * 2.0
    for i in range(len(x)):
        y[i, 1:] = bent(x[i, 1:] + np.sum(y[i - 1 if i > 0 else 0, :1]))
    return y


def read_backwards(x):
    y = x * 2.0
    for i in range(len(x)):
        y[:i + 1] = bent(y[:i + 1][::-1])
    return y


def read_backwards_ahead(x):
    y = x * 2.0
    for i in range(len(x)):
        y[i] = bent(np.sum(y[i:i - 3 if i > 2 else None:-1], 0)) * x[i]
    return y


def read_whole(x):
    y = x * 2.0
    y[0] = x[1]
    for i in range(1, len(x)):
        y[i] = bent(np.sum(y, 0)) * x[i]
    return y


def parts_of_the_row_that_is_left(x):
    """All but the last row are written anew, and of that one some numbers were."""
    y = np.zeros_like(x)
    y[:, 1:3] = x[:, 1:3]
    y[0] = x[0]
    for i in range(1, len(x) - 1):
        y[i] = bent(y[i - 1]) * x[i]
    return y


def parts_of_other_rows(x):
    y = np.zeros_like(x)
    y[:4, 1:3] = x[:4, 1:3]
    y[0] = x[0]
    for i in range(1, len(x) - 1):
        y[i] = bent(y[i - 1]) * x[i]
    return y


FORGOTTEN = [recurrence, columns_backwards, used_again, in_a_loop, parts_of_other_rows]
KEPT = [a_row_is_left, read_before, read_ahead, parts_of_rows, read_backwards, read_backwards_ahead, read_whole,
        parts_of_the_row_that_is_left]


@pytest.mark.parametrize("fun", FORGOTTEN, ids=lambda fun: fun.__name__)
def test_arrays_that_are_written_anew_are_unset(fun) -> None:
    assert forgotten(fun, X.T.copy() if fun is columns_backwards else X) >= 1


@pytest.mark.parametrize("fun", KEPT, ids=lambda fun: fun.__name__)
def test_arrays_of_which_something_is_read_or_left_are_kept(fun) -> None:
    assert forgotten(fun, X) == 0


@pytest.mark.parametrize("fun", [*FORGOTTEN, *KEPT, blocks], ids=lambda fun: fun.__name__)
def test_values(fun) -> None:
    x = X.T.copy() if fun is columns_backwards else X
    np.testing.assert_allclose(bw.jit(fun)(x), fun(x), rtol=1e-12)


@pytest.mark.parametrize("fun", [*FORGOTTEN, *KEPT, blocks], ids=lambda fun: fun.__name__)
def test_derivatives(fun) -> None:
    x = X.T.copy() if fun is columns_backwards else X
    check_derivatives(fun, x, order=2)
    gradient = bw.grad(lambda x: np.sum(fun(x) ** 2))(x)
    np.testing.assert_allclose(gradient, bw.grad(lambda x: np.sum(fun(x) ** 2), autoloop=False)(x), rtol=1e-10)
