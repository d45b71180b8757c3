"""`custom_vjp`: a function with the user's own forward and backward pair."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from bwcompiler import ops, tree
from bwcompiler.errors import GradientError, UnsupportedError
from bwcompiler.frontend.tracing.arguments import ArgumentType
from bwcompiler.frontend.tracing.memory_order import unknown
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.region import active_region
from bwcompiler.frontend.tracing.trace import TraceResult, trace
from bwcompiler.frontend.tracing.tracer import Tracer, call, fresh, value_of
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.custom import custom_call


class CustomVjp:
    """A function whose derivative is the user's own pair (fwd, bwd).

    fwd(*args) -> (out, residuals) runs in the place of the function where it is differentiated; bwd(residuals, ct) returns
    one cotangent per argument (None: zero), each with the tree and shapes of its argument.  Functions are traced, each
    when first needed.

    >>> import numpy as np, bwcompiler as bw
    >>> @bw.custom_vjp
    ... def clipped(x):
    ...     return np.clip(x, -1.0, 1.0)
    >>> clipped.defvjp(lambda x: (clipped(x), None), lambda residuals, ct: (ct,))
    >>> float(bw.grad(clipped)(3.0))
    1.0
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.compiled: Callable[..., Any] | None = None
        functools.update_wrapper(self, fun)

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Register the pair."""
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: Any) -> Any:
        if active_region() is None:
            return self.fun(*args) if self.compiled is None else self.compiled(*args)
        result = trace(self.fun, args)
        if result.mutated or result.assigned:
            raise UnsupportedError(f"{self.__name__}: a function with a custom rule must not assign to its arguments")
        return tree.unflatten(result.output_tree, call(self._outputs, result))

    def _outputs(self, result: TraceResult) -> list[Tracer]:
        values = [value_of(leaf) if isinstance(leaf, Tracer) else value_as(leaf) for leaf in result.arguments.dynamic_leaves]
        rule = _Rule(self, result, len(values))
        made = custom_call(*values, *result.hidden_operands(), body=result.graph, rule=rule)
        return [fresh(ops.item(made, index=k)) for k in range(len(result.graph.outputs))]

    __name__: str = "custom_vjp"


class _Rule:
    """What autodiff asks for: graphs of fwd and bwd for one call."""

    content_key = ""                   # what a call computes is said by its body, that of a link by its operands
    has_tangents = False

    def __init__(self, owner: CustomVjp, primal: TraceResult, primals: int) -> None:
        self.owner = owner
        self.arguments = primal.arguments
        self.argument_types = [self._rule_argument(k, primal) for k in range(primals)]
        self.output_tree = primal.output_tree
        self.outputs = [output.type for output in primal.outputs]
        self.output_count = len(self.outputs)
        self.primals = primals
        self.residual_tree: tree.TreeDef | None = None
        self.residual_count = 0

    def __repr__(self) -> str:
        return f"custom_vjp({self.owner.__name__})"

    def _rule_argument(self, leaf: int, primal: TraceResult) -> ArgumentType:
        """An argument of fwd.  Its memory order is known where the function asked for it: fwd is traced when it is too late to ask."""
        argument = primal.argument_types[leaf]
        layout = argument.layout if argument.layout.settled else unknown(f"{primal.input_names[leaf]} of {self.owner.__name__}")
        return ArgumentType(argument.type, argument.weak, argument.scalar, layout)

    def forward(self, types: Sequence[TensorType]) -> tuple[Graph, list[Any]]:
        """primals -> outputs, residuals; and the arrays fwd captured."""
        if self.owner.fwd is None:
            raise GradientError(f"{self.owner.__name__} is a custom_vjp without rules: call {self.owner.__name__}.defvjp(fwd, bwd)")
        args, _ = self.arguments.with_leaves([_Spec(argument) for argument in self.argument_types], declare=True)
        result = trace(self.owner.fwd, args, name=f"{self.owner.__name__}.fwd", argument_types=self.argument_types)
        self._require_closed(result, "fwd")
        whole = tree.unflatten(result.output_tree, range(len(result.outputs)))
        if not (isinstance(whole, tuple) and len(whole) == 2):
            raise GradientError(f"{self.owner.__name__}: fwd must return a pair (out, residuals)")
        out_leaves, out_tree = tree.flatten(whole[0])
        found = [result.outputs[k].type for k in out_leaves]
        if out_tree != self.output_tree or found != self.outputs:
            raise GradientError(f"{self.owner.__name__}: fwd returned an output of {found}, but the function returns {self.outputs}")
        residual_leaves, self.residual_tree = tree.flatten(whole[1])
        self.residual_count = len(residual_leaves)
        return result.graph, result.captured

    def backward(self, residuals: Sequence[TensorType], outputs: Sequence[TensorType],
                 primals: Sequence[TensorType]) -> tuple[Graph, list[Any], list[bool]]:
        """residuals, cotangents -> cotangents of primals; captured arrays; which primals have a cotangent."""
        assert self.owner.bwd is not None and self.residual_tree is not None
        saved = tree.unflatten(self.residual_tree, [_Spec(ArgumentType(type_)) for type_ in residuals])
        cts = tree.unflatten(self.output_tree, [_Spec(ArgumentType(type_)) for type_ in outputs])
        types = [*[ArgumentType(type_, layout=unknown(f"a residual of {self.owner.__name__}")) for type_ in residuals],
                 *[ArgumentType(type_) for type_ in outputs]]
        result = trace(self.owner.bwd, (saved, cts), name=f"{self.owner.__name__}.bwd", argument_types=types)
        self._require_closed(result, "bwd")
        return self._matched(result, primals)

    def _matched(self, result: TraceResult, primals: Sequence[TensorType]) -> tuple[Graph, list[Any], list[bool]]:
        """The graph with one output per cotangent, checked against its primal."""
        name = self.owner.__name__
        whole = tree.unflatten(result.output_tree, range(len(result.outputs)))
        arguments = [self.arguments.positions_of(number) for number in range(len(self.arguments.args))]
        if len(arguments) == 1 and not isinstance(whole, tuple):
            whole = (whole,)
        if not isinstance(whole, tuple | list) or len(whole) != len(arguments):
            raise GradientError(f"{name}: bwd must return a tuple of {len(arguments)} cotangents, one per argument")
        present = [False] * len(primals)
        chosen: list[int] = []
        for number, (part, argument) in enumerate(zip(whole, arguments, strict=True)):
            if part is None:
                continue
            leaves, positions = tree.leaves(part), argument
            if len(leaves) != len(positions):
                raise GradientError(f"{name}: bwd's cotangent {number} does not have the structure of its argument")
            for leaf, position in zip(leaves, positions, strict=True):
                found, expected = result.outputs[leaf].type, primals[position]
                if found.shape != expected.shape:
                    raise GradientError(f"{name}: bwd's cotangent {number} has shape {found.shape}, but the argument has shape "
                                        f"{expected.shape}")
                if not expected.dtype.is_differentiable:
                    continue
                if found.dtype is not expected.dtype:
                    raise GradientError(f"{name}: bwd's cotangent {number} has dtype {found.dtype.numpy}, but the argument has dtype "
                                        f"{expected.dtype.numpy}")
                present[position] = True
                chosen.append(leaf)
        graph = result.graph.replace(outputs=[result.outputs[k] for k in chosen])
        return graph, result.captured, present

    def _require_closed(self, result: TraceResult, what: str) -> None:
        if result.lifted:
            raise UnsupportedError(f"{self.owner.__name__}: {what} reads a traced value from outside\n"
                                   "  hint: pass it as an argument of the function, or return it with the residuals")


class _Spec:
    """A stand-in for an argument of known type."""

    __slots__ = ("dtype", "shape")

    def __init__(self, argument: ArgumentType) -> None:
        self.shape = argument.type.shape
        self.dtype = argument.type.dtype.numpy
