"""Derivatives of functions: grad, value_and_grad, vjp, jacobians, hessian.

Every transform is a function of handles: it traces `fun` in a region of its own, transforms the graph, and inlines the
result into the region it was called in.  Called with concrete arrays, it is compiled whole by `jit`.  So transforms nest
to any order, and `jit` of a transform costs nothing extra.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops, tree
from bwcompiler.api.functions import VARIANTS, JitFunction, specialisation_key
from bwcompiler.api.program import Program
from bwcompiler.api.requests import argument_positions, check_differentiable
from bwcompiler.api.seeds import check_seed_type, match_tree, number_seed
from bwcompiler.compiler.pipeline import derive
from bwcompiler.errors import GradientError, at
from bwcompiler.frontend.tracing.arguments import Arguments, require_function, take_apart
from bwcompiler.frontend.tracing.custom_rules import CustomVjp
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.region import active_region
from bwcompiler.frontend.tracing.trace import TraceResult, trace
from bwcompiler.frontend.tracing.tracer import Tracer, call, fresh, is_weak, value_of
from bwcompiler.ir.graph import inline
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import F64, I64
from bwcompiler.passes.autodiff import INPUT_SEED, ONE, cotangent_or_zero
from bwcompiler.passes.batch import batch_graph

Argnums = int | Sequence[int]


class Statics(NamedTuple):
    """Which arguments are compile-time values: static_argnums and static_argnames, as `jit` takes them."""

    argnums: int | Iterable[int] = ()
    argnames: str | Iterable[str] = ()


class Transformed(JitFunction):
    """A derivative of a function: compiled when called with arrays, inlined when called inside another trace.

    made_by   the transform and its arguments, to make it again from a pickle.
    """

    def __init__(self, traced: Callable[..., Any], statics: Statics, made_by: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
        super().__init__(traced, statics.argnums, statics.argnames)
        self._made_by = (*made_by, statics._asdict())

    def _remake(self) -> tuple[Any, ...]:
        transform, args, statics = self._made_by
        return transform, args, {f"static_{name}": value for name, value in statics.items()}

    def _shown(self, arguments: Arguments) -> Program:
        """What is worth looking at: the backward program of the function that is differentiated."""
        transform, (fun, argnums, *_), _ = self._made_by
        if transform not in (grad, value_and_grad):
            return super()._shown(arguments)
        return Program(fun, arguments, argnums)


def _transform(fun: Callable[..., Any], traced: Callable[..., Any], name: str, statics: Statics, transform: Callable[..., Any],
               *args: Any) -> Transformed:
    require_function(fun)
    functools.update_wrapper(traced, fun, updated=())
    traced.__name__ = f"{getattr(fun, '__name__', 'function')}.{name}"
    traced.__qualname__ = f"{getattr(fun, '__qualname__', 'function')}.{name}"
    return Transformed(traced, statics, (transform, (fun, *args)))


def operand_values(leaves: Sequence[Any]) -> list[Value]:
    """Leaves of a call inside a trace as values of the current region."""
    return [value_of(leaf) if isinstance(leaf, Tracer) else value_as(leaf) for leaf in leaves]


def normalise_argnums(argnums: Argnums, count: int) -> tuple[int, ...]:
    """argnums as non-negative positions."""
    return argument_positions(argnums, count, "argnums")


def _as_floats(args: Sequence[Any], argnums: Sequence[int]) -> list[Any]:
    """Python ints among the differentiated arguments become floats."""
    def convert(leaf: Any) -> Any:
        if type(leaf) is int:
            return float(leaf)
        if isinstance(leaf, Tracer) and leaf._kind is int:
            return fresh(ops.cast(value_of(leaf), dtype=F64), float)
        return leaf
    return [tree.map(convert, arg) if k in argnums else arg for k, arg in enumerate(args)]


def _scalar_output(result: TraceResult, outputs: Sequence[Value], what: str) -> Value:
    if len(outputs) != 1 or outputs[0].shape != ():
        shapes = ", ".join(str(output.shape) for output in outputs) if outputs else "None; is a return missing?"
        raise GradientError(at(outputs[0].source if outputs else None,
                               f"{what} needs a function with one scalar output; it returned {'shape ' if outputs else ''}{shapes}\n"
                               "  hint: reduce it (.sum()), or use bw.jacobian, or bw.vjp with a seed"))
    if not outputs[0].dtype.is_differentiable:
        raise GradientError(at(outputs[0].source, f"{what} needs a floating-point output; it returned {outputs[0].dtype.numpy}"))
    return outputs[0]


def value_and_grad(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, static_argnums: int | Iterable[int] = (),
                   static_argnames: str | Iterable[str] = ()) -> Any:
    """A function that returns fun's value and its gradient with respect to the arguments argnums.

    The gradient has the shape and dtype of its argument, and its tree; a tuple of argnums gives a tuple of gradients.  With has_aux,
    fun returns (value, aux) and the result is ((value, aux), gradient).  Raises GradientError for a non-scalar output or integer
    arguments, and whatever tracing fun raises (bw.errors).

    >>> import numpy as np, bwcompiler as bw
    >>> value, g = bw.value_and_grad(lambda x: np.sum(x * x))(np.array([1.0, 2.0]))
    >>> float(value), g.tolist()
    (5.0, [2.0, 4.0])
    """
    statics = Statics(static_argnums, static_argnames)

    def traced(*args: Any, **kwargs: Any) -> Any:
        differentiated = _traced_call(fun, args, kwargs, argnums, statics)
        result, wrt = differentiated.result, differentiated.wrt
        outputs, aux_count, aux_tree = _split_aux(result, has_aux)
        _scalar_output(result, outputs, "grad")
        joint = derive(result.graph, wrt, [ONE, *([None] * (len(result.graph.outputs) - 1))])
        found = inline(joint.graph, [*operand_values(differentiated.leaves), *result.hidden_operands(), *map(_capture, joint.captured)])
        gradient = differentiated.per_argument([
            _cotangent(found, position, result.graph.inputs[k]) for position, k in zip(joint.cotangents, wrt, strict=True)])
        value: Any = fresh(found[0])
        if has_aux:
            value = (value, tree.unflatten(aux_tree, [fresh(v) for v in found[1:1 + aux_count]]))
        return value, gradient

    return _transform(fun, traced, "value_and_grad", statics, value_and_grad, argnums, has_aux)


class _TracedCall(NamedTuple):
    """A call whose arguments `argnums` are differentiated.  wrt: the numbers of their leaves."""

    argnums: Argnums
    result: TraceResult
    wrt: list[int]

    @property
    def leaves(self) -> list[Any]:
        return self.result.arguments.dynamic_leaves

    def per_argument(self, derivatives: Sequence[Value]) -> Any:
        """One derivative per leaf in `wrt`, in the trees of the arguments; a tuple of these if argnums is one.

        Leaves that are compile-time values have None.
        """
        arguments = self.result.arguments
        found: dict[int, Any] = {arguments.dynamic[leaf]: fresh(value) for leaf, value in zip(self.wrt, derivatives, strict=True)}
        args, _ = tree.unflatten(arguments.treedef, [found.get(position) for position in range(len(arguments.leaves))])
        chosen = [args[number] for number in normalise_argnums(self.argnums, len(args))]
        return chosen[0] if isinstance(self.argnums, int) else tuple(chosen)


def _traced_call(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], argnums: Argnums,
                 statics: Statics = Statics()) -> _TracedCall:  # noqa: B008  (immutable)
    named = take_apart(fun, args, kwargs)          # what can be passed by position is
    numbers = normalise_argnums(argnums, len(named.args))
    result = trace(fun, _as_floats(named.args, numbers), named.kwargs, static_argnums=statics.argnums, static_argnames=statics.argnames)
    wrt = [leaf for number in numbers for leaf in result.arguments.positions_of(number)]
    check_differentiable(result, wrt)
    return _TracedCall(argnums, result, wrt)


def _split_aux(result: TraceResult, has_aux: bool) -> tuple[list[Value], int, Any]:
    if not has_aux:
        return list(result.outputs), 0, None
    whole = tree.unflatten(result.output_tree, range(len(result.outputs)))
    if not (isinstance(whole, tuple) and len(whole) == 2):
        raise GradientError("has_aux=True: the function must return a pair (value, aux)")
    value_leaves, _ = tree.flatten(whole[0])
    aux_leaves, aux_tree = tree.flatten(whole[1])
    return [result.outputs[k] for k in value_leaves], len(aux_leaves), aux_tree


def _cotangent(found: Sequence[Value], position: int | None, argument: Value) -> Value:
    return cotangent_or_zero(None if position is None else found[position], argument)


def grad(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, static_argnums: int | Iterable[int] = (),
         static_argnames: str | Iterable[str] = ()) -> Any:
    """A function that returns the gradient of fun with respect to the arguments argnums.

    The gradient has the shape, dtype and tree of the argument.  Errors as for `value_and_grad`; with has_aux, returns (gradient, aux).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.grad(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0])).tolist()
    [3.0, 12.0]
    """
    statics = Statics(static_argnums, static_argnames)
    both = value_and_grad(fun, argnums, has_aux, static_argnums=static_argnums, static_argnames=static_argnames)

    def traced(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both.fun(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return _transform(fun, traced, "grad", statics, grad, argnums, has_aux)


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """fun(*primals) and the pullback: a function from a seed (shaped like the output) to one cotangent per primal.

    Integer and boolean primals have the cotangent None.  With has_aux, fun returns (out, aux) and the result is
    (out, pullback, aux).  The pullback raises SeedError for a seed of other shape, dtype or structure than the output.

    >>> import numpy as np, bwcompiler as bw
    >>> out, pullback = bw.vjp(lambda x: x * x, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))[0].tolist()
    [2.0, 40.0]
    """
    if active_region() is not None or any(isinstance(leaf, Tracer) for leaf in tree.leaves(primals)):
        out = fun(*primals)
        out, aux = out if has_aux else (out, None)
        pullback: Any = functools.partial(_pullback_traced, fun, primals, has_aux)
    else:
        primals = tuple(_as_floats(primals, range(len(primals))))
        program = _program_of(fun, primals)
        out, pullback = program.vjp(*primals)
        if has_aux:
            _, count, aux_tree = _split_aux(program.traced, has_aux=True)
            out, aux = out
            pullback = functools.partial(_pullback_with_aux, pullback, tree.unflatten(aux_tree, [None] * count))
    return (out, pullback, aux) if has_aux else (out, pullback)


def _pullback_with_aux(pullback: Callable[..., Any], aux: Any, seed: Any) -> Any:
    return pullback((seed, aux))


_programs: weakref.WeakKeyDictionary[Callable[..., Any], dict[Any, list[Program]]] = weakref.WeakKeyDictionary()


def _program_of(fun: Callable[..., Any], primals: tuple[Any, ...]) -> Program:
    """The program of fun for these primals: an earlier one, if what fun reads from outside is as it was."""
    arguments = take_apart(fun, primals)
    try:
        known = _programs.setdefault(fun, {}).setdefault(specialisation_key(arguments), [])
    except TypeError:                              # a callable that cannot be hashed or referred to
        return Program(fun, arguments)
    for program in known:
        if program.is_up_to_date(arguments):
            return program
    made = Program(fun, arguments)
    known[:] = [made, *known[:VARIANTS - 1]]
    return made


def _pullback_traced(fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool, seed: Any) -> Any:
    result = trace(fun, _as_floats(primals, range(len(primals))))
    outputs, _, _ = _split_aux(result, has_aux)
    seeds = match_seeds(result, outputs, seed, has_aux)
    wrt = [k for k, argument in enumerate(result.argument_types) if argument.type.dtype.is_differentiable]
    extra = len(result.graph.outputs) - len(outputs)
    spec = [None if s is None else INPUT_SEED for s in seeds] + [None] * extra
    joint = derive(result.graph, wrt, spec)
    seed_values = [s for s, position in zip(seeds, joint.seeds, strict=False) if position is not None and s is not None]
    found = inline(joint.graph, [*operand_values(result.arguments.dynamic_leaves), *[value_of(h) for h in result.lifted], *seed_values,
                                 *map(_capture, [*result.captured, *joint.captured])])
    cotangents = [_cotangent(found, position, result.graph.inputs[k]) for position, k in zip(joint.cotangents, wrt, strict=True)]
    return _TracedCall(tuple(range(len(primals))), result, wrt).per_argument(cotangents)


def _capture(array: Any) -> Value:
    region = active_region()
    assert region is not None
    return region.capture(array)


def match_seeds(result: TraceResult, outputs: Sequence[Value], seed: Any, has_aux: bool = False) -> list[Value | None]:
    """The seed's leaves as values, one per output (None: zero); raises SeedError naming output, expected and got."""
    tree_of_outputs = result.output_tree
    whole = tree.unflatten(tree_of_outputs, range(len(result.outputs)))
    if has_aux:
        whole = whole[0]
    flat = match_tree(whole, seed, "seed")
    return [None if leaf is None else _checked_seed(leaf, output, path)
            for (leaf, path), output in zip(flat, outputs, strict=True)]


def _checked_seed(leaf: Any, output: Value, path: str) -> Value:
    leaf = number_seed(leaf, output)
    value = value_of(leaf) if isinstance(leaf, Tracer) else value_as(leaf)
    if isinstance(leaf, Tracer) and is_weak(leaf) and value.dtype is not output.dtype:
        value = ops.cast(value, dtype=output.dtype)
    check_seed_type(value.shape, value.dtype.numpy, output, path)
    return value


def jacrev(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, static_argnums: int | Iterable[int] = (),
           static_argnames: str | Iterable[str] = ()) -> Any:
    """The Jacobian of fun: shape output.shape + argument.shape, computed as one batch of pullbacks.

    Outputs and arguments may be trees; the result is then a tree of outputs of trees of arguments.  Raises GradientError for
    integer arguments or outputs.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jacrev(lambda x: x * x)(np.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    statics = Statics(static_argnums, static_argnames)

    def traced(*args: Any, **kwargs: Any) -> Any:
        differentiated = _traced_call(fun, args, kwargs, argnums, statics)
        result = differentiated.result
        outputs, aux_count, aux_tree = _split_aux(result, has_aux)
        operands, captured = operand_values(differentiated.leaves), [_capture(array) for array in result.captured]
        lifted = [value_of(handle) for handle in result.lifted]
        per_output = [differentiated.per_argument(_jacobian_rows(result, number, differentiated.wrt, operands, lifted, captured))
                      for number in range(len(outputs))]
        whole = tree.unflatten(result.output_tree, range(len(result.outputs)))
        out_tree = tree.structure(whole[0] if has_aux else whole)
        jacobian = tree.unflatten(out_tree, per_output) if len(per_output) != 1 or not isinstance(whole, int) else per_output[0]
        if not has_aux:
            return jacobian
        values = inline(result.graph, [*operands, *lifted, *captured])
        return jacobian, tree.unflatten(aux_tree, [fresh(v) for v in values[len(outputs):len(outputs) + aux_count]])

    return _transform(fun, traced, "jacobian", statics, jacrev, argnums, has_aux)


jacobian = jacrev


def _jacobian_rows(result: TraceResult, number: int, wrt: Sequence[int], operands: list[Value], lifted: list[Value],
                   captured: list[Value]) -> list[Value]:
    """Per differentiated leaf, the derivative of output `number`: the pullback mapped over the unit seeds."""
    output = result.graph.outputs[number]
    if not output.dtype.is_differentiable:
        raise GradientError(at(output.source, f"a Jacobian needs a floating-point output; it returned {output.dtype.numpy}"))
    spec = [INPUT_SEED if k == number else None for k in range(len(result.graph.outputs))]
    joint = derive(result.graph, wrt, spec)
    positions = [position for position in joint.cotangents if position is not None]
    seed = joint.seeds[number]
    assert seed is not None
    graph = joint.graph.replace(outputs=[joint.graph.outputs[position] for position in positions])
    size = output.type.size
    batched, flags = batch_graph(graph, [k == seed for k in range(len(graph.inputs))], size)
    basis = _unit_seeds(output, size)
    hidden = [*captured, *map(_capture, joint.captured)]
    found = iter(zip(inline(batched, [*operands, *lifted, basis, *hidden]), flags, strict=True))
    rows = []
    for position, k in zip(joint.cotangents, wrt, strict=True):
        argument = result.graph.inputs[k]
        shape = (*output.shape, *argument.shape)
        if position is None:
            rows.append(ops.full(value=0.0, shape=shape, dtype=argument.dtype))
            continue
        value, is_batched = next(found)
        if not is_batched:
            value = ops.broadcast(value, shape=(size, *argument.shape), axes=tuple(range(1, argument.rank + 1)))
        rows.append(ops.reshape(value, shape=shape))
    return rows


def _unit_seeds(output: Value, size: int) -> Value:
    """The identity matrix, its rows shaped like the output."""
    row = ops.iota(shape=(size, size), axis=0, dtype=I64)
    column = ops.iota(shape=(size, size), axis=1, dtype=I64)
    eye = ops.cast(ops.equal(row, column), dtype=output.dtype)
    return ops.reshape(eye, shape=(size, *output.shape))


def hessian(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, static_argnums: int | Iterable[int] = (),
            static_argnames: str | Iterable[str] = ()) -> Any:
    """The Hessian of a scalar function, of shape argument.shape + argument.shape: the Jacobian of its gradient.

    For several arguments or trees, a tree of such arrays.  Errors as for `value_and_grad`.  For the product of a Hessian with a
    vector, `bw.grad(lambda x: np.vdot(bw.grad(f)(x), v))` does not make the matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.hessian(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    statics: Any = {"static_argnums": static_argnums, "static_argnames": static_argnames}
    return jacrev(grad(fun, argnums, has_aux, **statics), argnums, has_aux, **statics)


def stop_gradient(x: Any) -> Any:
    """x, with a zero derivative; works on containers too.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.grad(lambda x: x * bw.stop_gradient(x))(3.0))
    3.0
    """
    def stop(leaf: Tracer) -> Tracer:
        return fresh(ops.stop_gradient(value_of(leaf)))
    return tree.map(lambda leaf: call(stop, leaf) if isinstance(leaf, Tracer) else leaf, x)


def custom_vjp(fun: Callable[..., Any]) -> CustomVjp:
    """Give fun its own derivative: see `CustomVjp`.  Register the pair with `.defvjp(fwd, bwd)`.

    >>> import numpy as np, bwcompiler as bw
    >>> @bw.custom_vjp
    ... def double(x):
    ...     return 2 * x
    >>> double.defvjp(lambda x: (double(x), x), lambda x, ct: (100 * ct,))
    >>> bw.grad(double)(3.0).item()
    100.0
    """
    made = CustomVjp(fun)
    made.compiled = JitFunction(made)
    return made
