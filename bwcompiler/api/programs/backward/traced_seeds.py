"""Seeds while tracing: matched with outputs as values of the current region, and pullbacks called inside a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler import ops, tree
from bwcompiler.api.programs.backward.forms import BackwardCall, regrouped
from bwcompiler.api.programs.backward.seeds import check_seed_type, match_tree, missing_seed, number_seed
from bwcompiler.compiler.program_like import Halves
from bwcompiler.errors import SignatureError
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.handles import is_weak, value_of
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.graph import inline
from bwcompiler.ir.op import Value, constant


def match_seeds(result: TraceResult, numbers: Sequence[int], seed: Any, has_aux: bool = False) -> dict[int, Value | None]:
    """The seed's leaves as values, per number of an output (None: zero); raises SeedError naming output, expected and got."""
    whole = tree.unflatten(result.output_tree, range(len(result.outputs)))
    if has_aux:
        whole = whole[0]
    flat = match_tree(whole, seed, "seed")
    return {k: None if leaf is None else _checked_seed(leaf, result.outputs[k], path)
            for (leaf, path), k in zip(flat, numbers, strict=True)}


def _checked_seed(leaf: Any, output: Value, path: str) -> Value:
    leaf = number_seed(leaf, output)
    value = value_of(leaf) if isinstance(leaf, Tracer) else value_as(leaf)
    if isinstance(leaf, Tracer) and is_weak(leaf) and value.dtype is not output.dtype:
        value = ops.cast(value, dtype=output.dtype)
    check_seed_type(value.shape, value.dtype.numpy, output, path)
    return value


def pull_in_trace(traced: TraceResult, halves: Halves, wrt: Sequence[int], argument_numbers: Sequence[Any],
                  residuals: Sequence[Any], call: BackwardCall) -> tuple[Any, ...]:
    """One gradient per argument from saved residuals, for a seed of handles: the adjoint program becomes part of the trace."""
    if call.into is not None or call.scale is not None:
        raise SignatureError("into= and scale= write to arrays; inside a traced function use the returned gradients")
    if call.grad_outputs is None and any(output.dtype.is_differentiable for output in traced.outputs):
        raise missing_seed(traced.outputs)
    seeds: dict[int, Value | None] = {}
    if call.grad_outputs is not None:
        seeds = match_seeds(traced, range(len(traced.outputs)), call.grad_outputs)
    values = [seeds.get(k) or constant(0.0, output.type) for k, output in enumerate(traced.outputs) if output.dtype.is_differentiable]
    region = open_region()
    captured = [region.capture(array) for array in (*traced.captured, *halves.joint.captured)]
    found = inline(halves.partition.adjoint, [*map(region.capture, residuals), *values, *captured])
    per_leaf: dict[int, Any] = {leaf: fresh(value) for leaf, value in zip(wrt, found, strict=True)}
    return tuple([regrouped(numbers, per_leaf) for numbers in argument_numbers])
