"""Arguments that a function assigns to: which are written back to the caller's arrays (`forward_graph`), and errors for those that cannot
be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import SignatureError
from bwcompiler.frontend.tracing.boundary.arguments import parameter_names
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.ir.graph import Graph, live_values


def check_mutates(transform: str, fun: Callable[..., Any], mutates: Any) -> None:
    """Raise SignatureError for positions and names that are not arguments of fun, if its signature is known."""
    try:
        parameters = inspect.signature(fun).parameters
    except (TypeError, ValueError):
        return
    kinds = {parameter.kind for parameter in parameters.values()}
    count = len(parameter_names(fun))
    for one in _listed(mutates):
        known = (one in parameters or inspect.Parameter.VAR_KEYWORD in kinds if isinstance(one, str) else
                 -count <= one < count or inspect.Parameter.VAR_POSITIONAL in kinds)
        if not known:
            raise SignatureError(f"{transform}: mutates has {one!r}, but {getattr(fun, '__name__', 'the function')} takes "
                                 f"{', '.join(parameters) or 'nothing'}")


def _listed(mutates: Any) -> tuple[int | str, ...]:
    if isinstance(mutates, bool):
        return ()
    return (mutates,) if isinstance(mutates, int | str) else tuple(mutates)


def may_mutate(mutates: Any, number: int, traced: TraceResult) -> bool:
    """Whether the option `mutates` of `jit` and `compile` selects argument leaf `number` for writing back.  It names arguments, or single
    leaves."""
    if isinstance(mutates, bool):
        return mutates
    parameters, name = traced.arguments.parameters, traced.input_names[number]
    chosen = {parameters[one] if isinstance(one, int) and -len(parameters) <= one < len(parameters) else one for one in _listed(mutates)}
    return name in chosen or name.partition(".")[0] in chosen


def forward_graph(traced: TraceResult, mutates: Any) -> tuple[Graph, tuple[int | None, ...]]:
    """The graph of a call: its results are the outputs, then the final values of the arguments that are written back; and per result the
    leaf whose memory it is written to."""
    written = [number for number in traced.mutated if may_mutate(mutates, number, traced)]
    results = [*traced.outputs, *[traced.mutated[number] for number in written]]
    graph = traced.graph.replace(body=live_values(traced.graph.body, results), outputs=results)
    return graph, (*[None] * len(traced.outputs), *written)


def check_written(traced: TraceResult, leaves: Sequence[Any], captured: Sequence[Any], into: Sequence[int | None]) -> list[list[int]]:
    """Raise if an argument that is assigned to cannot be written back, or shares memory with a captured array.

    Returns groups of arguments that share memory with an assigned one: the program does not allow for that (see `shared_arguments`).
    """
    names = traced.input_names
    for number in sorted(traced.written):
        target = leaves[number]
        if number in into and not isinstance(target, np.ndarray):
            raise SignatureError(f"{names[number]} is assigned to, but the argument is not an array")
        if number in into and not target.flags.writeable:
            raise ValueError(f"{names[number]} is assigned to, but the array is read-only\n"
                             f"  hint: pass a copy, {names[number]}.copy(), or write bw.jit(fun, mutates=False)")
        if any(overlap(target, array) for array in captured):
            raise SignatureError(f"{names[number]} is assigned to and shares memory with an array that the function captures, which would "
                                 f"change too\n  hint: pass a copy, {names[number]}.copy(); or pass the other array as an argument as well")
    return overlapping(leaves, traced.written)


def refuse_overlaps(traced: TraceResult, groups: Sequence[Sequence[int]]) -> None:
    """Raise if arguments of a derivative overlap and one of them is assigned to."""
    for group in groups:
        number = next(k for k in group if k in traced.written)
        name, other = traced.input_names[number], traced.input_names[next(k for k in group if k != number)]
        raise SignatureError(f"{name} is assigned to and shares memory with {other}: the other would change too, and a derivative is with "
                             f"respect to one alone\n  hint: pass a copy, {name}.copy()")


SEARCH = 10_000                # most work for the decision whether two arrays overlap; if that is not enough, they count as overlapping


def overlap(one: Any, other: Any) -> bool:
    """Whether two leaves have an element in common."""
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray) or not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=SEARCH)  # type: ignore[arg-type]     # NumPy's stub knows -1 and 0 only
    except np.exceptions.TooHardError:
        return True


def overlapping(leaves: Sequence[Any], written: Iterable[int]) -> list[list[int]]:
    """Groups of leaves that are connected by overlaps and have a member that is written to."""
    groups: list[list[int]] = []
    for number in sorted(written):
        if any(number in group for group in groups):
            continue
        group = [number]
        for member in group:                       # grows meanwhile
            group += [k for k, leaf in enumerate(leaves) if k not in group and overlap(leaves[member], leaf)]
        if len(group) > 1:
            groups.append(sorted(group))
    return groups
