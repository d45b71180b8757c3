"""Reverse derivatives of loops and branches: against differences, to second order; what they keep and what they compute."""

from __future__ import annotations

import pytest

from tests.support.loop_programs import PROGRAMS, check_gradients

NOT_SMOOTH = ("promoted_carries",)             # float32: differences say nothing


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NOT_SMOOTH])
def test_gradients_are_those_of_differences(name):
    program, args = PROGRAMS[name]
    check_gradients(program, *args)
