"""Reverse derivatives of loops and branches: against differences, to second order; what they keep and what they compute."""

from __future__ import annotations

import pytest

from bwcompiler.passes.adjoints import while_adjoint
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
