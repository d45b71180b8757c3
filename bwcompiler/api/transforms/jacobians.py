"""Whole derivatives: jacrev, jacfwd, jacobian, hessian; and hvp, the product of a Hessian with a vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Unpack

from bwcompiler import ops, tree
from bwcompiler.api.programs.functions import JitFunction, P
from bwcompiler.api.programs.kept import kept
from bwcompiler.api.transforms.options import Options, TransformOptions
from bwcompiler.api.transforms.reverse import check_arguments, check_output, grad, scalar_output
from bwcompiler.api.transforms.tangents import checked_tangent, match_leaves
from bwcompiler.api.transforms.transformed import (
    Argnums,
    Outputs,
    TracedCall,
    Transformed,
    capture,
    check_function,
    inline_call,
    normalise_argnums,
    outputs_of,
    traced_call,
    transformed,
    without_names,
)
from bwcompiler.compiler.pipeline import derive, push
from bwcompiler.errors import GradientError, SignatureError
from bwcompiler.ir.graph import Graph, inline
from bwcompiler.ir.op import Value, constant
from bwcompiler.ir.types import I64, TensorType
from bwcompiler.ops.broadcasting import add_batch_axis
from bwcompiler.ops.calls.custom import custom_call, custom_link
from bwcompiler.passes.batching.batch import batch_graph
from bwcompiler.passes.batching.batch_last import has_last_axis_rules, last_axis_added
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, ONE

LONG = 16                                  # from this many columns on, tangents have their batch axis last, for vectorisation along it
Rows = Callable[[TracedCall, Outputs], list[list[Value]]]         # per output, per differentiated leaf: its Jacobian


@kept
def jacrev(fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
           **options: Unpack[TransformOptions]) -> JitFunction[P, Any]:
    """The Jacobian of fun: shape output.shape + argument.shape, computed as one batch of pullbacks.

    Outputs and arguments may be trees; the result is then a tree of outputs of trees of arguments.  With has_aux, fun returns
    (out, aux) and the result is (Jacobian, aux).  Complex numbers: as for `grad`.  Raises GradientError for integer arguments or
    outputs, and for complex outputs without holomorphic=True.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jacrev(lambda x: x * x)(np.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacobian(_by_pullbacks, jacrev, fun, argnums, has_aux, holomorphic, Options.of("jacrev", options))


@kept
def jacfwd(fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
           **options: Unpack[TransformOptions]) -> JitFunction[P, Any]:
    """The Jacobian of fun as `jacrev` gives it, computed as one batch of tangents: cheaper if outputs have more elements than arguments.

    Outputs may be complex, but arguments only with holomorphic=True.  Otherwise raises the errors of `jacrev`, and those of `jvp` for
    ops without a forward derivative.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jacfwd(lambda x: x * x)(np.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacobian(_by_tangents, jacfwd, fun, argnums, has_aux, holomorphic, Options.of("jacfwd", options))


@kept
def jacobian(fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
             **options: Unpack[TransformOptions]) -> JitFunction[P, Any]:
    """The Jacobian of fun, by the cheaper of `jacfwd` and `jacrev`: forward mode if the arguments have no more elements than the outputs.

    Functions with a `custom_vjp` are differentiated in reverse mode.  Shapes, dtypes and errors (it raises GradientError) as for `jacrev`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.jacobian(lambda x: np.array([x[0], x[0] * x[1], x[1]]))(np.array([1.0, 2.0])).tolist()
    [[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]]
    """
    return _jacobian(_by_the_cheaper, jacobian, fun, argnums, has_aux, holomorphic, Options.of("jacobian", options))


def _jacobian(rows: Rows, transform: Callable[..., Any], fun: Callable[P, Any], argnums: Argnums, has_aux: bool,
              holomorphic: bool, options: Options) -> Transformed[P, Any]:
    def traced(*args: Any, **kwargs: Any) -> Any:
        call = traced_call(fun, args, kwargs, argnums, options)
        outputs = outputs_of(call.result, has_aux)
        for number in outputs.numbers:
            output = call.result.graph.outputs[number]
            if rows is not _by_tangents or holomorphic or not output.dtype.is_complex:
                check_output(output, "a Jacobian", holomorphic)
        if holomorphic:
            check_arguments(call, "a Jacobian")
        elif rows is _by_tangents:
            _check_real_arguments(call)
        found = tree.unflatten(outputs.treedef, [call.per_argument(row) for row in rows(call, outputs)])
        return (found, outputs.aux(inline_call(call))) if has_aux else found

    return transformed(fun, traced, "jacobian", options, transform, argnums, has_aux, holomorphic, argnums=argnums)


def _check_real_arguments(call: TracedCall) -> None:
    for leaf in call.wrt:
        dtype, name = call.result.argument_types[leaf].type.dtype, call.result.input_names[leaf]
        if dtype.is_complex:
            raise GradientError(f"jacfwd: {name} has dtype {dtype.numpy}, along which there are two derivatives\n"
                                "  hint: holomorphic=True for a holomorphic function, or bw.jacrev for one of real values")


def _by_the_cheaper(call: TracedCall, outputs: Outputs) -> list[list[Value]]:
    graph = call.result.graph
    arguments = sum(graph.inputs[k].type.size for k in call.wrt)
    results = sum(graph.outputs[k].type.size for k in outputs.numbers)
    two = any(graph.inputs[k].dtype.is_complex for k in call.wrt) and not any(graph.outputs[k].dtype.is_complex for k in outputs.numbers)
    forwards = arguments <= results and not two and not _has_pullbacks_only(graph)      # two: a complex argument has two real directions
    return (_by_tangents if forwards else _by_pullbacks)(call, outputs)


def _has_pullbacks_only(graph: Graph) -> bool:
    """Whether there is a `custom_vjp`, whose user-given rule is only for cotangents."""
    return any(not value.attrs["rule"].has_tangents if value.op in (custom_call, custom_link) else any(
        _has_pullbacks_only(value.attrs[region]) for region in value.op.regions) for value in graph.body)


def _as_second(call: TracedCall, outputs: Outputs) -> list[list[Value]]:
    return (_by_pullbacks if _has_pullbacks_only(call.result.graph) else _by_tangents)(call, outputs)


def _by_pullbacks(call: TracedCall, outputs: Outputs) -> list[list[Value]]:
    return [_pulled_rows(call, number) for number in outputs.numbers]


def _pulled_rows(call: TracedCall, number: int) -> list[Value]:
    """Per differentiated leaf, the derivative of output `number`: the pullback mapped over the unit seeds."""
    source = call.result.graph
    output = source.outputs[number]
    joint = derive(source, call.wrt, [INPUT_SEED if k == number else None for k in range(len(source.outputs))])
    positions = [position for position in joint.cotangents if position is not None]
    seed = joint.seeds[number]
    assert seed is not None
    graph = joint.graph.replace(outputs=[joint.graph.outputs[position] for position in positions])
    found = _along_units(graph, seed, output.type, [*call.inputs(_unit_vectors(output.type)), *map(capture, joint.captured)])
    rows = []
    for position, k in zip(joint.cotangents, call.wrt, strict=True):
        argument = source.inputs[k]
        shape = (*output.shape, *argument.shape)
        if position is None:
            rows.append(ops.full(value=0.0, shape=shape, dtype=argument.dtype))
        else:
            rows.append(ops.reshape(next(found), shape=shape))
    return rows


def _along_units(graph: Graph, unit: int, type_: TensorType, inputs: Sequence[Value], last: bool = False) -> Iterator[Value]:
    """The outputs of a graph for each unit vector of type `type_` as input number `unit`, stacked on a new first or last axis.

    inputs  with the array of all unit vectors at position `unit`.  A single number has one unit vector, so nothing is mapped.
    """
    if type_.size == 1:
        one = ops.full(value=1.0, shape=type_.shape, dtype=type_.dtype)
        return iter(inline(graph, [*inputs[:unit], one, *inputs[unit + 1:]]))
    size = type_.size
    batched, flags = batch_graph(graph, [k == unit for k in range(len(graph.inputs))], size, last, graph.inputs[unit])
    repeated = last_axis_added if last else add_batch_axis
    return (value if flag else repeated(value, size) for value, flag in zip(inline(batched, inputs), flags, strict=True))


def _by_tangents(call: TracedCall, outputs: Outputs) -> list[list[Value]]:
    columns = [_pushed_columns(call, leaf, outputs) for leaf in call.wrt]
    return [[column[k] for column in columns] for k in range(len(outputs.numbers))]


def _pushed_columns(call: TracedCall, leaf: int, outputs: Outputs) -> list[Value]:
    """Per output, its derivative with respect to one leaf: the tangent mapped over the unit vectors."""
    source = call.result.graph
    argument = source.inputs[leaf]
    size = argument.type.size
    pushed = push(source, [leaf], [k in outputs.numbers for k in range(len(source.outputs))])
    positions = [position for position in pushed.tangents if position is not None]
    graph = pushed.graph.replace(outputs=[pushed.graph.outputs[position] for position in positions])
    last = size >= LONG and has_last_axis_rules(graph)               # then nothing has to be transposed
    inputs = [*call.inputs(_unit_vectors(argument.type, last)), *map(capture, pushed.captured)]
    found = _along_units(graph, pushed.seeds[0], argument.type, inputs, last)
    columns = []
    for number in outputs.numbers:
        output = source.outputs[number]
        shape = (*output.shape, *argument.shape)
        if pushed.tangents[number] is None:
            columns.append(ops.full(value=0.0, shape=shape, dtype=output.dtype))
            continue
        if last:
            columns.append(ops.reshape(next(found), shape=shape))
            continue
        rows = ops.reshape(next(found), shape=(size, *output.shape))
        rows = ops.transpose(rows, axes=(*range(1, rows.rank), 0))         # before axes are merged, so that nothing is stored twice
        columns.append(ops.reshape(rows, shape=shape))
    return columns


def _unit_vectors(type_: TensorType, last: bool = False) -> Value:
    """The identity matrix, with its rows (or columns) reshaped to the shape of the type."""
    size = type_.size
    row = ops.iota(shape=(size, size), axis=0, dtype=I64)
    column = ops.iota(shape=(size, size), axis=1, dtype=I64)
    eye = ops.cast(ops.equal(row, column), dtype=type_.dtype)
    return ops.reshape(eye, shape=(*type_.shape, size) if last else (size, *type_.shape))


# ----- second derivatives
@kept
def hessian(fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
            **options: Unpack[TransformOptions]) -> JitFunction[P, Any]:
    """The Hessian of a scalar function, of shape argument.shape + argument.shape: computed by forward mode over reverse mode
    (reverse over reverse for functions with a `custom_vjp`).

    It has the dtype of the gradient.  For several arguments or trees, the result is a tree of such arrays.  Raises the errors of
    `value_and_grad`.  `hvp` computes the product of a Hessian with a vector without the matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.hessian(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    check_function(fun, "hessian", argnums)
    chosen = Options.of("hessian", options)
    gradient = grad(fun, argnums, has_aux, holomorphic, **options)
    made: Transformed[P, Any] = _jacobian(_as_second, hessian, gradient, argnums, has_aux, holomorphic, chosen)
    made.made_by = (hessian, (fun, argnums, has_aux, holomorphic), chosen)
    return made


@kept
def hvp(fun: Callable[..., Any], argnums: Argnums = 0, **options: Unpack[TransformOptions]) -> Any:
    """A function of (*args, v): the product of the Hessian of a scalar function with v, without the matrix.

    v has the tree, shapes and dtypes of args[argnums] (a tuple of these if argnums is one), as has the result.  Raises TangentError
    for a v that does not fit, otherwise errors as for `value_and_grad` and `jvp`.  v comes last, after all arguments of the function:
    SciPy's `hessp(x, v, *args)` is `lambda x, v, *args: bw.hvp(fun)(x, *args, v)`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.hvp(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]), np.array([1.0, 10.0])).tolist()
    [6.0, 120.0]
    """
    check_function(fun, "hvp", argnums)
    chosen = Options.of("hvp", options)

    def traced(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 2:
            raise SignatureError("hvp: the last positional argument is v, the vector that the Hessian is multiplied with, after those of "
                                 f"the function; there {'is one argument' if args else 'are none'}\n  hint: bw.hvp(f)(x, v)")
        call = traced_call(fun, args[:-1], kwargs, argnums, chosen)
        return call.per_argument(_product(call, args[-1]))

    made = transformed(fun, without_names(traced), "hvp", chosen.by_position(fun, 1), hvp, argnums)
    made.made_by = (hvp, (fun, argnums), chosen)
    return made


def _product(call: TracedCall, v: Any) -> list[Value]:
    """Per differentiated leaf, the tangent of its cotangent."""
    result = call.result
    given = _matched_vector(call, v)
    number = scalar_output(result, range(len(result.outputs)), "hvp")
    joint = derive(result.graph, call.wrt, [ONE if k == number else None for k in range(len(result.graph.outputs))])
    present = [k for k, position in zip(call.wrt, joint.cotangents, strict=True) if position is not None]
    graph = joint.graph.replace(outputs=[joint.graph.outputs[position] for position in joint.cotangents if position is not None])
    if _has_pullbacks_only(graph):
        found = _pulled_product(call, graph, present, given, joint.captured)
    else:
        found = _pushed_product(call, graph, present, given, joint.captured)
    return [found[k] if k in found else constant(0.0, result.graph.inputs[k].type) for k in call.wrt]


def _pushed_product(call: TracedCall, graph: Graph, leaves: Sequence[int], v: Mapping[int, Value],
                    captured: Sequence[Any]) -> dict[int, Value]:
    """leaf -> the tangent of its cotangent, unless it is zero; `graph` computes the cotangents of `leaves`."""
    pushed = push(graph, list(v))
    found = inline(pushed.graph, [*call.inputs(*v.values()), *map(capture, captured), *map(capture, pushed.captured)])
    return {k: found[position] for k, position in zip(leaves, pushed.tangents, strict=True) if position is not None}


def _pulled_product(call: TracedCall, graph: Graph, leaves: Sequence[int], v: Mapping[int, Value],
                    captured: Sequence[Any]) -> dict[int, Value]:
    """The same for cotangents without a forward derivative: the Hessian is symmetric, so v is pulled back through them."""
    joint = derive(graph, call.wrt, [INPUT_SEED if k in v else None for k in leaves])
    found = inline(joint.graph, [*call.inputs(*[v[k] for k in leaves if k in v]), *map(capture, captured), *map(capture, joint.captured)])
    return {k: found[position] for k, position in zip(call.wrt, joint.cotangents, strict=True) if position is not None}


def _matched_vector(call: TracedCall, v: Any) -> dict[int, Value]:
    numbers = call.leaf_numbers()
    chosen = [numbers[k] for k in normalise_argnums(call.argnums, len(numbers))]
    whole = chosen[0] if isinstance(call.argnums, int) else tuple(chosen)
    found = {number: checked_tangent(call.result, number, leaf, path) for number, leaf, path in match_leaves(whole, v, "v")}
    return dict(sorted(found.items()))
