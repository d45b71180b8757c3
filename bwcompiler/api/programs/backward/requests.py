"""Kinds of backward calls, and the graph of each: joint graphs with seeds, sums into the caller's buffers, halves for `vjp`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops, tree
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.compiler.pipeline import derive, split
from bwcompiler.compiler.program_like import Halves
from bwcompiler.errors import GradientError
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, ArgumentType, is_buffer
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.texts.graph_printer import names_in_text
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, JointGraph, cotangent_or_zero


def argument_positions(given: Any, count: int, option: str) -> tuple[int, ...]:
    """`argnums` or `wrt` as non-negative positions; raises GradientError for anything but positions of arguments."""
    numbers = tuple(given) if isinstance(given, Iterable) else (given,)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or not -count <= number < count:
            hint = (f"{option}= takes positions, not names: 0 is the first argument" if isinstance(number, str) else
                    f"{option}=0, or a tuple of Python integers; what is passed by name only, or left to its default, has no "
                    "position" if count else
                    "derivatives are with respect to positional arguments: pass by position what is passed by name (or a dict of it), and "
                    "make an argument of what the function reads from outside")
            raise GradientError(f"{option}={given!r}: the call has {count} positional argument{'' if count == 1 else 's'}\n"
                                f"  hint: {hint}")
    return tuple([number % count for number in numbers])


def check_has_arrays(arguments: Arguments, numbers: Iterable[int]) -> None:
    """Raise GradientError for an argument to differentiate that is static, or an opaque object that is compiled in."""
    for found in filter(None, map(arguments.object_in, numbers)):
        path, value = found
        if isinstance(value, int | float | complex):
            raise GradientError(f"{path} is static, a number that is compiled in: it has no derivative\n"
                                "  hint: leave it out of static_argnums and static_argnames, or out of argnums / wrt")
        kind = type(value).__name__
        hint = ("argnums=1 is the argument behind self" if path == "self" else
                "pass np.asarray(x)" if is_buffer(value) else
                "pass dict(x)" if isinstance(value, Mapping) else
                "leave it out of argnums / wrt" if type(value).__module__ == "builtins" else
                f"pass its arrays, in a tuple or dict, or make {kind} a dataclass, whose fields are arguments")
        raise GradientError(f"{path} is of type {kind}, which is compiled in as a constant: there is nothing in it to differentiate\n"
                            f"  hint: {hint}")


def check_differentiable(result: TraceResult, positions: Sequence[int]) -> None:
    """Raise GradientError for leaves of integer or boolean dtype; Python ints are differentiated as floats."""
    for position in positions:
        argument = result.argument_types[position]
        if not argument.type.dtype.is_differentiable:
            raise GradientError(
                f"{result.input_names[position]} has dtype {argument.type.dtype.numpy}: integers have no gradient\n"
                "  hint: pass a float array, or leave the argument out of argnums / wrt")


class Request(NamedTuple):
    """One kind of backward call.

    wrt     leaves that are differentiated.
    seeds   per output "one", "input" or None.
    value   whether the outputs are returned as well.
    into    leaves whose gradients are added to the caller's buffers; `scaled`: multiplied by a number that is passed to the call.
    """

    wrt: tuple[int, ...]
    seeds: tuple[str | None, ...]
    value: bool = False
    into: tuple[int, ...] = ()
    scaled: bool = False

    @property
    def fresh(self) -> tuple[int, ...]:
        """The leaves of wrt whose gradients are returned in new arrays."""
        return tuple([leaf for leaf in self.wrt if leaf not in self.into])


class BackwardGraph(NamedTuple):
    """The graph of a request, or of the adjoint half of a program.

    graph     inputs: leaves (none for an adjoint half), seeds, scale, buffers, captured arrays;
              results: outputs, fresh gradients, then buffers with gradients added.
    into      per result: the input whose memory it is written to.
    captured  concrete arrays that derivative rules brought in.
    origins   value of the graph -> the traced value that it was rebuilt from.
    """

    graph: Graph
    into: tuple[int | None, ...]
    captured: Sequence[Any]
    origins: Mapping[Value, Value]


def differentiated(traced: TraceResult, request: Request) -> JointGraph:
    """The joint graph of a request, with the names of the traced graph."""
    return derive(traced.graph, request.wrt, request.seeds, names_in_text(traced.graph))


def joint_backward(traced: TraceResult, request: Request) -> BackwardGraph:
    """The graph of a request that computes forward and adjoint values together."""
    joint = differentiated(traced, request)
    graph = joint.graph
    outputs = list(graph.outputs[:len(traced.outputs)]) if request.value else []
    gradients = [_present(graph, position) for position in joint.cotangents]
    made, into = _accumulating(f"{graph.name}.backward", graph, outputs, gradients, traced, request)
    return BackwardGraph(made, into, joint.captured, joint.origins)


def _present(graph: Graph, position: int | None) -> Value | None:
    """The cotangent of an argument; None if the outputs do not depend on it."""
    return None if position is None else graph.outputs[position]


def halves(traced: TraceResult, request: Request, memory_limit: int | None = None) -> Halves:
    """The joint graph cut in two; residuals take at most `memory_limit` bytes."""
    joint = differentiated(traced, request)
    seeds = [position for position in joint.seeds if position is not None]
    record = Record()
    with record:
        cotangents = [cotangent_or_zero(_present(joint.graph, position), traced.graph.inputs[leaf])
                      for leaf, position in zip(request.wrt, joint.cotangents, strict=True)]
    outputs = [*joint.graph.outputs[:len(traced.outputs)], *cotangents]
    whole = joint.graph.replace(body=[*joint.graph.body, *record.values], outputs=outputs)
    return Halves(split(whole, seeds, len(traced.outputs), memory_limit), joint)


def adjoint_backward(traced: TraceResult, found: Halves, request: Request) -> BackwardGraph:
    """The adjoint half; residuals are captured inputs, so that all pullbacks share one call form."""
    adjoint = found.partition.adjoint
    explicit = len(adjoint.inputs) - adjoint.captured
    residuals = explicit - sum(seed is not None for seed in request.seeds)
    inputs = [*adjoint.inputs[residuals:explicit], *adjoint.inputs[:residuals], *adjoint.inputs[explicit:]]
    turned = Graph(adjoint.name, inputs, adjoint.body, adjoint.outputs, adjoint.index, adjoint.captured + residuals)
    made, into = _accumulating(adjoint.name, turned, [], list(adjoint.outputs), traced, request)
    return BackwardGraph(made, into, found.joint.captured, {})


def _accumulating(name: str, graph: Graph, outputs: Sequence[Value], gradients: Sequence[Value | None], traced: TraceResult,
                  request: Request) -> tuple[Graph, tuple[int | None, ...]]:
    """The graph that returns outputs, fresh gradients and buffers with gradients added; inputs scale and buffers follow the seeds."""
    explicit = len(graph.inputs) - graph.captured
    record = Record()
    fresh: list[Value] = []
    sums: dict[int, Value] = {}
    buffers: dict[int, Value] = {}
    with record:
        scale = [input_value(tensor(F64), "scale")] if request.scaled else []
        for leaf, gradient in zip(request.wrt, gradients, strict=True):
            argument = traced.graph.inputs[leaf]
            if leaf not in request.into:
                fresh.append(cotangent_or_zero(gradient, argument))
                continue
            buffer = buffers[leaf] = input_value(argument.type, f"{argument.name}.into")
            sums[leaf] = buffer if gradient is None else buffer + _scaled(gradient, scale)
    results = [*outputs, *fresh, *[sums[leaf] for leaf in request.into]]
    inputs = [*graph.inputs[:explicit], *scale, *[buffers[leaf] for leaf in request.into], *graph.inputs[explicit:]]
    first = explicit + len(scale)
    into = (*[None] * (len(outputs) + len(fresh)), *range(first, first + len(request.into)))
    return Graph(name, inputs, live_values([*graph.body, *record.values], results), results, None, graph.captured), into


def _scaled(gradient: Value, scale: list[Value]) -> Value:
    if not scale:
        return gradient
    return gradient * ops.broadcast(ops.cast(scale[0], dtype=gradient.dtype), shape=gradient.shape, axes=())


def every_seed(traced: TraceResult) -> tuple[str | None, ...]:
    """The seeds of a request that seeds every differentiable output."""
    return tuple([INPUT_SEED if output.dtype.is_differentiable else None for output in traced.outputs])


def numbered(arguments: Arguments) -> tuple[Any, ...]:
    """The positional arguments with the numbers of their dynamic leaves, None in the place of static ones."""
    number = {position: k for k, position in enumerate(arguments.dynamic)}
    args, _ = tree.unflatten(arguments.treedef, [number.get(position) for position in range(len(arguments.leaves))])
    return args  # type: ignore[no-any-return]


def stand_ins(arguments: Arguments, types: Sequence[ArgumentType]) -> Any:
    """Positional arguments of these types, without numbers."""
    leaves = [ShapeDtypeStruct(one.type.shape, one.type.dtype.numpy) if one.weak is None else one.weak(0)  # type: ignore[arg-type]
              for one in types]
    return arguments.with_leaves(leaves, declare=True)[0]
