"""Random programs whose variables hold objects and containers (`support/object_programs.py`): what Python computes, or a refusal."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import TracerError, UnsupportedError
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.support.object_programs import KINDS, object_program

ARGUMENTS = (np.array([0.7, -0.4, 1.3, 0.2]), np.array([-0.3, 0.9, 0.25, 1.1]))


def check(seed: int, kind: str) -> bool:
    """Whether the program was traced (it may be refused)."""
    program = object_program(seed, kind)
    try:
        traced = trace(program, ARGUMENTS[:1])
    except (TracerError, UnsupportedError):
        return False
    for x in ARGUMENTS:
        found = interpret(traced.graph, [x, *traced.captured])[0]
        np.testing.assert_allclose(found, program(x), rtol=1e-10, atol=1e-10, err_msg=program.text)
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_programs(kind: str) -> None:
    accepted = [check(seed, kind) for seed in range(4)]
    assert sum(accepted) >= 2, "most programs must be traced"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", range(1000, 1400, 100))
def test_campaign(start: int, kind: str) -> None:
    accepted = [check(seed, kind) for seed in range(start, start + 100)]
    assert sum(accepted) >= 60, "most programs must be traced"
