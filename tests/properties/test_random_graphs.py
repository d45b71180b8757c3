"""Random graphs: every pass keeps the meaning of a graph, compiled code computes it, derivatives are right.

The number of a failing graph is its whole description: `random_graph(seed)` makes it again, and
`tests.support.graph_strategies.reduced` shrinks it.  `pytest -m slow tests/properties` runs the large campaign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from bwcompiler.api.programs import executables
from bwcompiler.api.sparse.sparsity import pattern_of
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import REGISTRY, Value
from bwcompiler.ir.semantics.content_hash import content_hash
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.ir.texts.graph_printer import graph_to_text
from bwcompiler.ir.types import BOOL, C64, F32, F64
from bwcompiler.lowering.loops import blocks, parallel
from bwcompiler.lowering.loops.building import loop_order
from bwcompiler.passes.batching.batch import batch_graph
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, differentiate
from bwcompiler.passes.derivatives.partition import partition
from bwcompiler.passes.derivatives.push_forward import push_forward
from bwcompiler.passes.memory import find_updates
from bwcompiler.passes.rewriting.legalize import legalize
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.gradcheck import directional, inner
from tests.support.graph_builder import INTEGERS, RandomGraph
from tests.support.graph_strategies import random_graph, require_close, require_same_bits, run_compiled
from tests.support.targets import narrowest, on_each, require_agreement

DEFAULT = range(120)                    # seeds of the default run, in chunks: one test each
CHUNK = 20
TARGETS_STEP = 10                       # of the default run, every tenth is compiled for all targets
CAMPAIGN = range(10_000, 13_000)
CAMPAIGN_CHUNK = 250


def any_graph(seed: int) -> RandomGraph:
    return random_graph(seed, nodes=8 + seed % 17, dtype=F32 if seed % 4 == 3 else F64)


def smooth_graph(seed: int) -> RandomGraph:
    return random_graph(seed, nodes=6 + seed % 11, smooth=True)


def check_outputs(made: RandomGraph, found: Sequence[Any], expected: Sequence[Any], what: str) -> None:
    single = any(value.dtype in (F32, C64) for value in made.graph.values())
    assert len(found) == len(expected)
    for number, (x, y, exact) in enumerate(zip(found, expected, made.exact, strict=True)):
        where = f"{made.graph.name}: {what}: output {number}"
        if exact:
            require_same_bits(x, y, where)
        else:
            require_close(x, y, (2e-4 if single else 1e-10) * made.scale, where)


def seeds_of(graph: Graph) -> list[str | None]:
    return [INPUT_SEED if output.dtype.is_differentiable else None for output in graph.outputs]


def random_like(values: Sequence[Value], number: int) -> list[Any]:
    rng = np.random.default_rng(number)
    return [np.asarray(rng.uniform(-1, 1, value.shape) + (1j * rng.uniform(-1, 1, value.shape) if value.dtype.is_complex else 0), value.dtype.numpy)
            for value in values]


# ----- checks of one graph
def test_every_op_is_reached():
    """All dtypes of arrays, views that run backwards, and all ops but those that loops, custom rules and several results need, the parts
    that factorisations, their derivatives and index checks are made of, which want each other's results, and functions that
    are named by attributes."""
    graphs = [any_graph(seed).graph for seed in range(800)]
    values = [value for graph in graphs for value in graph.body]
    unreached = {op.name for op in REGISTRY.values() if op.kind not in ("region", "input", "item")} - {value.op.name for value in values}
    assert unreached <= {"index_value", "lu", "lu_solve", "cholesky_tangent", "cholesky_adjoint", "cholesky_or_nan", "householder",
                         "orthonormal", "barrier", "cofactors", "cofactor_change", "special_function", "callback", "eig", "wrap_index",
                         "index_from_start", "check_range", "unset"}
    assert {value.dtype for value in values} >= {BOOL, F32, F64, *INTEGERS}
    assert {extent for value in values for extent in value.shape} >= {0, 1}
    assert any(value.rank == 0 for value in values)
    assert any(min(value.attrs["steps"], default=1) < 0 for value in values if value.op.name == "slice")


def check_text(seed: int) -> None:
    graph = any_graph(seed).graph
    verify(graph)
    text = graph_to_text(graph)
    parsed = parse_graph(text)
    assert graph_to_text(parsed) == text
    assert content_hash(parsed) == content_hash(graph) == content_hash(any_graph(seed).graph)


def check_passes(seed: int) -> None:
    made = any_graph(seed)
    expected = interpret(made.graph, made.arguments)
    runs = {"legalize": legalize, "simplify": lambda graph: simplify(graph).graph, "both": lambda graph: simplify(legalize(graph)).graph}
    for name, run in runs.items():
        graph = run(made.graph)
        verify(graph)
        assert [output.type for output in graph.outputs] == [output.type for output in made.graph.outputs]
        check_outputs(made, interpret(graph, made.arguments), expected, name)
        assert run(graph) is graph, f"{made.graph.name}: {name} changes its own result"


def check_compiled(seed: int) -> None:
    made = any_graph(seed)
    check_outputs(made, run_compiled(made.graph, made.arguments), interpret(made.graph, made.arguments), "compiled")


def check_compiled_with_small_limits(seed: int) -> None:
    """What only long loops and large arrays reach: updates in place, short rows, panels, sums in blocks, loops that are cut."""
    with pytest.MonkeyPatch.context() as patch:
        for module, limits in ((find_updates, {"CHAIN": 2, "SHARE": 1}),
                               (loop_order, {"SHORT_ROWS": 2, "SHORT_ROW": 1000, "EXPENSIVE_ROW": 0, "PANEL_LIMITS": (2, 32)}),
                               (blocks, {"LEAST_WORK": (1, 40, 200)[seed % 3], "BLOCK_WORK": 2, "PARTIAL_SHARE": 1}),
                               (parallel, {"LEAST_WORK": 1, "GRAIN_WORK": 1})):
            for name, limit in limits.items():
                patch.setattr(module, name, limit)
        patch.setattr(executables, "_cache", executables.Executables())
        check_compiled(seed)


def check_batching(seed: int) -> None:
    made = any_graph(seed)
    rng = np.random.default_rng(seed)
    size = int(rng.choice((1, 2, 3)))
    flags = [bool(rng.integers(2)) for _ in made.graph.inputs]
    batches = [np.stack([permuted(rng, x) for _ in range(size)]) if flag else x
               for x, flag in zip(made.arguments, flags, strict=True)]
    mapped, out_flags = batch_graph(made.graph, flags, size)
    verify(mapped)
    found = interpret(mapped, batches)
    for k in range(size):
        each = interpret(made.graph, [x[k] if flag else x for x, flag in zip(batches, flags, strict=True)])
        # other arguments than those the graph was made for: functions may leave their domain and values the range of ints
        rows = [x[k] if flag else x for x, flag in zip(found, out_flags, strict=True)]
        for x, y, exact in zip(rows, each, made.exact, strict=True):
            if exact:
                require_same_bits(x, y, f"{made.graph.name}: batched")
            elif np.all(np.isfinite(y)):
                require_close(x, y, 1e-3 * max(made.scale, float(np.max(np.abs(y), initial=0))), f"{made.graph.name}: batched")


def permuted(rng: np.random.Generator, x: Any) -> Any:
    """The same elements in another order: indices stay indices."""
    return rng.permutation(x.reshape(-1)).reshape(x.shape)


def check_gradient(seed: int) -> None:
    """Joint graph, interpreted and compiled, against differences; <ct, jvp> == <vjp, t>; partition."""
    made = smooth_graph(seed)
    graph, arguments = made.graph, made.arguments
    joint = differentiate(graph, made.wrt, seeds_of(graph))
    verify(joint.graph)
    cts = random_like([output for output in graph.outputs if output.dtype.is_differentiable], seed)
    both = [*arguments, *cts]
    expected = interpret(joint.graph, both)
    count = len(graph.outputs)
    for x, y in zip(expected, interpret(graph, arguments), strict=False):
        require_same_bits(x, y, f"{graph.name}: value in the joint graph")
    simplified = simplify(legalize(joint.graph)).graph
    verify(simplified)
    size = max([made.scale, *[float(np.max(np.abs(x), initial=0)) for x in expected if x.dtype.kind in "fc"]])
    for x, y in zip(interpret(simplified, both), expected, strict=True):
        require_close(x, y, 1e-11 * size, f"{graph.name}: simplified joint graph")
    for x, y in zip(run_compiled(joint.graph, both), expected, strict=True):
        require_close(x, y, 1e-11 * size * size, f"{graph.name}: compiled joint graph")

    cotangents = [None if position is None else expected[position] for position in joint.cotangents]
    tangents = random_like([graph.inputs[k] for k in made.wrt], seed + 1)
    product = paired(cotangents, tangents)
    difference = directional(lambda h: weighted(graph, moved(arguments, made.wrt, tangents, h), cts))
    assert abs(product - difference) <= 1e-6 * max(1.0, size, abs(product)), f"{graph.name}: {product} != {difference}"
    forward = push_forward(graph, made.wrt)
    verify(forward.graph)
    outs = interpret(forward.graph, [*arguments, *tangents])
    floats = [position for output, position in zip(graph.outputs, forward.tangents, strict=True) if output.dtype.is_differentiable]
    pushed = paired(cts, [None if position is None else outs[position] for position in floats])
    assert abs(product - pushed) <= 1e-9 * max(1.0, size * size, abs(product)), f"{graph.name}: <vjp, t> = {product}, <ct, jvp> = {pushed}"
    if seed % 4 == 0:
        for x, y in zip(run_compiled(forward.graph, [*arguments, *tangents]), outs, strict=True):
            require_close(x, y, 1e-11 * size * size, f"{graph.name}: compiled tangents")

    seeds = [k for k in joint.seeds if k is not None]
    parts = partition(joint.graph, seeds, count)
    verify(parts.forward)
    verify(parts.adjoint)
    saved = interpret(parts.forward, arguments)
    adjoint = interpret(parts.adjoint, [*saved[count:], *cts])
    for x, y in zip([*saved[:count], *adjoint], expected, strict=True):
        require_same_bits(x, y, f"{graph.name}: partitioned")


def check_second_order(seed: int) -> None:
    """The derivative of the gradient against differences of the gradient."""
    made = smooth_graph(seed)
    first = differentiate(made.graph, made.wrt, seeds_of(made.graph))
    cts = random_like([output for output in made.graph.outputs if output.dtype.is_differentiable], seed)
    positions = [k for k in first.cotangents if k is not None]
    gradient = cut("gradient", first.graph.inputs, first.graph.body, [first.graph.outputs[k] for k in positions])
    arguments = [*made.arguments, *cts]
    wrt = [k for k, value in enumerate(gradient.inputs) if value.dtype.is_differentiable]
    second = differentiate(gradient, wrt, [INPUT_SEED] * len(positions))
    verify(second.graph)
    bars = random_like(gradient.outputs, seed + 2)
    expected = interpret(second.graph, [*arguments, *bars])
    size = max([made.scale, *[float(np.max(np.abs(x), initial=0)) for x in expected if x.dtype.kind in "fc"]])
    for x, y in zip(run_compiled(second.graph, [*arguments, *bars]), expected, strict=True):
        require_close(x, y, 1e-10 * size * size, f"{made.graph.name}: compiled second derivative")
    tangents = random_like([gradient.inputs[k] for k in wrt], seed + 3)
    product = paired([None if k is None else expected[k] for k in second.cotangents], tangents)
    forward = push_forward(gradient, wrt)
    outs = interpret(forward.graph, [*arguments, *tangents])
    pushed = paired(bars, [None if position is None else outs[position] for position in forward.tangents])
    assert abs(product - pushed) <= 1e-8 * max(1.0, size * size, abs(product)), f"{made.graph.name}: reverse {product}, forward over reverse {pushed}"
    difference = directional(lambda h: weighted(gradient, moved(arguments, wrt, tangents, h), bars))
    assert abs(product - difference) <= 1e-5 * max(1.0, size, abs(product)), f"{made.graph.name}: {product} != {difference}"


def paired(cotangents: Sequence[Any], tangents: Sequence[Any]) -> float:
    """Re(Σ ct t), over those that are not None: the pairing of complex cotangents and tangents."""
    return float(np.real(sum(inner(ct, t) for ct, t in zip(cotangents, tangents, strict=True) if ct is not None and t is not None)))


def weighted(graph: Graph, arguments: Sequence[Any], weights: Sequence[Any]) -> float:
    """The sum of the differentiable outputs times weights."""
    found = interpret(graph, arguments)
    floats = [x for x, output in zip(found, graph.outputs, strict=True) if output.dtype.is_differentiable]
    return paired(floats, weights)


def moved(arguments: Sequence[Any], wrt: Sequence[int], tangents: Sequence[Any], h: float) -> list[Any]:
    changed = list(arguments)
    for k, t in zip(wrt, tangents, strict=True):
        changed[k] = arguments[k] + h * t
    return changed


def check_pattern(seed: int) -> None:
    """The derivative by one element is zero where the pattern says that no element of an output depends on it."""
    made = smooth_graph(seed)
    for k in made.wrt:
        argument = made.arguments[k]
        pattern = pattern_of(made.graph, k, made.arguments)
        pushed = push_forward(made.graph, (k,))
        for element in np.random.default_rng(seed).permutation(argument.size)[:3]:
            tangent = np.zeros(argument.size, argument.dtype)
            tangent[element] = 1.0
            found = interpret(pushed.graph, [*made.arguments, tangent.reshape(argument.shape)])
            for sets, position in zip(pattern.sets, pushed.tangents, strict=True):
                moved_elements = np.flatnonzero(np.zeros(1) if position is None else np.nan_to_num(found[position]))
                allowed = set() if sets is None else set(sets[:, [element]].nonzero()[0].tolist())
                assert set(moved_elements.tolist()) <= allowed, f"{made.graph.name}: element {element} of input {k}"


def check_targets(seed: int) -> None:
    """The same bits for every CPU that has FMA, and the graph's meaning without it: values and gradients."""
    made = any_graph(seed)
    found = on_each(lambda: run_compiled(made.graph, made.arguments))
    require_agreement(found, made.graph.name)
    check_outputs(made, found[narrowest()], interpret(made.graph, made.arguments), str(narrowest()))
    made = smooth_graph(seed)
    joint = differentiate(made.graph, made.wrt, seeds_of(made.graph)).graph
    both = [*made.arguments, *random_like([output for output in made.graph.outputs if output.dtype.is_differentiable], seed)]
    found = on_each(lambda: run_compiled(joint, both))
    require_agreement(found, f"{made.graph.name}: joint graph")
    expected = interpret(joint, both)
    size = max([made.scale, *[float(np.max(np.abs(x), initial=0)) for x in expected if x.dtype.kind in "fc"]])
    for x, y in zip(found[narrowest()], expected, strict=True):
        require_close(x, y, 1e-11 * size * size, f"{made.graph.name}: joint graph for {narrowest()}")


# ----- runs
CHECKS: tuple[Callable[[int], None], ...] = (
    check_text, check_passes, check_compiled, check_compiled_with_small_limits, check_batching, check_gradient, check_second_order, check_pattern)


# The second derivative is the dearest check, and every graph of it is one of the first derivative too: half of the seeds.
RUNS = [pytest.param(check, start, id=f"{check.__name__}-{start}") for check in CHECKS
        for start in range(DEFAULT.start, DEFAULT.stop, CHUNK * (2 if check is check_second_order else 1))]


@pytest.mark.parametrize(("check", "start"), RUNS)
def test_graphs(check, start):
    for seed in range(start, start + CHUNK):
        check(seed)


@pytest.mark.parametrize("start", range(DEFAULT.start, DEFAULT.stop, CHUNK))
def test_targets(start):
    for seed in range(start, start + CHUNK, TARGETS_STEP):
        check_targets(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(CAMPAIGN.start, CAMPAIGN.stop, CAMPAIGN_CHUNK))
@pytest.mark.parametrize("check", (*CHECKS, check_targets), ids=lambda check: check.__name__)
def test_campaign(check, start):
    for seed in range(start, start + CAMPAIGN_CHUNK):
        check(seed)
