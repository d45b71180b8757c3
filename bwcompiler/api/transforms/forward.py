"""Forward mode: jvp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack

from bwcompiler import tree
from bwcompiler.api.programs.kept import made_of
from bwcompiler.api.transforms.options import Options, TransformOptions
from bwcompiler.api.transforms.tangents import matched_tangents, without_float0
from bwcompiler.api.transforms.transformed import Outputs, TracedCall, Transformed, as_floats, capture, outputs_of
from bwcompiler.compiler.pipeline import push
from bwcompiler.errors import TangentError
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.graph import inline
from bwcompiler.ir.op import Value, constant
from bwcompiler.passes.derivatives.push_forward import TangentGraph


@shows_users_frames
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False,
        **options: Unpack[TransformOptions]) -> Any:
    """(fun(*primals), its derivative along tangents), computed together in one program.

    primals, tangents   tuples or lists; a tangent has the tree, shapes and dtypes of its primal, or is None for zero.  Integer and
                        boolean primals have the tangent None, and so have such outputs.  Python ints are differentiated as floats.
    has_aux             fun returns (out, aux), and the result is (out, tangent, aux).

    Raises TangentError (a TypeError and a ValueError) for tangents that do not fit their primals, UnsupportedError for an op
    without a forward derivative, GradientError for a `custom_vjp` whose rule is not linear, and the errors of tracing fun.

    >>> import numpy as np, bwcompiler as bw
    >>> out, tangent = bw.jvp(lambda x, y: x * y, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.0]), 1.0))
    >>> out.tolist(), tangent.tolist()
    ([3.0, 6.0], [4.0, 2.0])
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise TangentError(f"jvp: primals and tangents must be tuples or lists, got {type(primals).__name__} and {type(tangents).__name__}"
                           "\n  hint: bw.jvp(f, (x,), (t,))")
    if len(primals) != len(tangents):
        raise TangentError(f"jvp: {len(primals)} primals, but {len(tangents)} tangents")
    if not options:
        return made_of(fun, ("jvp", has_aux), lambda: _Pushed(fun, has_aux))(tuple(primals), tuple(tangents))
    chosen = Options.of("jvp", options)
    made = made_of(fun, ("jvp", has_aux, chosen), lambda: _Pushed(fun, has_aux, **options))
    return made(chosen.declare(fun, primals), tuple(tangents))


class _Pushed(Transformed[..., Any]):
    """fun with its forward derivative: a function of (primals, tangents)."""

    def __init__(self, fun: Callable[..., Any], has_aux: bool, **options: Unpack[TransformOptions]) -> None:
        chosen = Options.of("jvp", options)

        def traced(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            return _pushed(fun, chosen.declare(fun, primals), tangents, has_aux)

        traced.__name__ = f"{getattr(fun, '__name__', 'function')}.jvp"
        super().__init__(traced, Options(autoloop=chosen.autoloop), (_Pushed, (fun, has_aux)))
        self.made_by = (_Pushed, (fun, has_aux), chosen)

    def _slow(self, *args: Any, **kwargs: Any) -> Any:
        primals, tangents = args
        return super()._slow(primals, without_float0(tangents))


def _pushed(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool) -> Any:
    call = forward_call(fun, primals)
    outputs = outputs_of(call.result, has_aux)
    given = matched_tangents(call, tangents, "tangents")
    found = PushedCall.of(call, given, outputs)
    tangent = tree.unflatten(outputs.treedef, found.tangents)
    primal = outputs.primal(found.values)
    return (primal, tangent, outputs.aux(found.values)) if has_aux else (primal, tangent)


def forward_call(fun: Callable[..., Any], primals: Sequence[Any]) -> TracedCall:
    """A traced call that is differentiated with respect to all arguments."""
    result = trace(fun, as_floats(primals, range(len(primals))))
    return TracedCall(tuple(range(len(primals))), result, [])


class PushedCall(NamedTuple):
    """values: all outputs of the graph; tangents: per differentiated output a handle, or None for integers."""

    values: list[Value]
    tangents: list[Any]

    @staticmethod
    def of(call: TracedCall, given: dict[int, Value], outputs: Outputs) -> PushedCall:
        """The function and its derivative in the current region, for tangents of some leaves."""
        graph = call.result.graph
        pushed = push(graph, list(given), [k in outputs.numbers for k in range(len(graph.outputs))])
        found = inline(pushed.graph, [*call.inputs(*given.values()), *map(capture, pushed.captured)])
        return PushedCall(found, [output_tangent(call.result, pushed, found, k) for k in outputs.numbers])


def output_tangent(result: TraceResult, pushed: TangentGraph, found: Sequence[Value], number: int) -> Any:
    """The handle of the tangent of an output; zeros if it depends on nothing; None for integers."""
    output, position = result.graph.outputs[number], pushed.tangents[number]
    if not output.dtype.is_differentiable:
        return None
    return fresh(constant(0.0, output.type) if position is None else found[position])
