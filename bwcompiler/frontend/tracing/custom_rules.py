"""Functions with the user's own derivative: `custom_vjp` (a pair fwd, bwd for cotangents) and `custom_jvp` (a rule for tangents).

A call is one value, a `custom_call`.  Its rule (`VjpRule`, `JvpRule`) traces the user's functions when a derivative is taken.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from bwcompiler import ops, tree
from bwcompiler.errors import EscapedTracerError, GradientError, SignatureError, UnsupportedError, at
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, ArgumentType, StaticArgument, declared, parameter_names
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.storages.memory_order import unknown
from bwcompiler.frontend.tracing.storages.region import active_region, open_region
from bwcompiler.frontend.tracing.trace import call_user, trace
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.graph import Graph, inline
from bwcompiler.ir.op import Record, Value, constant
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.calls.custom import custom_call
from bwcompiler.spellings import says_instead

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class CustomFunction(Generic[P, R]):
    """A function with a rule of its own.

    nondiff   positions of the arguments that are compile-time values: functions, options.  Rules get them first.
    compiled  runs calls outside of any trace.
    """

    kind = "custom function"

    def __init__(self, fun: Callable[P, R], nondiff_argnums: int | Iterable[int] = (),
                 nondiff_argnames: str | Iterable[str] = ()) -> None:
        self.fun: Callable[..., Any] = fun
        functools.update_wrapper(self, fun)
        names = parameter_names(fun)
        chosen = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        for name in chosen:
            if name not in names:
                raise SignatureError(f"{self.kind}: nondiff_argnames has {name!r}, but {self.__name__} takes {', '.join(names)}")
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        self.nondiff = frozenset([k if k >= 0 else k + len(names) for k in numbers] + [names.index(name) for name in chosen])
        self.compiled: Callable[..., Any] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._applied(self._positional(args, kwargs))  # type: ignore[no-any-return]

    def _applied(self, args: tuple[Any, ...]) -> Any:
        if active_region() is None:
            return self.fun(*args) if self.compiled is None else self.compiled(*args)
        result = trace(self._traced_function(), [self._declared(k, arg) for k, arg in enumerate(args)])
        if result.mutated or result.assigned:
            raise UnsupportedError(f"{self.__name__}: a function with a custom rule must not assign to its arguments")
        return tree.unflatten(result.output_tree, call(self._outputs, result))

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position: rules get them so."""
        if not kwargs:
            return args
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise SignatureError(f"{self.__name__} is a {self.kind}: {', '.join(bound.kwargs)} can be passed by keyword only, but rules "
                                 "get their arguments by position")
        return bound.args

    def _declared(self, number: int, argument: Any) -> Any:
        if number not in self.nondiff:
            return argument
        return declared(argument, f"{self.__name__}: argument {number} is named in nondiff_argnums",
                        "nondiff_argnums; a rule may return None (zero) for them")

    def _outputs(self, result: TraceResult) -> list[Tracer]:
        values = [value_of(leaf) if isinstance(leaf, Tracer) else value_as(leaf) for leaf in result.arguments.dynamic_leaves]
        made = custom_call(*values, *result.hidden_operands(), body=result.graph, rule=self._rule(result, len(values)))
        return [fresh(ops.item(made, index=k)) for k in range(len(result.graph.outputs))]

    def _traced_function(self) -> Callable[..., Any]:
        return self.fun

    def _rule(self, primal: TraceResult, primals: int) -> Rule:
        raise NotImplementedError

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self: CustomFunction[Concatenate[Any, Q], R], instance: object, owner: type | None = None) -> Callable[Q, R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method: Callable[..., Any] = self
        return self if instance is None else functools.partial(method, instance)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.__name__}>"

    __name__: str = "function"


class CustomVjp(CustomFunction[P, R]):
    """A function whose derivative is the user's own pair (fwd, bwd).

    fwd(*args) -> (out, residuals) runs in the place of the function where it is differentiated; bwd(residuals, ct) returns
    one cotangent per argument (None: zero), each with the tree and shapes of its argument.  Arguments named in nondiff_argnums
    (or nondiff_argnames) are compile-time values, without cotangent: bwd(*nondiff, residuals, ct).  Functions are traced, each
    when first needed.

    >>> import numpy as np, bwcompiler as bw
    >>> @bw.custom_vjp
    ... def clipped(x):
    ...     return np.clip(x, -1.0, 1.0)
    >>> clipped.defvjp(lambda x: (clipped(x), None), lambda residuals, ct: (ct,))
    >>> float(bw.grad(clipped)(3.0))
    1.0
    """

    kind = "custom_vjp"

    def __init__(self, fun: Callable[P, R], nondiff_argnums: int | Iterable[int] = (),
                 nondiff_argnames: str | Iterable[str] = ()) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    @says_instead
    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Register the pair."""
        self.fwd, self.bwd = fwd, bwd

    def _rule(self, primal: TraceResult, primals: int) -> Rule:
        return VjpRule(self, primal, primals)


class CustomJvp(CustomFunction[P, R]):
    """A function whose derivative is the user's own rule for tangents, in forward and in reverse mode.

    The rule, jvp(primals, tangents) -> (out, tangent), gets a tuple of arguments and one of their tangents (None for integers), and
    returns an output and its tangent of one tree.  It must be linear in the tangents; reverse mode transposes it.  Arguments named
    in nondiff_argnums (or nondiff_argnames) are compile-time values: jvp(*nondiff, primals, tangents).

    >>> import numpy as np, bwcompiler as bw
    >>> @bw.custom_jvp
    ... def clipped(x):
    ...     return np.clip(x, -1.0, 1.0)
    >>> @clipped.defjvp
    ... def clipped_jvp(primals, tangents):
    ...     return clipped(*primals), tangents[0]
    >>> float(bw.grad(clipped)(3.0)), float(bw.jvp(clipped, (3.0,), (2.0,))[1])
    (1.0, 2.0)
    """

    kind = "custom_jvp"

    def __init__(self, fun: Callable[P, R], nondiff_argnums: int | Iterable[int] = (),
                 nondiff_argnames: str | Iterable[str] = ()) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None

    @says_instead
    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Register the rule; returns it, so that it can decorate."""
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Register a rule for each argument: jvp(tangent, out, *primals) -> its part of the tangent of out; None: zero.

        >>> import numpy as np, bwcompiler as bw
        >>> @bw.custom_jvp
        ... def product(x, y):
        ...     return x * y
        >>> product.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: t * x)
        >>> float(bw.grad(product, 1)(3.0, 4.0))
        3.0
        """
        if self.nondiff:
            raise SignatureError(f"{self.__name__}: defjvps does not go with nondiff_argnums; use defjvp")

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(primals) != len(jvps):
                raise GradientError(f"{self.__name__}: defjvps has {len(jvps)} rules, but the function was called with {len(primals)} "
                                    "arguments")
            out = self._applied(primals)
            parts = [call_user(rule, (tangent, out, *primals), {}) for rule, tangent in zip(jvps, tangents, strict=True)
                     if rule is not None and tree.leaves(tangent)]
            if not parts:
                return out, tree.map(lambda leaf: None, out)
            return out, functools.reduce(lambda x, y: tree.map(lambda a, b: a + b, x, y), parts)

        self.jvp = jvp

    def _rule(self, primal: TraceResult, primals: int) -> Rule:
        return JvpRule(self, primal, primals)


class Rule:
    """What is common to the rules of calls: the arguments and outputs of one call.

    own  the arguments that have derivatives, by their positions; nondiff: the others, which rules get first.
    source  the user's line of the call.
    """

    content_key = ""                   # what a call computes is said by its body, that of a link by its operands
    has_tangents = False               # `push`
    has_cotangents = False             # `backward`

    def __init__(self, owner: Any, primal: TraceResult, primals: int) -> None:
        self.owner = owner
        self.name = owner.__name__
        self.arguments: Arguments = primal.arguments
        self.argument_types = [self._rule_argument(k, primal) for k in range(primals)]
        self.output_tree = primal.output_tree
        self.outputs = [output.type for output in primal.outputs]
        self.output_count = len(self.outputs)
        self.primals = primals
        self.own = [k for k in range(len(self.arguments.args)) if k not in owner.nondiff]
        self.source = open_region().record.source
        self.nondiff = [declared_again(arg) for k, arg in enumerate(self.arguments.args) if k in owner.nondiff]

    def __repr__(self) -> str:
        return f"{self.owner.kind}({self.name})"

    def _rule_argument(self, leaf: int, primal: TraceResult) -> ArgumentType:
        """The argument as rules get it: only where it lies in C order is its layout known where they are traced."""
        argument = primal.argument_types[leaf]
        layout = argument.layout if argument.layout.settled else unknown(f"{primal.input_names[leaf]} of {self.name}")
        return ArgumentType(argument.type, argument.weak, argument.scalar, layout)

    def _error(self, text: str) -> GradientError:
        return GradientError(at(self.source, text))

    def _arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """All arguments, with other leaves."""
        return self.arguments.with_leaves(leaves, declare=True)[0]

    def leaf_numbers(self) -> tuple[Any, ...]:
        """The arguments with the numbers of their leaves; None in the place of compile-time values."""
        number = {position: k for k, position in enumerate(self.arguments.dynamic)}
        args, _ = tree.unflatten(self.arguments.treedef, [number.get(position) for position in range(len(self.arguments.leaves))])
        return args  # type: ignore[no-any-return]

    def _pair(self, result: TraceResult, what: str, parts: str) -> tuple[Any, Any]:
        """What a rule returned, with the numbers of outputs for leaves."""
        self._require_closed(result, what)
        whole = tree.unflatten(result.output_tree, range(len(result.outputs)))
        if not (isinstance(whole, tuple | list) and len(whole) == 2):
            raise self._error(f"{self.name}: {what} must return a pair ({parts})")
        return whole[0], whole[1]

    def _check_output(self, result: TraceResult, out: Any, what: str) -> list[int]:
        """The numbers of the outputs, which must be those of the function."""
        numbers, treedef = tree.flatten(out)
        found = [result.outputs[k].type for k in numbers]
        if treedef != self.output_tree or found != self.outputs:
            raise self._error(f"{self.name}: {what} returned an output of {found}, but the function returns {self.outputs}")
        return numbers

    def _require_closed(self, result: TraceResult, what: str) -> None:
        if result.lifted:
            raise self._not_closed(what)

    def _not_closed(self, what: str) -> UnsupportedError:
        return UnsupportedError(at(self.source, f"{self.name}: {what} reads a traced value from outside\n"
                                   "  hint: pass it as an argument of the function, or return it with the residuals"))

    def _trace_rule(self, rule: Callable[..., Any], args: Sequence[Any], what: str, types: Sequence[ArgumentType]) -> TraceResult:
        """A rule is traced when it is needed, often after the function around it: what that traced is not there any more."""
        try:
            return trace(rule, args, name=f"{self.name}.{what}", argument_types=types, outer=self.source)
        except EscapedTracerError as error:
            raise self._not_closed(what) from error

    def _matched(self, result: TraceResult, given: Any, expected: Any, types: Sequence[TensorType], what: str, of: str) -> dict[int, int]:
        """leaf of `expected` -> the number of the result that is given for it; what is None or belongs to no leaf is left out."""
        try:
            rows = tree.match_prefix(given, expected, what)
        except ValueError:
            raise self._error(f"{self.name}: {what} does not have the structure of {of}") from None
        found: dict[int, int] = {}
        for number, leaf, path in rows:
            if number is None or leaf is None:
                continue
            if not isinstance(leaf, int):
                raise self._error(f"{self.name}: {path} does not have the structure of {of}")
            type_, wanted = result.outputs[number].type, types[leaf]
            if not wanted.dtype.is_differentiable:
                continue
            if type_.shape != wanted.shape:
                raise self._error(f"{self.name}: {path} has shape {type_.shape}, but {of} has shape {wanted.shape}")
            if type_.dtype is not wanted.dtype:
                raise self._error(f"{self.name}: {path} has dtype {type_.dtype.numpy}, but {of} has dtype {wanted.dtype.numpy}")
            found[leaf] = number
        return found


def declared_again(argument: Any) -> StaticArgument:
    """An argument that is a compile-time value, as one of another trace."""
    return argument if isinstance(argument, StaticArgument) else StaticArgument(argument)


class VjpRule(Rule):
    """What autodiff asks for: graphs of fwd and bwd for one call."""

    has_cotangents = True

    def __init__(self, owner: Any, primal: TraceResult, primals: int) -> None:
        super().__init__(owner, primal, primals)
        self.residual_tree: tree.TreeDef | None = None

    def fwd(self) -> Callable[..., Any]:
        """What is traced for the forward half."""
        found: Callable[..., Any] | None = self.owner.fwd
        if found is None:
            raise self._error(f"{self.name} is a custom_vjp without rules: call {self.name}.defvjp(fwd, bwd)")
        return found

    def bwd(self, primals: Sequence[TensorType]) -> Callable[..., Any]:
        """What is traced for the backward half, of primals of these types."""
        return self.owner.bwd  # type: ignore[no-any-return]

    def forward(self, types: Sequence[TensorType]) -> tuple[Graph, list[Any]]:
        """primals -> outputs, residuals; and the arrays fwd captured."""
        args = self._arguments([_Spec(argument) for argument in self.argument_types])
        result = self._trace_rule(self.fwd(), args, "fwd", self.argument_types)
        out, residuals = self._pair(result, "fwd", "out, residuals")
        self._check_output(result, out, "fwd")
        self.residual_tree = tree.structure(residuals)
        return result.graph, result.captured

    def backward(self, residuals: Sequence[TensorType], outputs: Sequence[TensorType],
                 primals: Sequence[TensorType]) -> tuple[Graph, list[Any], list[bool]]:
        """residuals, cotangents -> cotangents of primals; captured arrays; which primals have a cotangent."""
        assert self.residual_tree is not None
        saved = tree.unflatten(self.residual_tree, [_Spec(ArgumentType(type_)) for type_ in residuals])
        cts = tree.unflatten(self.output_tree, [_Spec(ArgumentType(type_)) for type_ in outputs])
        types = [*[ArgumentType(type_, layout=unknown(f"a residual of {self.name}")) for type_ in residuals],
                 *[ArgumentType(type_) for type_ in outputs]]
        result = self._trace_rule(self.bwd(primals), (*self.nondiff, saved, cts), "bwd", types)
        self._require_closed(result, "bwd")
        whole = tree.unflatten(result.output_tree, range(len(result.outputs)))
        if len(self.own) == 1 and not isinstance(whole, tuple):
            whole = (whole,)
        if not isinstance(whole, tuple | list) or len(whole) != len(self.own):
            got = f"{len(whole)} of them" if isinstance(whole, tuple | list) else f"a {type(whole).__name__}"
            raise self._error(f"{self.name}: bwd must return a tuple of {len(self.own)} cotangents, one per argument; it returned {got}")
        numbers = self.leaf_numbers()
        found: dict[int, int] = {}
        for number, (part, position) in enumerate(zip(whole, self.own, strict=True)):
            found |= self._matched(result, part, numbers[position], primals, f"bwd's cotangent {number}", "the argument")
        graph = result.graph.replace(outputs=[result.outputs[found[k]] for k in sorted(found)])
        return graph, result.captured, [k in found for k in range(len(primals))]


class JvpRule(Rule):
    """What forward mode asks for: the graph of the rule for tangents."""

    has_tangents = True

    def __init__(self, owner: Any, primal: TraceResult, primals: int) -> None:
        super().__init__(owner, primal, primals)
        self._result: tuple[TraceResult, list[int], dict[int, int]] | None = None

    def forward(self, types: Sequence[TensorType]) -> tuple[Graph, list[Any]]:
        """primals -> outputs, then the primals themselves; and the arrays the rule captured."""
        result, numbers, _ = self._traced()
        inputs = result.graph.inputs[:self.primals]
        return self._at(result, [False] * self.primals, [*[result.outputs[k] for k in numbers], *inputs]), result.captured

    def push(self, primals: Sequence[TensorType], given: Sequence[bool]) -> tuple[Graph, list[Any], list[bool]]:
        """primals, tangents that are given -> tangents of outputs; captured arrays; which outputs have a tangent."""
        result, _, tangents = self._traced()
        graph = self._at(result, given, [result.outputs[tangents[k]] for k in sorted(tangents)])
        return graph, result.captured, [k in tangents for k in range(self.output_count)]

    def jvp(self) -> Callable[..., Any]:
        """What is traced."""
        found: Callable[..., Any] | None = self.owner.jvp
        if found is None:
            raise self._error(f"{self.name} is a custom_jvp without a rule: call {self.name}.defjvp(jvp)")
        return found

    def _at(self, result: TraceResult, given: Sequence[bool], outputs: Sequence[Value]) -> Graph:
        """The rule's graph with zeros for tangents that are not given."""
        primals = result.graph.inputs[:self.primals]
        explicit = len(result.graph.inputs) - result.graph.captured
        tangents = dict(zip(self._differentiable(), result.graph.inputs[self.primals:explicit], strict=True))
        captured = result.graph.inputs[explicit:]
        record = Record()
        with record:
            places = [tangent if given[k] else constant(0.0, tangent.type) for k, tangent in tangents.items()]
            found = inline(result.graph.replace(outputs=outputs), [*primals, *places, *captured])
        kept = [tangent for k, tangent in tangents.items() if given[k]]
        return Graph(result.graph.name, [*primals, *kept, *captured], record.values, found, captured=len(captured))

    def _differentiable(self) -> list[int]:
        return [k for k, argument in enumerate(self.argument_types) if argument.type.dtype.is_differentiable]

    def _traced(self) -> tuple[TraceResult, list[int], dict[int, int]]:
        """The rule, the numbers of its outputs, and output -> the number of its tangent."""
        if self._result is None:
            self._result = self._trace()
        return self._result

    def _trace(self) -> tuple[TraceResult, list[int], dict[int, int]]:
        specs = [_Spec(argument) for argument in self.argument_types]
        primals = self._arguments(specs)
        numbers = self.leaf_numbers()
        own = self._differentiable()
        tangents = [tree.map(lambda leaf: specs[leaf] if leaf in own else None, numbers[k]) for k in self.own]
        types = [*self.argument_types, *[ArgumentType(self.argument_types[k].type, scalar=self.argument_types[k].scalar) for k in own]]
        args = (*self.nondiff, tuple([primals[k] for k in self.own]), tuple(tangents))
        result = self._trace_rule(self.jvp(), args, "jvp", types)
        out, tangent = self._pair(result, "jvp", "out, tangent")
        found = self._check_output(result, out, "jvp")
        expected = tree.unflatten(self.output_tree, range(self.output_count))
        return result, found, self._matched(result, tangent, expected, self.outputs, "jvp's tangent", "the output")


class BothRules(VjpRule, JvpRule):
    """Of functions that have rules for cotangents, for tangents, or for both: `fwd`, `bwd` and `jvp` of their owner."""

    def __init__(self, owner: Any, primal: TraceResult, primals: int) -> None:
        super().__init__(owner, primal, primals)
        self.has_tangents = owner.jvp is not None
        self.has_cotangents = owner.fwd is not None

    def forward(self, types: Sequence[TensorType]) -> tuple[Graph, list[Any]]:
        """By fwd, where there is one."""
        return VjpRule.forward(self, types) if self.has_cotangents else JvpRule.forward(self, types)


class CustomBoth(CustomFunction[..., Any]):
    """A function with traced rules for both modes, as those of `custom_vjp` and `custom_jvp`; each may be missing."""

    def __init__(self, fun: Callable[..., Any], fwd: Callable[..., Any] | None, bwd: Callable[..., Any] | None,
                 jvp: Callable[..., Any] | None) -> None:
        super().__init__(fun)
        self.fwd, self.bwd, self.jvp = fwd, bwd, jvp

    def _rule(self, primal: TraceResult, primals: int) -> Rule:
        return BothRules(self, primal, primals)


class _Spec:
    """A stand-in for an argument of known type."""

    __slots__ = ("dtype", "shape")

    def __init__(self, argument: ArgumentType) -> None:
        self.shape = argument.type.shape
        self.dtype = argument.type.dtype.numpy
