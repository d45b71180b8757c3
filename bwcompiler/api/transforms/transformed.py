"""The common part of all transforms: `Transformed` functions, tracing of calls, and trees of derivatives.

Every transform is a function of handles: it traces `fun` in a region of its own, transforms the graph, and inlines the result into
the calling region.  Called with concrete arrays, it is compiled as a whole by `jit`.  So transforms nest to any depth, and `jit`
of a transform costs nothing extra.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops, tree
from bwcompiler.api.programs.arguments.assignments import refuse_overlaps
from bwcompiler.api.programs.backward.requests import argument_positions, check_differentiable, check_has_arrays
from bwcompiler.api.programs.functions import JitFunction, P, R
from bwcompiler.api.programs.kept import made_of
from bwcompiler.api.programs.program import Program
from bwcompiler.api.transforms.options import Options, TransformOptions
from bwcompiler.compiler.options import may_assume
from bwcompiler.errors import GradientError, at
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, check_statics, require_function, take_apart
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.trace import TraceOptions, trace
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.graph import inline
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import F64

Argnums = int | Sequence[int]


class Transformed(JitFunction[P, R]):
    """A transform of a function: compiled when called with arrays, inlined when called inside another trace.

    made_by   the transform, its arguments and options, to recreate it from a pickle.
    backward  `lower`, `as_text` and `explain` show the backward program of the differentiated function.
    """

    def __init__(self, traced: Callable[..., Any], options: Options, made_by: tuple[Callable[..., Any], tuple[Any, ...]],
                 backward: bool = False) -> None:
        super().__init__(traced, options.static_argnums, options.static_argnames, autoloop=options.autoloop)
        self.made_by = (*made_by, options)
        self._backward = backward

    def _remake(self) -> tuple[Any, ...]:
        transform, args, options = self.made_by
        return transform, args, options.given()

    def call_overlapping(self, traced: TraceResult, arguments: Arguments, groups: Sequence[Sequence[int]]) -> Any:
        refuse_overlaps(traced, groups)

    def _shown(self, arguments: Arguments) -> Program:
        if not self._backward:
            return super()._shown(arguments)
        _, (fun, argnums, *_), _ = self.made_by
        try:
            options = TraceOptions(autoloop=self.autoloop, windows=self.windows, assumes=may_assume())
            return Program(fun, arguments, argnums, tracing=options)
        except GradientError:                      # of a float that decides a size, which is an operand of the derivative alone
            return super()._shown(arguments)


def without_names(traced: Callable[..., R]) -> Callable[..., R]:
    """Give the function the signature (*args, **kwargs), so that the parameters of the wrapped function are not taken for its own."""
    vars(traced)["__signature__"] = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                                                       inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])
    return traced


def check_function(fun: Callable[..., Any], name: str, argnums: Argnums) -> None:
    """Raise TypeError for `grad(f(x))` and `grad(f, x)`, which should be `grad(f)(x)`."""
    require_function(fun, name)
    if getattr(argnums, "ndim", 0):
        raise GradientError(f"{name}: argnums= is an array; it says which arguments are differentiated, by their positions\n"
                            f"  hint: bw.{name}(f)(x), not bw.{name}(f, x)")


def transformed(fun: Callable[P, Any], traced: Callable[..., R], name: str, options: Options, transform: Callable[..., Any],
                *args: Any, backward: bool = False, argnums: Argnums = 0) -> Transformed[P, R]:
    """The object that `transform(fun, *args)` returns; `traced` is its implementation, a function of handles.

    argnums   the positions that are differentiated; negative ones count from the last positional argument of a call.
    """
    check_function(fun, name, argnums)
    check_statics(name, fun, options.static_argnums, options.static_argnames)
    functools.update_wrapper(traced, fun, updated=())
    traced.__name__ = f"{getattr(fun, '__name__', 'function')}.{name}"
    traced.__qualname__ = f"{getattr(fun, '__qualname__', 'function')}.{name}"
    from_the_end = count_from_the_end(argnums)
    own = options.by_position(fun) if from_the_end else options
    made: Transformed[P, R] = Transformed(without_names(traced) if from_the_end else traced, own, (transform, (fun, *args)), backward)
    made.made_by = (transform, (fun, *args), options)
    return made


def count_from_the_end(argnums: Argnums) -> bool:
    """Whether there are negative positions."""
    return any(isinstance(k, int) and k < 0 for k in (argnums if isinstance(argnums, Iterable) else (argnums,)))


# ----- transforms that take the function and the arguments in one call (`jvp`, `vjp`)
def with_options(transform: str, fun: Callable[..., Any], primals: Sequence[Any],
                 given: TransformOptions) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function and its positional arguments that carry the options to wherever the function is traced."""
    options = Options.of(transform, given)
    primals = options.declare(fun, primals)
    if options.autoloop:
        return fun, primals
    return made_of(fun, "autoloop=False", lambda: JitFunction(fun, autoloop=False)), primals


# ----- arguments
def operand_values(leaves: Sequence[Any]) -> list[Value]:
    """Leaves of a call inside a trace as values of the current region."""
    return [value_of(leaf) if isinstance(leaf, Tracer) else value_as(leaf) for leaf in leaves]


def normalise_argnums(argnums: Argnums, count: int) -> tuple[int, ...]:
    """argnums as non-negative positions."""
    return argument_positions(argnums, count, "argnums")


def as_floats(args: Sequence[Any], argnums: Sequence[int]) -> list[Any]:
    """Python ints among the differentiated arguments become floats."""
    def convert(leaf: Any) -> Any:
        if type(leaf) is int:
            return float(leaf)
        if isinstance(leaf, Tracer) and leaf._kind is int:
            return fresh(ops.cast(value_of(leaf), dtype=F64), float)
        return leaf
    return [tree.map(convert, arg) if k in argnums else arg for k, arg in enumerate(args)]


def capture(array: Any) -> Value:
    """An array captured by a derivative rule, as a value of the current region."""
    return open_region().capture(array)


class TracedCall(NamedTuple):
    """A call whose arguments `argnums` are differentiated.  wrt: the numbers of their leaves."""

    argnums: Argnums
    result: TraceResult
    wrt: list[int]

    @property
    def leaves(self) -> list[Any]:
        return self.result.arguments.dynamic_leaves

    def inputs(self, *seeds: Value) -> list[Value]:
        """The values, in the current region, of the inputs of the traced graph, with seeds or tangents before the captured arrays."""
        lifted = [value_of(handle) for handle in self.result.lifted]
        return [*operand_values(self.leaves), *lifted, *seeds, *map(capture, self.result.captured)]

    def per_argument(self, derivatives: Sequence[Value]) -> Any:
        """One derivative per leaf in `wrt`, in the trees of the arguments; a tuple of these if argnums is one.

        Leaves that are compile-time values have None.
        """
        arguments = self.result.arguments
        found: dict[int, Any] = {arguments.dynamic[leaf]: fresh(value) for leaf, value in zip(self.wrt, derivatives, strict=True)}
        args, _ = tree.unflatten(arguments.treedef, [found.get(position) for position in range(len(arguments.leaves))])
        chosen = [args[number] for number in normalise_argnums(self.argnums, len(args))]
        return chosen[0] if isinstance(self.argnums, int) else tuple(chosen)

    def leaf_numbers(self) -> tuple[Any, ...]:
        """The positional arguments with leaf numbers in place of leaves; None for compile-time values."""
        arguments = self.result.arguments
        number = {position: k for k, position in enumerate(arguments.dynamic)}
        args, _ = tree.unflatten(arguments.treedef, [number.get(position) for position in range(len(arguments.leaves))])
        return args  # type: ignore[no-any-return]


def traced_call(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], argnums: Argnums,
                options: Options) -> TracedCall:
    """Trace a call of fun whose arguments `argnums` are differentiated; GradientError if they have no derivative."""
    named = take_apart(fun, args, kwargs)          # arguments passed by name become positional if they can
    numbers = normalise_argnums(argnums, len(args if count_from_the_end(argnums) else named.args))
    argnums = numbers[0] if isinstance(argnums, int) else numbers
    result = trace(fun, as_floats(named.args, numbers), named.kwargs, **options.statics)
    check_has_arrays(result.arguments, numbers)
    wrt = [leaf for number in numbers for leaf in result.arguments.positions_of(number)]
    check_differentiable(result, wrt)
    return TracedCall(argnums, result, wrt)


# ----- results
class Outputs(NamedTuple):
    """The differentiated output leaves, and those of the auxiliary result.

    treedef  of the differentiated part; numbers: its leaves among the outputs.
    """

    treedef: tree.TreeDef
    numbers: list[int]
    aux_treedef: tree.TreeDef | None = None
    aux_numbers: Sequence[int] = ()

    def aux(self, values: Sequence[Value]) -> Any:
        """The auxiliary result from the values of all outputs."""
        assert self.aux_treedef is not None
        return tree.unflatten(self.aux_treedef, [fresh(values[k]) for k in self.aux_numbers])

    def primal(self, values: Sequence[Value]) -> Any:
        """The differentiated result from the values of all outputs."""
        return tree.unflatten(self.treedef, [fresh(values[k]) for k in self.numbers])


def outputs_of(result: TraceResult, has_aux: bool) -> Outputs:
    """The outputs of a traced function, which returns (value, aux) with has_aux."""
    if not has_aux:
        return Outputs(result.output_tree, list(range(len(result.outputs))))
    whole = tree.unflatten(result.output_tree, range(len(result.outputs)))
    if not (isinstance(whole, tuple) and len(whole) == 2):
        source = next((output.source for output in result.outputs if output.source is not None), None)
        found = f"a tuple of {len(whole)}" if isinstance(whole, tuple) else f"a {type(whole).__name__}" if len(
            result.outputs) != 1 or isinstance(whole, list | dict) else "one value"
        raise GradientError(at(source, f"has_aux=True: the function must return a pair (value, aux), it returned {found}\n"
                               "  hint: return (value, rest), or leave out has_aux"))
    numbers, treedef = tree.flatten(whole[0])
    aux_numbers, aux_treedef = tree.flatten(whole[1])
    return Outputs(treedef, numbers, aux_treedef, aux_numbers)


def inline_call(call: TracedCall) -> list[Value]:
    """The values of all outputs of the function itself, in the current region."""
    return inline(call.result.graph, call.inputs())
