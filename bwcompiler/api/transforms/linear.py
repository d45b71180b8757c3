"""`linearize`: a function as two programs, one for its values and residuals, one for the linear derivative."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np

from bwcompiler import tree
from bwcompiler.api.programs.arguments.forms import argument_kinds, argument_trees, flat_tree, signature_tree, signature_trees
from bwcompiler.api.programs.bound_graph import BoundGraph
from bwcompiler.api.programs.executables import compile_graph
from bwcompiler.api.programs.kept import REMEMBERED, made_of
from bwcompiler.api.programs.program import Program
from bwcompiler.api.transforms.forward import PushedCall, forward_call
from bwcompiler.api.transforms.options import TransformOptions
from bwcompiler.api.transforms.reverse import program_of, up_to_date
from bwcompiler.api.transforms.tangents import concrete_tangent, match_leaves, matched_tangents, without_float0
from bwcompiler.api.transforms.transformed import TracedCall, as_floats, capture, outputs_of, with_options
from bwcompiler.compiler.pipeline import push, split
from bwcompiler.errors import TangentError
from bwcompiler.frontend.tracing.boundary.arguments import unwrapped
from bwcompiler.frontend.tracing.operands import is_tracing
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.contracts.call_signature import ArgumentKind
from bwcompiler.ir.graph import Graph, inline
from bwcompiler.ir.op import constant
from bwcompiler.ir.types import TensorType
from bwcompiler.runtime.executable import CallForm, chain


@shows_users_frames
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, **options: Unpack[TransformOptions]) -> Any:
    """fun(*primals) and its derivative there: a linear function of one tangent per primal, which does not compute fun again.

    The derivative takes and returns tangents with the trees, shapes and dtypes of primals and outputs, as `jvp` does.  With has_aux, fun
    returns (out, aux), and the result is (out, derivative, aux).  Raises the errors of `jvp`; the derivative raises TangentError.

    >>> import numpy as np, bwcompiler as bw
    >>> out, derivative = bw.linearize(lambda x: x * x, np.array([1.0, 2.0]))
    >>> out.tolist(), derivative(np.array([1.0, 0.0])).tolist(), derivative(np.array([0.0, 1.0])).tolist()
    ([1.0, 4.0], [2.0, 0.0], [0.0, 4.0])
    """
    if options:
        fun, primals = with_options("linearize", fun, primals, options)
    if is_tracing(primals):
        out = call_user(fun, tuple(map(unwrapped, primals)), {})
        out, aux = out if has_aux else (out, None)
        derivative: Any = functools.partial(_derivative_traced, fun, primals, has_aux)
    else:
        floats = tuple(as_floats(primals, range(len(primals))))
        halves, (results, derivative) = up_to_date(lambda: (halves := _halves_of(fun, floats, has_aux), halves.at(floats)))
        out = tree.unflatten(halves.outputs.treedef, [results[k] for k in halves.outputs.numbers])
        if has_aux:
            assert halves.outputs.aux_treedef is not None
            aux = tree.unflatten(halves.outputs.aux_treedef, [results[k] for k in halves.outputs.aux_numbers])
    return (out, derivative, aux) if has_aux else (out, derivative)


def _derivative_traced(fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool, *tangents: Any) -> Any:
    _require_count(tangents, len(primals))
    call = forward_call(fun, primals)
    outputs = outputs_of(call.result, has_aux)
    return tree.unflatten(outputs.treedef, PushedCall.of(call, matched_tangents(call, tangents, "tangents"), outputs).tangents)


def _require_count(tangents: Sequence[Any], count: int) -> None:
    if len(tangents) != count:
        raise TangentError(f"the derivative takes one tangent per primal, {count}; got {len(tangents)}")


def _halves_of(fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> _Halves:
    program = program_of(fun, primals)
    known: dict[Program, _Halves] = made_of(fun, ("halves", has_aux), dict)
    found = known.get(program)
    if found is None:
        found = known[program] = _Halves(program, has_aux)
        for dropped in list(known)[:-REMEMBERED]:
            del known[dropped]
    return found


class _Halves:
    """The two programs of a function: one for its values and residuals, one for the linear derivative."""

    def __init__(self, program: Program, has_aux: bool) -> None:
        traced = program.traced
        graph = traced.graph
        self.program = program
        self.outputs = outputs_of(traced, has_aux)
        self.call = TracedCall(tuple(range(len(program.argument_trees))), traced, [])
        self.wrt = [k for k, value in enumerate(graph.inputs[:len(traced.argument_types)]) if value.dtype.is_differentiable]
        pushed = push(graph, self.wrt, [k in self.outputs.numbers for k in range(len(graph.outputs))], apart=True)
        self.tangents = [pushed.tangents[k] for k in self.outputs.numbers]
        self.parts = split(pushed.graph, pushed.seeds, len(graph.outputs))
        captured = [*traced.captured, *pushed.captured]
        self.forward = BoundGraph(compile_graph(self.parts.forward, (), program.__name__), captured, program.assumptions.layouts,
                                  sorted(traced.written), traced.result_kinds)
        self.captured = captured
        self.linear = BoundGraph(compile_graph(_residuals_last(self.parts.adjoint, len(self.wrt)), (), f"{program.__name__}.jvp"),
                                 [*[np.zeros(value.shape, value.dtype.numpy) for value in self.parts.residuals], *captured])
        self.form = self._form()
        self._run: Callable[..., Any] = self._first_run

    def _first_run(self, *primals: Any) -> Any:
        """All results, then the residuals; later calls of this form go straight to native code."""
        leaves = self.program.leaves_of(primals)
        found = self.forward.call(leaves)
        kinds, trees = argument_kinds(leaves), argument_trees(self.program.arguments, len(primals), ())
        reads = self.program.operands.reads
        if kinds is not None and trees is not None and not any(read.is_followed for read in reads):
            signature = self.forward.signature(trees, kinds, flat_tree(len(found)))
            form = self.forward.form(signature, self.program.arguments.static_values, reads)
            if form is not None:
                self._run = chain([form], self._slow_run)
        return found

    def _slow_run(self, *primals: Any) -> Any:
        return self.forward.call(self.program.leaves_of(primals))

    def at(self, primals: Sequence[Any]) -> tuple[tuple[Any, ...], Callable[..., Any]]:
        """All results, and the derivative at the primals."""
        found = self._run(*primals)
        count = len(self.program.traced.outputs)
        residuals = tuple([np.asarray(one) for one in found[count:]])

        @shows_users_frames
        def derivative(*tangents: Any) -> Any:
            _require_count(tangents, len(primals))
            if is_tracing(tangents):
                return self._in_trace(residuals, tangents)
            given = self._concrete(tangents)
            results = self.linear.over((*residuals, *self.captured)).call([given[k] for k in self.wrt])
            return self._result(results.__getitem__, lambda type_: np.zeros(type_.shape, type_.dtype.numpy))

        forms = [] if self.form is None else [self.form.over((*residuals, *self.captured))]
        return found, chain(forms, derivative, "derivative")

    def _form(self) -> CallForm | None:
        """The form of calls of the derivative with an array (or a float for a scalar) for every leaf."""
        graph = self.program.traced.graph
        trees = signature_trees(self.call.leaf_numbers())
        result = signature_tree(tree.unflatten(self.outputs.treedef, range(len(self.tangents))))
        if trees is None or result is None or len(self.wrt) != len(self.program.traced.argument_types) or None in self.tangents:
            return None
        kinds: tuple[ArgumentKind, ...] = tuple(["array" if graph.inputs[k].shape else "float" for k in self.wrt])
        return self.linear.form(self.linear.signature(trees, kinds, result))

    def _concrete(self, tangents: Sequence[Any]) -> dict[int, Any]:
        graph = self.program.traced.graph
        given = {k: np.zeros(graph.inputs[k].shape, graph.inputs[k].dtype.numpy) for k in self.wrt}
        for k, (numbers, tangent) in enumerate(zip(self.call.leaf_numbers(), without_float0(tangents), strict=True)):
            for number, leaf, path in match_leaves(numbers, tangent, f"tangents[{k}]"):
                given[number] = concrete_tangent(self.program.traced, number, leaf, path)
        return given

    def _in_trace(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        given = matched_tangents(self.call, tangents, "tangents")
        inputs = self.program.traced.graph.inputs
        seeds = [given[k] if k in given else constant(0.0, inputs[k].type) for k in self.wrt]
        found = inline(self.parts.adjoint, [*map(capture, residuals), *seeds, *map(capture, self.captured)])
        return self._result(lambda number: fresh(found[number]), lambda type_: fresh(constant(0.0, type_)))

    def _result(self, present: Callable[[int], Any], zeros: Callable[[TensorType], Any]) -> Any:
        """The tangents in the tree of the outputs: result numbers of the linear program, zeros, None for integers."""
        leaves: list[Any] = []
        numbers = itertools.count()
        for k, position in zip(self.outputs.numbers, self.tangents, strict=True):
            output = self.program.traced.graph.outputs[k]
            if position is not None:
                leaves.append(present(next(numbers)))
            else:
                leaves.append(zeros(output.type) if output.dtype.is_differentiable else None)
        return tree.unflatten(self.outputs.treedef, leaves)


def _residuals_last(linear: Graph, seeds: int) -> Graph:
    """The linear half with tangents as arguments; residuals are captured inputs, so that all derivatives share one call form."""
    explicit = len(linear.inputs) - linear.captured
    residuals = explicit - seeds
    inputs = [*linear.inputs[residuals:explicit], *linear.inputs[:residuals], *linear.inputs[explicit:]]
    return Graph(linear.name.replace(".vjp", ".jvp"), inputs, linear.body, linear.outputs, linear.index, linear.captured + residuals)
