"""Loops that sum up run in the order of memory, too, where that is another one than that of the values."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bwcompiler.compiler.pipeline import lower
from bwcompiler.frontend import trace
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from tests.support.graph_strategies import run_compiled

A, B = np.sin(np.arange(2400.0)).reshape(60, 40), np.cos(np.arange(2400.0)).reshape(60, 40)
NARROW = A.reshape(800, 3)


def summed(a, b):
    return np.sum(a.T * b.T, axis=1)


def used_again(a, b):
    """The sum is read in the same loops."""
    x = a.T * b.T + 1.0
    return (x / np.sum(x, axis=1)[:, None]).T + b


def greatest(a, b):
    return np.max(np.abs(a.T - b.T), axis=1)


def summed_beside_an_update(a, b):
    """As in the adjoint of a loop over columns: what is read is added to, and summed up."""
    x = a.T * b[0][:, None]
    return np.sum(x * b.T, axis=1), b + x.T


def in_order(a, b):
    return np.sum(a * b, axis=1)


def indices(fun, *args):
    """The innermost index of what is read of the first argument, and that of the vectors."""
    graph = trace(fun, args).graph
    for step in lower(graph).steps:
        text = kernel_to_text(step.kernel)
        found = re.search(r"let .*%a\[[^\]]*?(\w+)\]", text)
        vectors = re.findall(r"for (\w+) in .* vector", text)
        if found and vectors:
            yield found[1], vectors


@pytest.mark.parametrize("fun", [summed, used_again, greatest, summed_beside_an_update, in_order], ids=lambda fun: fun.__name__)
def test_vectors_run_along_memory(fun):
    traced = trace(fun, (A, B))
    expected = fun(A, B)
    for one, other in zip(run_compiled(traced.graph, [A, B]), expected if isinstance(expected, tuple) else [expected], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert [last in vectors for last, vectors in indices(fun, A, B)] == [True]


def test_short_rows_are_no_vectors():
    """Sums of three columns: three numbers side by side fill no vector."""
    [(last, vectors)] = indices(lambda a, b: np.sum(a.T * b.T, axis=1), NARROW, NARROW)
    assert last not in vectors


def test_columns_are_next_to_rows():
    """All arrays are summed up, in whichever order: the one that lies the other way round is read in lines, as rows of a panel."""
    a, b = [wave(np.arange(72.0 * 16 * 72)).reshape(72, 16, 72) for wave in (np.sin, np.cos)]

    def distance(a, b):
        d = a.transpose(2, 1, 0) - b
        return np.sum(d * d), d + b

    traced = trace(distance, (a, b))
    for one, other in zip(run_compiled(traced.graph, [a, b]), distance(a, b), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
    assert any("panel: scratch" in kernel_to_text(step.kernel) for step in lower(traced.graph).steps if step.kernel is not None)
