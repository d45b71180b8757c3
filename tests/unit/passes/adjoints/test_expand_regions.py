"""Reverse derivatives of loops and branches: against differences, to second order; what they keep and what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend import trace
from bwcompiler.ir.graph_interpreter import interpret
from bwcompiler.passes.adjoints import while_adjoint
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from tests.support.loop_programs import PROGRAMS, check_gradients

NOT_SMOOTH = ("promoted_carries",)             # float32: differences say nothing


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NOT_SMOOTH])
def test_gradients_are_those_of_differences(name):
    program, args = PROGRAMS[name]
    check_gradients(program, *args)


@pytest.mark.parametrize("rows", [1, 3, 7, 20])
@pytest.mark.parametrize("name", ["many_iterations", "while_below", "newton_in_a_scan", "while_in_a_while"])
def test_more_iterations_than_the_rings_hold(name, rows, monkeypatch):
    monkeypatch.setattr(while_adjoint, "rows", lambda types: rows)
    program, args = PROGRAMS[name]
    check_gradients(program, *args, order=2 if rows == 3 else 1)


def test_rings_have_the_size_that_the_budget_allows():
    types = [[while_adjoint.tensor(while_adjoint.COUNT.dtype, (size,))] for size in (3, 1 << 9, 1 << 15, 1 << 17, 1 << 20)]
    assert [while_adjoint.rows(one) for one in types] == [while_adjoint.MOST, 256, while_adjoint.ENOUGH, 32, while_adjoint.FEWEST]


def test_many_iterations_are_computed_a_few_times(monkeypatch):
    """Twice while there are snapshots for all that the rings hold, and once more for every time that their distance has doubled."""
    monkeypatch.setattr(while_adjoint, "rows", lambda types: 2)
    monkeypatch.setattr(while_adjoint, "slots", lambda types: 8)
    steps = 100

    def program(x):
        return bw.while_loop(lambda c: c[1] < steps, lambda c: (np.sin(c[0]) + x, c[1] + 1), (x, 0))[0]

    traced = trace(program, (np.float64(0.3),))
    joint = derive(traced.graph, (0,), [INPUT_SEED])
    calls = []
    monkeypatch.setattr(ops.sin, "reference", lambda x: (calls.append(1), np.sin(x))[1])
    _, found = interpret(joint.graph, [np.float64(0.3), np.float64(1.0)])
    assert len(calls) < 12 * steps
    ahead, behind = (program(0.3 + sign * 1e-6) for sign in (1.0, -1.0))
    np.testing.assert_allclose(found, (ahead - behind) / 2e-6, rtol=1e-6)


def test_snapshots_take_what_the_budget_allows():
    types = [[while_adjoint.tensor(while_adjoint.COUNT.dtype, (size,))] for size in (3, 1 << 13, 1 << 14, 1 << 20)]
    assert [while_adjoint.slots(one) for one in types] == [while_adjoint.SNAPSHOTS, 16, 8, while_adjoint.LEAST]
