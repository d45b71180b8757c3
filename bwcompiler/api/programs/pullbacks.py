"""`Pullbacks`: the derivative of a program in two calls.  The forward half saves residuals, from which the adjoint half runs, as often as
it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.api.programs.arguments.forms import argument_kinds, argument_trees, flat_tree
from bwcompiler.api.programs.backward.buffers import check_scale, match_buffers
from bwcompiler.api.programs.backward.forms import BackwardCall, backward_signature, usual_seeds
from bwcompiler.api.programs.backward.seeds import filled, seeds_of
from bwcompiler.api.programs.backward.traced_seeds import pull_in_trace
from bwcompiler.api.programs.native_calls import FORMS, Calls
from bwcompiler.api.programs.runners import Runners
from bwcompiler.api.programs.traced_program import TracedProgram
from bwcompiler.errors import SignatureError
from bwcompiler.frontend.tracing.operands import is_tracing
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.runtime.executable import CallForm, chain


class Pullbacks:
    """forms: of calls of pullbacks, over any residuals."""

    def __init__(self, program: TracedProgram, runners: Runners) -> None:
        self.program = program
        self.runners = runners
        self.forms: list[CallForm] = []
        self._run_half: Callable[..., Any]
        self._half_calls = Calls("vjp", self._slow_half, functools.partial(setattr, self, "_run_half"))

    def vjp(self, *args: Any) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
        """(value, pullback)."""
        results = self._run_half(*args)
        traced = self.program.traced
        count = len(traced.outputs)
        return tree.unflatten(traced.output_tree, results[:count]), self._pullback(results[count:])

    def _slow_half(self, *args: Any) -> Any:
        """The forward half: output leaves, then residuals."""
        bound, program = self.runners.forward_half().bound, self.program
        leaves = program.leaves_of(args)
        results = bound.call(leaves)
        kinds, trees, reads = argument_kinds(leaves), argument_trees(program.arguments, len(args), ()), program.operands.reads
        if kinds is not None and trees is not None and not any(read.is_followed for read in reads):
            signature = bound.signature(trees, kinds, flat_tree(len(results)))
            self._half_calls.add(bound.form(signature, program.arguments.static_values, reads))
        return results

    def _pullback(self, residuals: Sequence[Any]) -> Callable[..., tuple[Any, ...]]:
        arrays = tuple([np.asarray(residual) for residual in residuals])

        @shows_users_frames
        def slow(*seed: Any, **given: Any) -> Any:
            if len(seed) > 1 or (seed and "grad_outputs" in given):
                raise TypeError("the pullback takes one seed")
            return self._pull(arrays, {"grad_outputs": seed[0], **given} if seed else given, positional=bool(seed))

        if not self.forms:
            for seeds in usual_seeds(self.program.result_tree, self.program.traced.outputs):
                self._pull(arrays, {"grad_outputs": seeds}, positional=True)
        return chain([form.over((*arrays, *form.captured[len(arrays):])) for form in self.forms], slow, "pullback")

    def _pull(self, residuals: tuple[Any, ...], given: dict[str, Any], positional: bool) -> Any:
        program, call = self.program, BackwardCall.of(given, "the pullback")
        if call.wrt is not None:
            raise SignatureError("the pullback differentiates what the program was compiled for; wrt= goes with backward")
        default, traced = program.default_request(), program.traced
        if is_tracing(call.grad_outputs):
            return pull_in_trace(traced, program.halves(), default.wrt, program.argument_trees, residuals, call)
        outputs = traced.outputs
        seeds = filled(outputs, seeds_of(outputs, program.result_tree, call.grad_outputs, "seed" if positional else "grad_outputs"))
        buffers = match_buffers(call.into, traced, program.argument_trees, default.wrt)
        check_scale(call.scale, buffers)
        request = default._replace(into=tuple(buffers), scaled=call.scale is not None)
        runner = self.runners.adjoint_half(request, residuals)
        bound = runner.bound.over((*residuals, *runner.bound.captured[len(residuals):]))
        result = self.runners.run_backward(bound, request, seeds, call, buffers)
        signature = backward_signature(bound, request, (), [], given, program.argument_trees, program.result_tree, positional)
        form = None if signature is None else bound.form(signature)
        if form is not None:
            self.forms = [form, *self.forms][:FORMS]
        return result
