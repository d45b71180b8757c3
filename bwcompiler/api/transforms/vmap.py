"""vmap: turns a function of one element into a function of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

from bwcompiler import ops, tree
from bwcompiler.api.programs.kept import kept
from bwcompiler.api.transforms.options import Options, TransformOptions
from bwcompiler.api.transforms.transformed import capture, operand_values, transformed, without_names
from bwcompiler.errors import ShapeError, SignatureError, UnsupportedError
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, ArgumentType, argument_type, parameter_names, take_apart
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.trace import TraceOptions, trace_arguments
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.graph import inline
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TensorType
from bwcompiler.passes.batching.batch import batch_graph

Axes = Any                     # an integer, None, or a container of them: a prefix of the tree of the argument or result


@kept
def vmap(fun: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0, *, axis_size: int | None = None,
         **options: Unpack[TransformOptions]) -> Any:
    """fun mapped over an axis of its arguments, computed for all elements at once.

    in_axes    per positional argument the mapped axis, or None for an argument that is the same for all elements; one entry for all; or
               a container like the argument with an axis or None for each part.  Axes may be negative.  Keyword arguments are mapped
               over axis 0.
    out_axes   likewise, the position of the new axis in the results; None for a result that does not depend on mapped arguments.
    axis_size  the number of elements; needed only if nothing is mapped.

    The returned function computes np.stack of fun over the elements, with the dtypes of fun's results; derivatives, `jit` and other maps
    compose with it, and rules of `custom_vjp` and `custom_jvp` are used.  Raises ShapeError (a ValueError) for axes that do not exist or
    differ in extent, and for a mapped result with out_axes None; SignatureError (a TypeError) for axes that do not match the arguments;
    UnsupportedError if fun assigns to an array from outside, and the errors of tracing fun.

    >>> import numpy as np, bwcompiler as bw
    >>> dot = lambda x, y: np.sum(x * y)
    >>> bw.vmap(dot)(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0], [0.0, 2.0]])).tolist()
    [3.0, 8.0]
    >>> bw.vmap(dot, in_axes=(None, 1))(np.array([1.0, 2.0]), np.eye(2)).tolist()
    [1.0, 2.0]
    """
    in_axes = _checked_axes(in_axes, "in_axes")
    out_axes = _checked_axes(out_axes, "out_axes")
    chosen = Options.of("vmap", options)

    def traced(*args: Any, **kwargs: Any) -> Any:
        arguments = take_apart(fun, args, kwargs, **chosen.statics)
        batch = _Batch.of(fun, arguments, len(args), in_axes, axis_size)
        return batch.run(fun, arguments, out_axes)

    again = functools.partial(_again, in_axes, out_axes, axis_size)
    made = transformed(fun, without_names(traced), "vmap", chosen.by_position(fun), again)
    made.made_by = (*made.made_by[:2], chosen)
    return made


def _again(in_axes: Axes, out_axes: Axes, axis_size: int | None, fun: Callable[..., Any], **options: Any) -> Any:
    return vmap(fun, in_axes, out_axes, axis_size=axis_size, **options)


def _checked_axes(axes: Axes, name: str) -> Axes:
    """The axes as integers or None; a list with an entry per argument becomes a tuple."""
    if isinstance(axes, list):
        axes = tuple(axes)
    for axis in tree.leaves(axes):
        if isinstance(axis, bool) or not hasattr(axis, "__index__"):
            raise SignatureError(f"vmap: {name} takes integers and None, in containers like the arguments or results; got {axis!r}")
    return tree.map(lambda axis: axis.__index__(), axes)


class _Element:
    """A stand-in for one element of a mapped argument."""

    __slots__ = ("dtype", "shape")

    def __init__(self, type: TensorType, axis: int) -> None:
        self.shape = type.shape[:axis] + type.shape[axis + 1:]
        self.dtype = type.dtype.numpy


class _Batch(NamedTuple):
    """size: number of elements; axes: position of a leaf -> its mapped axis, or None."""

    size: int
    axes: dict[int, int | None]

    @staticmethod
    def of(fun: Callable[..., Any], arguments: Arguments, given: int, in_axes: Axes, size: int | None) -> _Batch:
        found = _leaf_axes(fun, arguments, given, in_axes)
        names = arguments.dynamic_names()
        axes: dict[int, int | None] = {}
        extents: dict[str, int] = {}
        for position, leaf, axis, name in zip(arguments.dynamic, arguments.dynamic_leaves, found, names, strict=True):
            shape: Any = argument_type(leaf, name).type.shape
            if axis is not None and not -len(shape) <= axis < len(shape):
                what = f"has shape {shape}" if shape else "is a number, which has no axes"
                raise ShapeError(f"vmap: {name} is mapped over axis {axis}, but it {what}\n"
                                 "  hint: None in in_axes for arguments that are the same for all elements")
            axes[position] = None if axis is None else axis % len(shape)
            if axis is not None:
                extents[f"axis {axis} of {name}{list(shape)}"] = shape[axis]
        if size is not None:
            extents = {"axis_size": size, **extents}
        if not extents:
            raise ShapeError("vmap: nothing is mapped over: in_axes has None for every argument\n"
                             "  hint: an axis for one of them, or axis_size=")
        if len(set(extents.values())) > 1:
            listed = ", ".join(f"{name} has {extent}" for name, extent in extents.items())
            raise ShapeError(f"vmap: the mapped axes must have one extent; {listed}")
        return _Batch(next(iter(extents.values())), axes)

    def run(self, fun: Callable[..., Any], arguments: Arguments, out_axes: Axes) -> Any:
        whole_leaves = list(arguments.leaves)
        result = self._trace(fun, arguments)
        operands = [self._first(value, position) for position, value in zip(
            arguments.dynamic, operand_values([whole_leaves[position] for position in arguments.dynamic]), strict=True)]
        flags = [self.axes[position] is not None for position in arguments.dynamic]
        graph = result.graph.replace(outputs=result.outputs)
        batched, has_axis = batch_graph(graph, [*flags, *[False] * (len(graph.inputs) - len(flags))], self.size)
        values = inline(batched, [*operands, *[value_of(handle) for handle in result.lifted], *map(capture, result.captured)])
        whole = tree.unflatten(result.output_tree, range(len(values)))
        found = list(values)
        for number, axis, path in _output_axes(out_axes, whole):
            found[number] = self._placed(values[number], has_axis[number], axis, path)
        return tree.unflatten(result.output_tree, [fresh(value) for value in found])

    def _first(self, value: Value, position: int) -> Value:
        """An argument with its mapped axis moved to the front."""
        axis = self.axes[position]
        return value if axis is None else _moved(value, axis, 0)

    def _trace(self, fun: Callable[..., Any], arguments: Arguments) -> TraceResult:
        types: list[ArgumentType] = []
        for position, leaf, name in zip(arguments.dynamic, arguments.dynamic_leaves, arguments.dynamic_names(), strict=True):
            axis, type_ = self.axes[position], argument_type(leaf, name)
            if axis is not None:
                element = arguments.leaves[position] = _Element(type_.type, axis)
                type_ = ArgumentType(argument_type(element, name).type, scalar=not element.shape)
            types.append(type_)
        result = trace_arguments(fun, arguments, TraceOptions(argument_types=types))
        if result.assigned:
            raise UnsupportedError(f"vmap: {result.graph.name} assigns to an array from outside of it, once for every element\n"
                                   "  hint: return the values, and assign them outside of the mapped function")
        return result

    def _placed(self, value: Value, has_axis: bool, axis: int | None, path: str) -> Value:
        """A result with the batch axis at the position given by out_axes."""
        if axis is None:
            if has_axis:
                raise ShapeError(f"vmap: {path} is None, but that result differs from element to element\n"
                                 "  hint: an axis instead of None")
            return value
        if not has_axis:
            value = ops.broadcast(value, shape=(self.size, *value.shape), axes=tuple(range(1, value.rank + 1)))
        if not -value.rank <= axis < value.rank:
            raise ShapeError(f"vmap: {path} is {axis}, but that result has {value.rank} axes with the new one")
        return _moved(value, 0, axis % value.rank)


def _moved(value: Value, source: int, target: int) -> Value:
    """np.moveaxis."""
    order = [axis for axis in range(value.rank) if axis != source]
    order.insert(target, source)
    return value if order == sorted(order) else ops.transpose(value, axes=tuple(order))


# ----- axes
def _leaf_axes(fun: Callable[..., Any], arguments: Arguments, given: int, in_axes: Axes) -> list[int | None]:
    """Per dynamic leaf its axis.  given: the number of positional arguments in the call; the others are mapped over axis 0."""
    numbers = {position: k for k, position in enumerate(arguments.dynamic)}
    args, _ = tree.unflatten(arguments.treedef, [numbers.get(position, -1) for position in range(len(arguments.leaves))])
    found: list[int | None] = [0] * len(numbers)
    if isinstance(in_axes, tuple) and len(in_axes) != given:
        raise SignatureError(f"vmap: in_axes has {len(in_axes)} entries, but {getattr(fun, '__name__', 'the function')} was called with "
                             f"{given} positional arguments")
    names = [*parameter_names(fun), *[f"args[{k}]" for k in range(len(args))]]
    for k, argument in enumerate(args[:given]):
        axes = in_axes[k] if isinstance(in_axes, tuple) else in_axes
        root = f"in_axes[{k}]" if isinstance(in_axes, tuple) else "in_axes"
        try:
            rows = tree.match_prefix(axes, argument, root)
        except ValueError as error:
            raise SignatureError(f"vmap: {error}: the entry for {names[k]} must be an integer, None, or a container like it") from None
        for axis, part, _ in rows:
            for number in tree.leaves(part):
                if number >= 0:
                    found[number] = axis
    return found


def _output_axes(out_axes: Axes, whole: Any) -> list[tuple[int, int | None, str]]:
    """(number of an output, its axis, the path of its entry in out_axes)."""
    try:
        rows = tree.match_prefix(out_axes, whole, "out_axes")
    except ValueError as error:
        raise SignatureError(f"vmap: {error}: out_axes must be like the result of the function") from None
    return [(number, axis, path) for axis, part, path in rows for number in tree.leaves(part)]

