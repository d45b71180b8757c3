"""`Specialisation`: a function compiled for one kind of arguments, and the forms in which it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from bwcompiler import tree
from bwcompiler.api.programs.arguments.assignments import check_written, forward_graph
from bwcompiler.api.programs.arguments.assumptions import Assumptions
from bwcompiler.api.programs.arguments.forms import argument_kinds, argument_trees, signature_tree
from bwcompiler.api.programs.arguments.specialisation_keys import static_key
from bwcompiler.api.programs.bound_graph import BoundGraph
from bwcompiler.api.programs.executables import compile_graph
from bwcompiler.api.programs.variants import Retrace
from bwcompiler.collector import collector_paused
from bwcompiler.compiler.options import may_assume
from bwcompiler.errors import CompileError
from bwcompiler.frontend.tracing.boundary.arguments import Arguments
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.trace import TraceOptions, trace_arguments
from bwcompiler.runtime.executable import CallForm, chain
from bwcompiler.turns import short_turns


class Owner(Protocol):
    """What a specialisation needs of its function (`JitFunction`).

    windows           whether slices with data-dependent starts are taken to fit; `cut_slices`: from now on, they are not.
    specialised       the specialisation for other arguments, or for values outside that have changed.
    add_form          from now on, the native entry takes calls of this form.
    call_overlapping  the result for arguments that share memory, one of which is assigned to.
    """

    __name__: str
    fun: Callable[..., Any]
    mutates: Any
    autoloop: bool
    windows: bool

    def cut_slices(self) -> None: ...
    def specialised(self, arguments: Arguments) -> Specialisation: ...
    def add_form(self, form: CallForm) -> None: ...
    def call_overlapping(self, traced: TraceResult, arguments: Arguments, groups: Sequence[Sequence[int]]) -> Any: ...


class Specialisation:
    """One compilation: the traced program, its executable, and the forms in which it is called.

    into         per result: the argument leaf that it is written to (the function assigns to this argument), or None.
    assumptions  the calls for which it holds; reads: what each call reads from outside, `operands` among it.
    may_be_cut   an IndexError may mean that a slice goes beyond the end of its axis, where NumPy shortens it, or that eigenvalues are
                 not real; then the function is compiled again (`TraceResult.may_be_cut`).
    assumed      numbers that the program finds again, or is interrupted; then the function is compiled again, too.
    """

    def __init__(self, owner: Owner, arguments: Arguments, retrace: Retrace) -> None:
        self.owner = owner
        options = TraceOptions(autoloop=owner.autoloop, any_results=True, windows=owner.windows, floats=True, assumes=may_assume(),
                               varying=retrace.varying, rebound=retrace.rebound)
        with short_turns(), collector_paused():    # paused for all stages: their objects stay alive, so walking them is wasted time
            try:
                self._compile(arguments, options)
            except CompileError as error:
                if not self.traced.may_unroll:
                    raise
                self._compile(arguments, replace(options, unrolled=True))      # a loop whose body has no native code
                self.traced.unrolled_for = str(error)

    def _compile(self, arguments: Arguments, options: TraceOptions) -> None:
        owner = self.owner
        self.traced = traced = trace_arguments(owner.fun, arguments, options)
        self.may_be_cut = options.windows and traced.may_be_cut and not traced.mutated
        self.assumed = traced.assumed
        graph, self.into = forward_graph(traced, owner.mutates)
        self.assumptions = Assumptions(traced, arguments)
        self.operands = self.assumptions.operands
        self.bound = BoundGraph(compile_graph(graph, self.into, owner.__name__), traced.captured, self.assumptions.layouts,
                                sorted(traced.written), traced.result_kinds)
        self.result_tree = signature_tree(tree.unflatten(traced.output_tree, range(len(traced.outputs))))
        traced.arguments = arguments.without_leaves()
        self.forms: dict[Any, CallForm | None] = {}
        self.reads = self.assumptions.reads
        self.is_followed = any(read.is_followed for read in self.reads)

    # ----- calls
    def call(self, arguments: Arguments, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The result for arguments that fit the assumptions."""
        form = self._form(arguments, args, kwargs)
        if form is None:                           # containers that the native entry does not know, or arguments to convert
            return self.run(arguments)
        return chain([form], lambda *_args, **_kwargs: self.run(arguments))(*args, **kwargs)

    def _form(self, arguments: Arguments, args: Sequence[Any], kwargs: dict[str, Any]) -> CallForm | None:
        """The form of a call like this one; None if the native entry cannot take it."""
        kinds = argument_kinds(arguments.dynamic_leaves)
        trees = argument_trees(arguments, len(args), tuple(kwargs))
        if kinds is None or trees is None or self.result_tree is None or self.is_followed or self.assumed:
            return None                            # where numbers are assumed, `JitFunction` sees to it that another program runs
        statics = arguments.static_values
        key = (trees, tuple(kwargs), kinds, tuple(map(static_key, statics)))
        if key not in self.forms:
            signature = self.bound.signature(trees, (*kinds, *self.operands.kinds), self.result_tree, tuple(kwargs))
            form = self.forms[key] = self.bound.form(signature, statics, self.reads, self._raise_unless_cut if self.may_be_cut else None)
            if form is not None:
                self.owner.add_form(form)
        return self.forms[key]

    def _raise_unless_cut(self, code: int, record: bytes) -> None:
        """Raise the error of a status code, except an IndexError, which may come from a slice that NumPy would shorten."""
        try:
            self.bound.compiled.raise_error(code, record)
        except IndexError:
            self.owner.cut_slices()

    def run(self, arguments: Arguments) -> Any:
        """Likewise, without the native entry."""
        leaves, operands = arguments.dynamic_leaves, self.operands.now()
        if operands is None:                       # something outside was rebound to another kind of value since
            return self.owner.specialised(arguments).run(arguments)
        groups = check_written(self.traced, leaves, [*self.bound.captured, *operands], self.into)
        if groups:
            return self.owner.call_overlapping(self.traced, arguments, groups)
        return tree.unflatten(self.traced.output_tree, self.bound.call([*leaves, *operands]))
