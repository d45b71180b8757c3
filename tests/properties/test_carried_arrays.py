"""Random programs of loops that carry arrays (`support/carried_arrays.py`), with passes that are about large arrays at work on small ones.

Each kind of program is there for some passes, and the tests say that these did something.  Values are NumPy's, gradients those of
differences, and what all passes make of both has the same numbers, where an array that is not set holds what no program may read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler import pipeline
from bwcompiler.frontend import trace
from bwcompiler.frontend.source import loops
from bwcompiler.frontend.source.bodies import capture
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.lowering.loops import blocks
from bwcompiler.passes.adjoints import segment_loops
from bwcompiler.passes.adjoints.bodies import final_parts
from bwcompiler.passes.loops import share_bodies
from bwcompiler.passes.loops.carried import carry_transposes, fill_rows, forget_overwritten, turn_columns
from bwcompiler.passes.memory import write_beside
from bwcompiler.passes.pass_manager import PassOptions
from tests.support.arrays import copies
from tests.support.carried_arrays import arguments, carried_program
from tests.support.gradcheck import directional, inner

DEFAULT = range(12)
CAMPAIGN = range(1000, 1400)
CAMPAIGN_CHUNK = 50
COMPILED = 12                      # one program in so many is compiled, too
LARGEST = 1e4                      # of gradients that are compared with differences
FIRE = {"stencils": {"write_beside"}, "rows": {"fill_rows", "set_once"}, "versions": {"read_latest", "set_once"},
        "sweeps": {"carry_transposes", "turn_columns", "turn_stacks"}, "alike": {"share_bodies", "share_moved_bodies"}}
SMALL = (
    (capture, {"SHORT": 2}), (loops, {"SHORT": 2, "SHORTEST": 2}), (fill_rows, {"LEAST_BYTES": 1}), (forget_overwritten, {"LEAST_WRITTEN": 2}),
    (turn_columns, {"LEAST_ROWS": 2}), (carry_transposes, {"LEAST_ROWS": 2, "TIMES": 0.5, "ONCE": 0.25, "OFTEN": 0.5, "SHARE": 1}),
    (share_bodies, {"LEAST": 4}), (final_parts, {"SHARE": 10_000}), (write_beside, {"LEAST_ELEMENTS": 1}), (blocks, {"LEAST_WORK": 64, "BLOCK_WORK": 16}))
SEGMENTS = {"LEAST": 64, "ROOM": 128, "SHARE": 1, "NEAR": 100_000, "FAR": 100_000}


@pytest.fixture
def fired(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The names of the passes that changed something."""
    found: set[str] = set()
    options = PassOptions(verify=True, observe=lambda name, graph: found.add(name))
    monkeypatch.setattr(pipeline, "pass_options", lambda: options)
    for module, limits in SMALL:
        for name, limit in limits.items():
            monkeypatch.setattr(module, name, limit)
    reference = ops.unset.reference
    object.__setattr__(ops.unset, "reference", lambda *, shape, dtype: np.full(shape, np.nan if dtype.kind in "fc" else 77, dtype.numpy))
    yield found
    object.__setattr__(ops.unset, "reference", reference)


def same(found: Sequence[Any], expected: Sequence[Any], text: str) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (np.asarray(one).dtype, np.shape(one)) == (np.asarray(other).dtype, np.shape(other)), text
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8 * (1 + np.max(np.abs(other), initial=0)), err_msg=text)


def check(kind: str, seed: int) -> None:
    program, (rows, columns) = carried_program(kind, seed), np.random.default_rng([seed, 3]).integers(3, 10, 2)
    args = arguments(seed, rows, rows if kind == "rows" else columns)
    expected = [np.copy(x) for x in program(*copies(args))]
    text = program.text                                                # type: ignore[attr-defined]
    weights = [np.random.default_rng(k).uniform(-1, 1, x.shape) for k, x in enumerate(expected)]

    def total(*given: Any) -> Any:
        return sum(np.sum(x * weight) for x, weight in zip(program(*given), weights, strict=True))

    def interpreted(fun: Callable[..., Any]) -> list[Any]:
        """What a function's graph gives, and what it gives after all passes."""
        traced = trace(fun, args)
        inputs, count = [*args, *traced.captured], len(traced.outputs)
        graph: Graph = pipeline.lower(traced.graph).simplified
        found = interpret(traced.graph, inputs)[:count]
        same(interpret(graph, inputs)[:count], found, text)
        return found

    same(interpreted(program), expected, text)
    gradient = bw.value_and_grad(total, argnums=(0, 1, 2, 3))
    value, *gradients = interpreted(gradient.fun)
    same([value], [total(*copies(args))], text)
    if seed % COMPILED == 0:
        same(bw.jit(program)(*copies(args)), expected, text)
        same(gradient(*copies(args))[1], gradients, text)
    tangents = [np.random.default_rng([seed, k]).uniform(-1, 1, np.shape(x)) for k, x in enumerate(args)]
    product = sum(inner(one, tangent) for one, tangent in zip(gradients, tangents, strict=True))
    scale = max(1.0, abs(product), *[float(np.max(np.abs(one), initial=0)) for one in gradients])

    def along(h: float) -> Any:
        return total(*[x + h * tangent for x, tangent in zip(args, tangents, strict=True)])
    one, other = directional(along), directional(lambda h: along(0.1 * h)) * 10.0
    if scale < LARGEST and abs(one - other) <= 1e-8 * scale:
        assert abs(product - one) <= 1e-6 * scale, f"{product} != {one}: {text}"


@pytest.mark.parametrize("kind", FIRE)
def test_programs(kind: str, fired: set[str]) -> None:
    for seed in DEFAULT:
        check(kind, seed)
    assert fired >= FIRE[kind]


@pytest.mark.parametrize("kind", ["stencils", "alike"])
def test_programs_in_segments(kind: str, fired: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in SEGMENTS.items():
        monkeypatch.setattr(segment_loops, name, limit)
    for seed in DEFAULT[:4]:
        check(kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FIRE)
@pytest.mark.parametrize("start", CAMPAIGN[::CAMPAIGN_CHUNK])
def test_campaign(kind: str, start: int, fired: set[str]) -> None:
    for seed in range(start, start + CAMPAIGN_CHUNK):
        check(kind, seed)
