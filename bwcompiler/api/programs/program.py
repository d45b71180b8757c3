"""`compile`: the backward program itself, as Chainer, PyTorch and Torch7 users know it.

A `Program` is traced once.  Each kind of request (which arguments, which outputs are seeded, accumulate or not) builds its
own joint graph once, so `backward(wrt=(0,))` computes only what it needs, and `into=` adds inside the gradient kernels.
Calls of a form that was seen before go straight to native code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bwcompiler import inspect, tree
from bwcompiler.api.programs.arguments.assignments import check_mutates, check_written
from bwcompiler.api.programs.arguments.forms import argument_kinds, argument_trees, signature_tree
from bwcompiler.api.programs.arguments.shared_arguments import ProgramsOver, SharedArguments
from bwcompiler.api.programs.backward.buffers import check_scale, match_buffers
from bwcompiler.api.programs.backward.forms import BackwardCall, backward_signature
from bwcompiler.api.programs.backward.requests import Request, stand_ins
from bwcompiler.api.programs.backward.seeds import seeds_of
from bwcompiler.api.programs.native_calls import Calls
from bwcompiler.api.programs.pullbacks import Pullbacks
from bwcompiler.api.programs.runners import Runners
from bwcompiler.api.programs.traced_program import TracedProgram
from bwcompiler.compiler.lowered import Lowered
from bwcompiler.compiler.pipeline import lower
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, require_arguments, take_apart
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.trace import TraceOptions
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.late_base import with_networkx
from bwcompiler.ir.op import Value
from bwcompiler.ir.texts.graph_printer import names_in_text
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.runtime.executable import CompiledFunction
from bwcompiler.spellings import missing_attribute, says_instead


def require_stage(stage: Any) -> None:
    """Raise TypeError if the stage is not a string, as when arguments of the function were passed first."""
    if not isinstance(stage, str):
        raise TypeError(f"as_text: the stage comes first, a text such as 'adjoint'; got a {type(stage).__name__}")


class Program(TracedProgram, CompiledFunction[..., Any]):
    """A compiled function with its backward program.  Made by `bw.compile`.

    Arguments must have the tree, shapes and dtypes that the program was compiled for; SignatureError is raised for others.

    >>> import numpy as np, bwcompiler as bw
    >>> program = bw.compile(lambda x: np.sum(x * x), np.zeros(2))
    >>> x = np.array([1.0, 2.0])
    >>> program(x).item(), program.backward(x)[0].tolist()
    (5.0, [2.0, 4.0])
    >>> [value.op.name for value in program.graph.body]
    ['multiply', 'sum']
    >>> program.memory_analysis()["output_bytes"], sorted(program.cost_analysis())
    (24, ['bytes', 'flops', 'kernels', 'steps'])
    """

    def __init__(self, fun: Callable[..., Any], arguments: Arguments, wrt: Sequence[int] | int | None = None, mutates: Any = True,
                 memory_limit: int | None = None, tracing: TraceOptions | None = None) -> None:
        super().__init__(fun, arguments, wrt, mutates, memory_limit, tracing)
        self.runners = Runners(self)
        self._pullbacks = Pullbacks(self, self.runners)
        self._lowered: Lowered | None = None
        self._shared: SharedArguments | None = None
        self._calls = Calls(self.__name__, self._slow_call, self._install)
        self._backward_calls = {value: self._method(name, value)
                                for value, name in ((False, "backward"), (True, "value_and_backward"))}

    def _method(self, name: str, value: bool) -> Calls:
        """Install a method on this instance; it hides the documented one of the class."""
        return Calls(name, functools.partial(self._slow_backward, value), functools.partial(setattr, self, name))

    # ----- running
    def __call__(self, *args: Any) -> Any:
        """The function's value; arguments that the function assigns to are written back (`mutates`)."""
        return self._slow_call(*args)

    def backward(self, *args: Any, grad_outputs: Any = None, wrt: Sequence[int] | int | None = None, into: Any = None,
                 scale: float | None = None) -> tuple[Any, ...]:
        """One gradient per argument, None for those not in wrt; `into` buffers get `+= scale * gradient` and are returned.

        grad_outputs   the seed of every output (None: zero); may be left out for one scalar output.
        wrt            positions of the arguments to differentiate, instead of those given to `compile`; only these are computed.
        into           one buffer (or None) per argument, of its tree, shape and dtype.
        Raises SeedError for a seed of wrong shape, dtype or structure, SignatureError for arguments or buffers that do not fit,
        GradientError for integer arguments in wrt, ValueError for a read-only buffer.

        >>> import numpy as np, bwcompiler as bw
        >>> program, x, buffer = bw.compile(lambda x: x * x, np.zeros(2)), np.array([1.0, 2.0]), np.ones(2)
        >>> program.backward(x, grad_outputs=np.array([1.0, 10.0]))[0].tolist()
        [2.0, 40.0]
        >>> program.backward(x, grad_outputs=np.ones(2), into=(buffer,), scale=0.5)[0] is buffer, buffer.tolist()
        (True, [2.0, 3.0])
        """
        given = {"grad_outputs": grad_outputs, "wrt": wrt, "into": into, "scale": scale}
        return self._slow_backward(False, *args, **given)  # type: ignore[no-any-return]

    def value_and_backward(self, *args: Any, grad_outputs: Any = None, wrt: Sequence[int] | int | None = None, into: Any = None,
                           scale: float | None = None) -> tuple[Any, tuple[Any, ...]]:
        """(value, gradients) in one native call; arguments and errors as for `backward`.

        >>> import numpy as np, bwcompiler as bw
        >>> value, (gradient,) = bw.compile(lambda x: np.sum(x * x), np.zeros(2)).value_and_backward(np.array([1.0, 2.0]))
        >>> value.item(), gradient.tolist()
        (5.0, [2.0, 4.0])
        """
        given = {"grad_outputs": grad_outputs, "wrt": wrt, "into": into, "scale": scale}
        return self._slow_backward(True, *args, **given)  # type: ignore[no-any-return]

    @shows_users_frames
    def vjp(self, *args: Any) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
        """(value, pullback): the pullback runs the adjoint program from saved residuals, as often as it is called.

        The pullback takes grad_outputs, into= and scale= as `backward` does.

        >>> import numpy as np, bwcompiler as bw
        >>> value, pullback = bw.compile(lambda x: x * x, np.zeros(2)).vjp(np.array([1.0, 2.0]))
        >>> pullback(np.array([1.0, 0.0]))[0].tolist(), pullback(np.array([0.0, 1.0]))[0].tolist()
        ([2.0, 0.0], [0.0, 4.0])
        """
        return self._pullbacks.vjp(*args)

    # ----- inspection
    @property
    def graph(self) -> Graph:
        """The forward graph: a networkx DiGraph whose nodes are values (`op`, `operands`, `attrs`, `type`, `source`).

        >>> import numpy as np, bwcompiler as bw
        >>> program = bw.compile(lambda x: np.sum(x * x), np.ones(2))
        >>> print(program.graph.name, [value.op.name for value in program.graph.body])
        <lambda> ['multiply', 'sum']
        """
        return with_networkx(self.traced.graph)  # type: ignore[no-any-return]

    @property
    def adjoint(self) -> Graph:
        """The adjoint graph: residuals and seeds -> cotangents of the differentiable arguments.  Raises CompileError for a memory_limit
        that cannot be kept.

        >>> import numpy as np, bwcompiler as bw
        >>> program = bw.compile(lambda x: np.sum(x * x), np.ones(2))
        >>> print([value.name for value in program.adjoint.inputs], [value.op.name for value in program.adjoint.body])
        ['x', 'sum.ct'] ['broadcast', 'multiply', 'full', 'multiply']
        """
        return with_networkx(self.halves().partition.adjoint)  # type: ignore[no-any-return]

    def lowered(self) -> Lowered:
        """Every stage of the default backward program, with the lines of this program's function."""
        if self._lowered is None:
            runner = self.runners.default()
            shared = runner.compiled.lowered
            own = runner.made.graph
            self._lowered = shared if shared.graph is own else lower(own, shared.into, shared.target)
        return self._lowered

    def forward_names(self) -> dict[Value, str]:
        """Names of the values in the text of `graph`, and for the values of the adjoint graph that stand for these."""
        names = names_in_text(self.graph)
        found = self.halves()
        names |= {value: names[traced] for value, traced in found.joint.origins.items()}
        return names | {copy: names[value] for copy, value in found.partition.stands_for.items() if value in names}

    def lowered_names(self) -> dict[Value, str]:
        """Names for the values of `lowered().simplified`: those that come from `graph` keep the names of its text."""
        names = names_in_text(self.graph)
        names |= {value: names[traced] for value, traced in self.runners.default().made.origins.items()}
        return names_in_text(self.lowered().simplified, names)

    def as_text(self, stage: str = "adjoint", format: str = "text") -> str:
        """The program at one stage: source, forward, adjoint, simplified, fused, plan, loops, llvm, llvm-opt, asm or object.

        format  text; json, dot or svg for graphs; html for all stages on one page; py for a NumPy module that computes the
                same (`as_text(format="py")`, or just `as_text("py")`).

        Raises UnsupportedError for a stage or format that does not exist, or that do not go together.

        >>> import numpy as np, bwcompiler as bw
        >>> bw.compile(np.sin, 0.5).as_text("forward").splitlines()[0]
        'graph sin(%x: f64[]) -> f64[] {'
        """
        require_stage(stage)
        return inspect.render(self, "adjoint", stage) if stage in inspect.FORMATS else inspect.render(self, stage, format)

    def dump(self, path: str | Path) -> list[Path]:
        """Write all stages on one page (`loss.html`), the module (`loss.py`), the adjoint graph (`.txt`, `.json`, `.dot`, `.svg`)
        or the object file (`.o`), as the suffix says; without suffix, a folder with a text per stage and the page.

        Returns the files that were written.  Raises UnsupportedError for another suffix."""
        return inspect.write(self, Path(path))

    def explain(self) -> str:
        """A description in words: which Python loops are unrolled, and why; what is compiled in; why gradients are None or zero; what is
        saved and what is recomputed; what runs in which loop, and why not in another; which updates are in place, what is copied, and
        which library functions and callbacks are called.

        >>> import numpy as np, bwcompiler as bw
        >>> print(bw.compile(lambda x, n: x * n, 0.5, 3).explain().splitlines()[1])
        gradient of n is None: its dtype is int64
        """
        return inspect.explain_program(self)

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs, arena (temporaries) and residuals, exact before running.

        >>> import numpy as np, bwcompiler as bw
        >>> program = bw.compile(lambda x: np.sum(x * x), np.ones(2))
        >>> program.memory_analysis()
        {'argument_bytes': 24, 'output_bytes': 24, 'temporary_bytes': 0, 'residual_bytes': 24}
        """
        return inspect.memory_of(self)

    def cost_analysis(self) -> dict[str, float]:
        """Arithmetic operations and bytes of one value_and_backward call, and how many steps and kernels it has.

        >>> import numpy as np, bwcompiler as bw
        >>> program = bw.compile(lambda x: np.sum(x * x), np.ones(2))
        >>> program.cost_analysis()
        {'flops': 8.0, 'bytes': 48.0, 'kernels': 1.0, 'steps': 1.0}
        """
        return inspect.cost_of(self)

    def __repr__(self) -> str:
        names = self.traced.input_names
        types = [f"{name}: {argument}" for name, argument in zip(names, self.traced.argument_types, strict=True)]
        return f"<compiled {self.__name__}({', '.join(types)})>"

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute(self, name)

    def __dir__(self) -> list[str]:
        return ["adjoint", "as_text", "backward", "cost_analysis", "dump", "explain", "graph", "memory_analysis",
                "value_and_backward", "vjp"]

    def __reduce__(self) -> Any:
        return _compiled_again, (self.fun, stand_ins(self.arguments, self.traced.argument_types), *self.options)

    # ----- calls
    @shows_users_frames
    def _slow_call(self, *args: Any, **named: Any) -> Any:
        leaves = self.leaves_of(args, named)
        bound = self.runners.forward().bound
        groups = check_written(self.traced, leaves, bound.captured, self.into)
        if groups:
            return self._overlapping()(self.traced, self.arguments, leaves, groups)
        kinds, trees, result = argument_kinds(leaves), argument_trees(self.arguments, len(args), ()), signature_tree(self.result_tree)
        if kinds is not None and trees is not None and result is not None:
            self._calls.add(bound.form(bound.signature(trees, kinds, result), self.arguments.static_values))
        return tree.unflatten(self.traced.output_tree, bound.call(leaves))

    def _overlapping(self) -> SharedArguments:
        """The programs for arguments that share memory, if the function assigns to one of them."""
        if self._shared is None:
            _, mutates, _, autoloop = self.options
            self._shared = SharedArguments(self.fun, mutates, autoloop, self._compile_over)
        return self._shared

    def _compile_over(self, fun: Callable[..., Any], back: Sequence[int]) -> ProgramsOver:
        return ProgramsOver(lambda *args: Program(fun, take_apart(fun, args), (), back))

    @shows_users_frames
    def _slow_backward(self, value: bool, /, *args: Any, **given: Any) -> Any:
        call = BackwardCall.of(given, "value_and_backward" if value else "backward")
        leaves = self.leaves_of(args)
        seeds = seeds_of(self.traced.outputs, self.result_tree, call.grad_outputs)
        chosen = self.default_wrt if call.wrt is None else self.wrt_leaves(call.wrt)
        buffers = match_buffers(call.into, self.traced, self.argument_trees, chosen)
        check_scale(call.scale, buffers)
        request = Request(chosen, tuple([kind for kind, _ in seeds]), value, tuple(buffers), call.scale is not None)
        bound = self.runners.joint(request).bound
        arrays = [array for kind, array in seeds if kind == INPUT_SEED]
        result = self.runners.run_backward(bound, request, [*leaves, *arrays], call, buffers)
        trees = argument_trees(self.arguments, len(args), ())
        if trees is not None:
            signature = backward_signature(bound, request, trees, leaves, given, self.argument_trees, self.result_tree)
            if signature is not None:
                statics = self.arguments.static_values
                self._backward_calls[value].add(bound.form(signature, (*statics, *call.wrt_numbers())))
        return result


def _compiled_again(fun: Callable[..., Any], args: Sequence[Any], wrt: Any, mutates: Any, memory_limit: int | None,
                    autoloop: bool) -> Program:
    return Program(fun, take_apart(fun, args), wrt, mutates, memory_limit, TraceOptions(autoloop=autoloop))


@shows_users_frames
@says_instead
def compile(fun: Callable[..., Any], *example_args: Any, wrt: Sequence[int] | int | None = None, mutates: Any = True,
            memory_limit: int | None = None, autoloop: bool = True) -> Program:
    """Compile fun and its backward program for arguments like example_args (arrays, or anything with shape and dtype).

    wrt      positions of the arguments that need gradients; None: every argument of floating-point dtype.
    mutates  as for `jit`: whether a call of the program writes back to arguments that fun assigns to; derivatives never do.
    memory_limit  bytes that `vjp` may save for its pullback besides the arguments; the rest is recomputed.
    autoloop as for `jit`: False traces fun as it runs, all its loops unrolled.

    Raises GradientError for a position that does not exist or an argument of integer dtype, CompileError (from `vjp`) for a
    memory_limit that is too small, and whatever tracing fun raises (see `jit`).

    >>> import numpy as np, bwcompiler as bw
    >>> prog = bw.compile(lambda x, a: x @ a, np.ones((2, 3)), np.ones((3, 4)), wrt=(0,))
    >>> seed = np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]])
    >>> prog.backward(np.ones((2, 3)), np.ones((3, 4)), grad_outputs=seed)[0].tolist()
    [[10.0, 10.0, 10.0], [26.0, 26.0, 26.0]]
    """
    name = getattr(fun, "__name__", "fun")
    require_arguments(fun, example_args, "compile", f"bw.compile({name}, ", f"; or bw.jit({name}), which compiles when it is called")
    check_mutates("compile", fun, mutates)
    return Program(fun, take_apart(fun, example_args), wrt, mutates, memory_limit, TraceOptions(autoloop=autoloop))
