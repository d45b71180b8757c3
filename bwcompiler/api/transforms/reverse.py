"""Reverse mode: grad, value_and_grad, vjp; and custom derivatives: custom_vjp, custom_jvp, stop_gradient."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Unpack, overload

from bwcompiler import ops, tree
from bwcompiler.api.programs.arguments.specialisation_keys import specialisation_key
from bwcompiler.api.programs.backward.traced_seeds import match_seeds
from bwcompiler.api.programs.functions import JitFunction, P, R
from bwcompiler.api.programs.kept import kept, made_of
from bwcompiler.api.programs.program import Program
from bwcompiler.api.programs.traced_program import BoundAnewError
from bwcompiler.api.programs.variants import Retrace, Variants
from bwcompiler.api.transforms.options import Options, TransformOptions
from bwcompiler.api.transforms.transformed import (
    Argnums,
    TracedCall,
    as_floats,
    capture,
    check_function,
    outputs_of,
    traced_call,
    transformed,
    with_options,
)
from bwcompiler.compiler.pipeline import derive
from bwcompiler.errors import BwError, GradientError, at
from bwcompiler.frontend.tracing.boundary.arguments import require_function, take_apart, unwrapped
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.custom_rules import CustomFunction, CustomJvp, CustomVjp
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import is_tracing
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.trace import TraceOptions, call_user, trace
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.graph import inline
from bwcompiler.ir.op import Value
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, ONE, cotangent_or_zero


def scalar_output(result: TraceResult, numbers: Sequence[int], what: str, holomorphic: bool = False) -> int:
    """The number of the one output; raises GradientError unless it is a real scalar (complex for a holomorphic function)."""
    outputs = [result.outputs[k] for k in numbers]
    if not outputs or result.only_checks:
        raise GradientError(f"{what} needs a function with one scalar output; {result.graph.name} returned nothing that is a number\n"
                            "  hint: is a `return` missing? (with has_aux=True: return (value, rest))")
    if len(outputs) != 1 or outputs[0].shape != ():
        shapes = ", ".join(str(output.shape) for output in outputs)
        hint = ("reduce it (.sum()), or use bw.jacobian, or bw.vjp with a seed" if len(outputs) == 1 else
                "return one number; has_aux=True for a pair of it and values that are not differentiated")
        raise GradientError(at(outputs[0].source, f"{what} needs a function with one scalar output; it returned shape {shapes}\n"
                                                  f"  hint: {hint}"))
    check_output(outputs[0], what, holomorphic)
    return numbers[0]


def check_output(output: Value, what: str, holomorphic: bool) -> None:
    """Raise GradientError for an output without a derivative, or without a real (holomorphic: complex) one."""
    if not output.dtype.is_differentiable:
        raise GradientError(at(output.source, f"{what} needs a floating-point output; it returned {output.dtype.numpy}\n"
                               "  hint: counts and positions have no derivative; floats that are assigned to an integer array are "
                               "truncated: make it a float array"))
    if holomorphic and not output.dtype.is_complex:
        raise GradientError(at(output.source, f"{what} with holomorphic=True needs a complex output; it returned {output.dtype.numpy}\n"
                                      "  hint: pass complex numbers, or leave holomorphic=True out"))
    if output.dtype.is_complex and not holomorphic:
        raise GradientError(at(output.source, f"{what} needs a real output; it returned {output.dtype.numpy}\n"
                               "  hint: holomorphic=True for the derivative of a holomorphic function; otherwise make it real (np.abs(z), "
                               "z.real), or use bw.vjp with a seed"))


def check_arguments(call: TracedCall, what: str) -> None:
    """Raise GradientError for real arguments of a function that is differentiated with holomorphic=True."""
    for leaf in call.wrt:
        dtype, name = call.result.argument_types[leaf].type.dtype, call.result.input_names[leaf]
        if not dtype.is_complex:
            raise GradientError(f"{what} with holomorphic=True needs complex arguments; {name} has dtype {dtype.numpy}")


@kept
def value_and_grad(fun: Callable[P, R], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
                   **options: Unpack[TransformOptions]) -> JitFunction[P, tuple[R, Any]]:
    """A function that returns fun's value and its gradient with respect to the arguments argnums.

    The gradient has the tree, shapes and dtypes of its argument; a tuple of argnums gives a tuple of gradients.  With has_aux,
    fun returns (value, aux) and the result is ((value, aux), gradient).  With respect to a complex z = x + iy the gradient is
    df/dx - i df/dy, as in JAX (the conjugate of PyTorch's); with holomorphic=True fun maps complex numbers to complex numbers, and
    the gradient is its complex derivative.  Raises GradientError for a non-scalar output, integer arguments, or a complex output
    without holomorphic=True, and the errors of tracing fun (bw.errors).

    All transforms have the options static_argnums, static_argnames and autoloop, as described for `jit`.

    >>> import numpy as np, bwcompiler as bw
    >>> value, g = bw.value_and_grad(lambda x: np.sum(x * x))(np.array([1.0, 2.0]))
    >>> float(value), g.tolist()
    (5.0, [2.0, 4.0])
    """
    chosen = Options.of("value_and_grad", options)

    def traced(*args: Any, **kwargs: Any) -> Any:
        differentiated = traced_call(fun, args, kwargs, argnums, chosen)
        result, wrt = differentiated.result, differentiated.wrt
        outputs = outputs_of(result, has_aux)
        number = scalar_output(result, outputs.numbers, "a gradient", holomorphic)
        if holomorphic:
            check_arguments(differentiated, "a gradient")
        joint = derive(result.graph, wrt, [ONE if k == number else None for k in range(len(result.graph.outputs))])
        found = inline(joint.graph, [*differentiated.inputs(), *map(capture, joint.captured)])
        gradient = differentiated.per_argument([
            _cotangent(found, position, result.graph.inputs[k]) for position, k in zip(joint.cotangents, wrt, strict=True)])
        value: Any = fresh(found[number])
        if has_aux:
            value = (value, outputs.aux(found))
        return value, gradient

    return transformed(fun, traced, "value_and_grad", chosen, value_and_grad, argnums, has_aux, holomorphic, backward=True,
                       argnums=argnums)


def _cotangent(found: Sequence[Value], position: int | None, argument: Value) -> Value:
    return cotangent_or_zero(None if position is None else found[position], argument)


@kept
def grad(fun: Callable[P, R], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
         **options: Unpack[TransformOptions]) -> JitFunction[P, Any]:
    """A function that returns the gradient of fun with respect to the arguments argnums.

    The gradient has the tree, shapes and dtypes of the argument.  A tuple of argnums gives a tuple of gradients.  With has_aux, fun
    returns (value, aux) and the result is (gradient, aux).  The other options are those of `value_and_grad`.  Raises GradientError for
    a non-scalar output, integer arguments, or a complex output without holomorphic=True.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.grad(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0])).tolist()
    [3.0, 12.0]
    """
    chosen = Options.of("grad", options)
    check_function(fun, "grad", argnums)
    traced_both: Callable[..., Any] = value_and_grad(fun, argnums, has_aux, holomorphic, **options).fun

    def traced(*args: Any, **kwargs: Any) -> Any:
        value, gradient = traced_both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return transformed(fun, traced, "grad", chosen, grad, argnums, has_aux, holomorphic, backward=True, argnums=argnums)


@shows_users_frames
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, **options: Unpack[TransformOptions]) -> Any:
    """fun(*primals) and the pullback: a function from a seed (shaped like the output) to one cotangent per primal.

    Cotangents have the trees, shapes and dtypes of the primals.  They are None for integer and boolean arrays, and for Python integers
    that fun needs as integers (a size, an axis); other Python integers are treated as floats.  With has_aux, fun returns (out, aux) and
    the result is (out, pullback, aux).  The pullback raises SeedError for a seed of other shape, dtype or structure than the output.

    >>> import numpy as np, bwcompiler as bw
    >>> out, pullback = bw.vjp(lambda x: x * x, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))[0].tolist()
    [2.0, 40.0]
    """
    if options:
        fun, primals = with_options("vjp", fun, primals, options)
    if is_tracing(primals):
        out = call_user(fun, tuple(map(unwrapped, primals)), {})
        out, aux = out if has_aux else (out, None)
        pullback: Any = functools.partial(_pullback_traced, fun, primals, has_aux)
    else:
        def called() -> tuple[Program, tuple[Any, Any]]:
            program, floats = _program_of_floats(fun, primals)
            return program, program.vjp(*floats)

        program, (out, pullback) = up_to_date(called)
        if has_aux:
            outputs = outputs_of(program.traced, has_aux=True)
            assert outputs.aux_treedef is not None
            out, aux = out
            nothing = tree.unflatten(outputs.aux_treedef, [None] * len(outputs.aux_numbers))
            pullback = functools.partial(_pullback_with_aux, pullback, nothing)
    return (out, pullback, aux) if has_aux else (out, pullback)


def _program_of_floats(fun: Callable[..., Any], primals: tuple[Any, ...]) -> tuple[Program, tuple[Any, ...]]:
    """The program of fun with Python integers among the primals as floats, except those that fun needs as integers (sizes, axes)."""
    floats = tuple(as_floats(primals, range(len(primals))))
    if all(map(operator.is_, floats, primals)):
        return program_of(fun, primals), primals
    integers: set[Any] = made_of(fun, "integers", set)
    key = specialisation_key(take_apart(fun, floats))
    if key in integers:
        return program_of(fun, primals), primals
    try:
        return program_of(fun, floats), floats
    except (TypeError, BwError):
        made = program_of(fun, primals)
        integers.add(key)
        return made, primals


def _pullback_with_aux(pullback: Callable[..., Any], aux: Any, seed: Any) -> Any:
    return pullback((seed, aux))


def up_to_date(call: Callable[[], R]) -> R:
    """call(), which finds a program and runs it; repeated if an outside value was rebound between the two (by another thread)."""
    while True:
        try:
            return call()
        except BoundAnewError:
            continue


def program_of(fun: Callable[..., Any], primals: tuple[Any, ...]) -> Program:
    """The program of fun for these primals: an earlier one if the outside values that it compiled in are unchanged."""
    arguments = take_apart(fun, primals)
    variants: Variants[Program] = made_of(fun, "variants", Variants)
    variants.make_static(arguments)

    def make(retrace: Retrace) -> Program:
        return Program(fun, arguments, tracing=TraceOptions(varying=retrace.varying, rebound=retrace.rebound))

    return variants.find(arguments) or variants.add(arguments, make)[0]


def _pullback_traced(fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool, seed: Any) -> Any:
    result = trace(fun, as_floats(primals, range(len(primals))))
    seeds = match_seeds(result, outputs_of(result, has_aux).numbers, seed, has_aux)
    wrt = [k for k, argument in enumerate(result.argument_types) if argument.type.dtype.is_differentiable]
    joint = derive(result.graph, wrt, [None if seeds.get(k) is None else INPUT_SEED for k in range(len(result.graph.outputs))])
    seed_values = [value for k, position in enumerate(joint.seeds) if position is not None and (value := seeds.get(k)) is not None]
    differentiated = TracedCall(tuple(range(len(primals))), result, wrt)
    found = inline(joint.graph, [*differentiated.inputs(*seed_values), *map(capture, joint.captured)])
    return differentiated.per_argument([
        _cotangent(found, position, result.graph.inputs[k]) for position, k in zip(joint.cotangents, wrt, strict=True)])


def stop_gradient(x: Any) -> Any:
    """x with a zero derivative: an array, a number or a container of them; shapes and dtypes are unchanged.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.grad(lambda x: x * bw.stop_gradient(x))(3.0))
    3.0
    """
    def stop(leaf: Tracer) -> Tracer:
        return fresh(ops.stop_gradient(value_of(leaf)))
    return tree.map(lambda leaf: call(stop, leaf) if isinstance(leaf, Tracer) else leaf, x)


@overload
def custom_vjp(fun: Callable[P, R], nondiff_argnums: int | Iterable[int] = (), *,
               nondiff_argnames: str | Iterable[str] = ()) -> CustomVjp[P, R]: ...


@overload
def custom_vjp(fun: None = None, nondiff_argnums: int | Iterable[int] = (), *,
               nondiff_argnames: str | Iterable[str] = ()) -> Callable[[Callable[P, R]], CustomVjp[P, R]]: ...


@shows_users_frames
def custom_vjp(fun: Callable[..., Any] | None = None, nondiff_argnums: int | Iterable[int] = (), *,
               nondiff_argnames: str | Iterable[str] = ()) -> Any:
    """Give fun its own derivative: the pair that is registered with `.defvjp(fwd, bwd)`.  Without fun, a decorator.

    fwd(*args) -> (out, residuals) replaces fun when it is differentiated, and may call it; residuals are trees of arrays, or None.
    bwd(residuals, ct) -> one cotangent per argument, in a tuple, each with the tree, shapes and dtypes of its argument; None: zero.
    ct has the tree, shape and dtype of out.  Arguments named in nondiff_argnums (or nondiff_argnames) are compile-time values
    without cotangent: bwd(*nondiff, residuals, ct).  All functions are traced, each when first needed.

    Raises GradientError if the pair is missing or returns something else, UnsupportedError if it reads traced values from
    outside, SignatureError for arrays as compile-time values.  Second derivatives differentiate fwd and bwd.

    >>> import numpy as np, bwcompiler as bw
    >>> @bw.custom_vjp
    ... def double(x):
    ...     return 2 * x
    >>> double.defvjp(lambda x: (double(x), x), lambda x, ct: (100 * ct,))
    >>> bw.grad(double)(3.0).item()
    100.0
    """
    return _custom(CustomVjp, fun, nondiff_argnums, nondiff_argnames)


@overload
def custom_jvp(fun: Callable[P, R], nondiff_argnums: int | Iterable[int] = (), *,
               nondiff_argnames: str | Iterable[str] = ()) -> CustomJvp[P, R]: ...


@overload
def custom_jvp(fun: None = None, nondiff_argnums: int | Iterable[int] = (), *,
               nondiff_argnames: str | Iterable[str] = ()) -> Callable[[Callable[P, R]], CustomJvp[P, R]]: ...


@shows_users_frames
def custom_jvp(fun: Callable[..., Any] | None = None, nondiff_argnums: int | Iterable[int] = (), *,
               nondiff_argnames: str | Iterable[str] = ()) -> Any:
    """Give fun its own derivative by a rule for tangents, which holds in forward and in reverse mode.  Without fun, a decorator.

    `.defjvp(jvp)` registers jvp(primals, tangents) -> (out, tangent): it gets a tuple of arguments and one of their tangents (None
    for integers), and returns an output and its tangent, of one tree, shape and dtype.  It must be linear in the tangents: reverse
    mode transposes it.  `.defjvps(*rules)` registers one rule(tangent, out, *primals) per argument, None for zero; their results are
    added.  Arguments named in nondiff_argnums (or nondiff_argnames) are compile-time values: jvp(*nondiff, primals, tangents).

    Raises GradientError if the rule is missing, not linear or returns something else, UnsupportedError if it reads traced
    values from outside, SignatureError for arrays as compile-time values.

    >>> import numpy as np, bwcompiler as bw
    >>> @bw.custom_jvp
    ... def log1pexp(x):
    ...     return np.log(1.0 + np.exp(x))
    >>> log1pexp.defjvps(lambda t, out, x: t * (1 - 1 / (1 + np.exp(x))))
    >>> float(bw.grad(log1pexp)(100.0))
    1.0
    """
    return _custom(CustomJvp, fun, nondiff_argnums, nondiff_argnames)


def _custom(kind: type[CustomFunction[..., Any]], fun: Callable[..., Any] | None, nondiff_argnums: int | Iterable[int],
            nondiff_argnames: str | Iterable[str]) -> Any:
    if fun is None:
        return functools.partial(_custom, kind, nondiff_argnums=nondiff_argnums, nondiff_argnames=nondiff_argnames)
    require_function(fun)
    made = kind(fun, nondiff_argnums, nondiff_argnames)
    made.compiled = JitFunction(made, static_argnums=tuple(sorted(made.nondiff)))
    return made
