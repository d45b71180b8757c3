"""`trace`: from a Python function and its arguments to a graph, and `inline`: a graph's body into the current record."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import BwError, DTypeError, TracerError, UnsupportedError, at
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.promotion import strong
from bwcompiler.frontend.tracing.region import Region, Storage, open_region
from bwcompiler.frontend.tracing.source import current_source, is_hidden, stop_at
from bwcompiler.frontend.tracing.tracer import ArrayTracer, ScalarTracer, Tracer, value_of
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TensorType, dtype_of, tensor


class ArgumentType:
    """What tracing needs to know of one leaf.

    weak     int or float for a Python number, else None.
    scalar   a NumPy or Python number (immutable), not a 0-d array.
    strides  in elements where the array is not in C order, else None.
    """

    __slots__ = ("scalar", "strides", "type", "weak")

    def __init__(self, type: TensorType, weak: type | None = None, scalar: bool = False,
                 strides: tuple[int, ...] | None = None) -> None:
        self.type = type
        self.weak = weak
        self.scalar = scalar
        self.strides = strides

    def __repr__(self) -> str:
        return f"{'weak ' if self.weak else ''}{self.type}"


class TraceResult:
    """A traced function.

    graph           inputs: the leaves in order, then what was lifted, then what was captured (`graph.captured` of them);
                    outputs: the output leaves, then the final values of mutated leaves, then those of assigned lifts.
    argument_types  one per leaf; `input_types` and `input_names` likewise.
    input_tree      of (args, kwargs), static arguments replaced by None.
    output_tree     of what the function returned; `outputs` are the values of its leaves.
    captured        concrete arrays, by reference (copies of those that were written to while tracing).
    mutated         leaf index -> final value.
    lifted          handles of arrays of enclosing traces that were read.
    assigned        position in `lifted` -> final value, where the function wrote to it.
    """

    __slots__ = ("argument_types", "assigned", "captured", "graph", "input_names", "input_tree", "lifted", "mutated",
                 "output_tree", "outputs")

    def __init__(self, graph: Graph, input_tree: tree.TreeDef, output_tree: tree.TreeDef, *, argument_types: list[ArgumentType],
                 input_names: list[str], outputs: tuple[Value, ...], captured: list[Any], lifted: list[Tracer],
                 mutated: dict[int, Value], assigned: dict[int, Value]) -> None:
        self.graph = graph
        self.input_tree = input_tree
        self.output_tree = output_tree
        self.argument_types = argument_types
        self.input_names = input_names
        self.outputs = outputs
        self.captured = captured
        self.lifted = lifted
        self.mutated = mutated
        self.assigned = assigned

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        return tuple([argument.type for argument in self.argument_types])

    def hidden_operands(self) -> list[Value]:
        """The values, in the current region, of the graph's inputs after the leaves."""
        region = open_region()
        return [value_of(handle) for handle in self.lifted] + [region.capture(array) for array in self.captured]


def trace(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None, *,
          static_argnums: int | Iterable[int] = (), static_argnames: str | Iterable[str] = (), name: str | None = None,
          argument_types: Sequence[ArgumentType] | None = None) -> TraceResult:
    """Run fun on handles and return what it computed.

    Leaves of args and kwargs are arrays, NumPy scalars, Python numbers, handles of an enclosing trace, or anything with
    shape and dtype.  `argument_types` overrides what the leaves say.
    """
    call = split_static(fun, args, kwargs or {}, static_argnums, static_argnames)
    leaves, input_tree = tree.flatten((call.dynamic_args, call.dynamic_kwargs))
    names = [name_of_path(path) for path in _argument_paths(call, input_tree)]
    types = list(argument_types) if argument_types is not None else [
        argument_type(leaf, where) for leaf, where in zip(leaves, names, strict=True)]
    with Region(name or str(getattr(fun, "__name__", "function"))) as region:
        inputs = [_input(region, type_, where) for type_, where in zip(types, names, strict=True)]
        handles = [_handle(storage, type_) for storage, type_ in zip(inputs, types, strict=True)]
        dynamic_args, dynamic_kwargs = tree.unflatten(input_tree, handles)
        try:
            result = run_user_function(fun, call.merge_args(dynamic_args), {**dynamic_kwargs, **call.static_kwargs})
        except Exception as error:
            ours = error if isinstance(error, BwError) else hidden_refusal(region, error)
            if ours is None:
                raise
            raise ours.with_traceback(user_traceback(error.__traceback__)) from None
        return finish(region, result, input_tree, types, names)


def run_user_function(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls it; call chains of sources end here."""
    return fun(*args, **kwargs)


stop_at(run_user_function.__code__)


def hidden_refusal(region: Region, error: Exception) -> BwError | None:
    """Our own error where NumPy replaced it by one of its own (`A[0] = x`, `np.zeros(x)`)."""
    if isinstance(error.__cause__, BwError):
        return error.__cause__
    return region.refusal if "<traced" in str(error) else None


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without this package's frames (unless BW_TRACEBACK=full)."""
    if os.environ.get("BW_TRACEBACK") == "full":
        return traceback
    kept = []
    while traceback is not None:
        if not is_hidden(traceback.tb_frame.f_code):
            kept.append(traceback)
        traceback = traceback.tb_next
    for entry in reversed(kept):
        traceback = TracebackType(traceback, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return traceback


def finish(region: Region, result: Any, input_tree: tree.TreeDef, types: list[ArgumentType], names: list[str]) -> TraceResult:
    """The graph of what a region (still open) computed."""
    leaves, output_tree = tree.flatten(result)
    outputs = tuple([_output(leaf, position, output_tree) for position, leaf in enumerate(leaves)])
    mutated = {k: storage.value for k, storage in enumerate(region.arguments)
               if storage.value is not region.argument_inputs[k]}
    assigned = {k: region.read(storage) for k, storage in enumerate(region.lifted)
                if region.read(storage) is not region.lifted_inputs[k]}
    region.settle_captures()
    graph = cut(region.name, (*region.argument_inputs, *region.lifted_inputs, *region.capture_inputs), region.record.values,
                (*outputs, *mutated.values(), *assigned.values()), captured=len(region.captured))
    lifted = [_whole(storage) for storage in region.lifted]
    return TraceResult(graph, input_tree, output_tree, argument_types=types, input_names=names, outputs=outputs,
                       captured=region.captured, lifted=lifted, mutated=mutated, assigned=assigned)


def _output(leaf: Any, position: int, output_tree: tree.TreeDef) -> Value:
    if isinstance(leaf, Tracer):
        return value_of(leaf)
    if not isinstance(leaf, bool | int | float | complex | np.generic | np.ndarray):
        path = tree.treedef_paths(output_tree, "result")[position]
        if type(leaf).__name__ == "Selection":
            raise TracerError(at(current_source(), f"{path} is x[mask] with a traced mask: the number of elements is not known "
                                 "while tracing\n  hint: return np.where(mask, x, 0), or reduce it (x[mask].sum())"))
        raise TracerError(at(current_source(), f"{path} is of type {type(leaf).__name__}; a traced function returns arrays, "
                             "numbers and containers of them"))
    return value_as(leaf)


def _whole(storage: Storage) -> Tracer:
    cls = ArrayTracer if storage.type.shape else ScalarTracer
    return cls(storage, (), storage.type, storage.type.dtype)


def _input(region: Region, argument: ArgumentType, name: str) -> Storage:
    storage = region.argument(argument.type, name)
    storage.writable = not argument.scalar
    storage.strides = argument.strides
    return storage


def _handle(storage: Storage, argument: ArgumentType) -> Tracer:
    made = _whole(storage)
    if argument.weak is not None:
        made._kind = argument.weak
    return made


# ----- arguments
def argument_type(leaf: Any, name: str = "argument") -> ArgumentType:
    """What tracing needs to know of a leaf; `name` is for errors."""
    if isinstance(leaf, Tracer):
        weak = None if strong(leaf._kind) is leaf._kind else leaf._kind
        return ArgumentType(leaf._type, weak, scalar=not leaf._storage.writable)  # type: ignore[arg-type]
    if isinstance(leaf, np.ndarray):
        return _array_type(leaf, name)
    if isinstance(leaf, np.generic):
        return ArgumentType(tensor(dtype_of(leaf.dtype)), scalar=True)
    if isinstance(leaf, bool):
        return ArgumentType(tensor(dtype_of(bool)), scalar=True)
    if isinstance(leaf, int | float):
        weak = int if isinstance(leaf, int) else float
        return ArgumentType(tensor(strong(weak)), weak, scalar=True)
    if isinstance(leaf, complex):
        raise UnsupportedError(f"{name}: complex arguments are not supported")
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return ArgumentType(tensor(dtype_of(leaf.dtype), tuple(leaf.shape)))
    if hasattr(leaf, "__array__"):
        return _array_type(np.asarray(leaf), name)
    raise TracerError(f"{name} is of type {type(leaf).__name__}, which is not an array or a number\n"
                      "  hint: make it static (static_argnums, static_argnames of jit), or bind it: functools.partial(fun, name=...)")


def _array_type(array: np.ndarray[Any, Any], name: str) -> ArgumentType:
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray | np.matrix):      # np.ma is loaded when asked for
        raise UnsupportedError(f"{name}: {type(array).__name__} is not supported; convert it with np.asarray")
    try:
        dtype = dtype_of(array.dtype)
    except (DTypeError, TypeError) as error:
        raise DTypeError(f"{name}: {error}") from None
    strides = None
    if not array.flags.c_contiguous:
        strides = tuple([stride // array.itemsize for stride in array.strides])
    return ArgumentType(tensor(dtype, array.shape), strides=strides)


class SplitCall:
    """Arguments with the static ones taken out (replaced by None, which is an empty node)."""

    __slots__ = ("dynamic_args", "dynamic_kwargs", "parameter_names", "static_args", "static_kwargs")

    def __init__(self, dynamic_args: tuple[Any, ...], dynamic_kwargs: dict[str, Any], static_args: dict[int, Any],
                 static_kwargs: dict[str, Any], parameter_names: list[str]) -> None:
        self.dynamic_args = dynamic_args
        self.dynamic_kwargs = dynamic_kwargs
        self.static_args = static_args
        self.static_kwargs = static_kwargs
        self.parameter_names = parameter_names

    def merge_args(self, dynamic: Sequence[Any]) -> list[Any]:
        """The positional arguments with the static ones back in their places."""
        return [self.static_args.get(position, value) for position, value in enumerate(dynamic)]


def split_static(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], static_argnums: int | Iterable[int],
                 static_argnames: str | Iterable[str]) -> SplitCall:
    """Which arguments are static: by position or name, each implying the other through fun's signature."""
    numbers = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
    parameters = positional_names(fun, len(args))
    positions = {number % len(args) if -len(args) <= number < 0 else number for number in numbers}
    positions |= {position for position, parameter in enumerate(parameters[:len(args)]) if parameter in names}
    names |= {parameters[position] for position in positions if position < len(parameters)}
    static_args = {position: args[position] for position in positions if position < len(args)}
    dynamic = tuple([None if position in static_args else value for position, value in enumerate(args)])
    static_kwargs = {key: value for key, value in kwargs.items() if key in names}
    return SplitCall(dynamic, {key: value for key, value in kwargs.items() if key not in names}, static_args, static_kwargs,
                     parameters)


def positional_names(fun: Callable[..., Any], count: int) -> list[str]:
    """Names of fun's positional parameters, at least `count` of them."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    names = [parameter.name for parameter in parameters
             if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]
    rest = next((parameter.name for parameter in parameters if parameter.kind is parameter.VAR_POSITIONAL), "arg")
    return names + [f"{rest}_{position - len(names)}" for position in range(len(names), count)]


def _argument_paths(call: SplitCall, input_tree: tree.TreeDef) -> list[str]:
    paths = []
    for accessor in input_tree.accessors():
        kind, key = accessor[0].entry, accessor[1].entry
        root = call.parameter_names[key] if kind == 0 else str(key)
        paths.append(accessor[2:].codify(root))
    return paths


def name_of_path(path: str) -> str:
    """A name for a value: `params['b'].w` is `params.b.w`."""
    return path.replace("['", ".").replace("']", "").replace("[", ".").replace("]", "")


# ----- inlining
def inline(graph: Graph, operands: Sequence[Value]) -> list[Value]:
    """Emit a graph's body into the current record with its inputs replaced; the values of its outputs."""
    record = open_region().record
    mapping: dict[Value, Value] = dict(zip(graph.inputs, operands, strict=True))
    saved = record.source, record.forward
    try:
        for value in graph.body:
            record.source = value.source
            record.forward = mapping.get(value.forward, value.forward) if value.forward is not None else None
            made = record.emit(value.op, tuple([mapping[x] for x in value.operands]), value.attrs, value.type)
            if made.name is None:
                made.name = value.name
            mapping[value] = made
    finally:
        record.source, record.forward = saved
    return [mapping[output] for output in graph.outputs]
