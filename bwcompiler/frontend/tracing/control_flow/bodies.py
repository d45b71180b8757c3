"""Bodies of loops and branches: tracing them, and making closed graphs by turning what they read from outside into inputs.

A body is a function that is traced in a separate region.  Arrays of enclosing regions that it uses are lifted: those that it
only reads are the same in every iteration; those that it assigns to are carried, or are results of a branch.  `closed`
gives the graphs of all regions of one op (a condition and a body, two branches) the same inputs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import DTypeError, ShapeError, TracerError, UnsupportedError, at
from bwcompiler.frontend.tracing.boundary.arguments import ArgumentType, parameter_names
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.operands import kind_of, materialise, operand
from bwcompiler.frontend.tracing.promotion import Kind, common_dtype, strong
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import Storage, open_region
from bwcompiler.frontend.tracing.trace import captured_form, trace
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array
from bwcompiler.frontend.tracing.truths import note_truth, whose
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.source import Source
from bwcompiler.ir.types import BOOL, F64, DType, TensorType, tensor
from bwcompiler.ops.rules import zero_of

PROMOTIONS = 8                 # traces until the dtypes of what is carried must have settled


class Leaf(NamedTuple):
    """What a loop carries in one leaf: value on entry, what promotion sees of it, whether NumPy has an immutable scalar there.

    truth   whose a truth value it is (`tracing.truths`).
    """

    value: Value
    kind: Kind
    scalar: bool
    truth: bool | None = None

    def promoted(self, kind: Kind) -> Leaf:
        """The leaf on entry as another kind."""
        dtype = strong(kind)
        value = self.value if self.value.dtype is dtype else ops.cast(self.value, dtype=dtype)
        return self._replace(value=value, kind=kind)

    def argument(self) -> ArgumentType:
        """What the body's parameter is."""
        weak = None if isinstance(self.kind, DType) else self.kind
        return ArgumentType(tensor(strong(self.kind), self.value.shape), weak, self.scalar)

    def handle(self, value: Value) -> Tracer:
        """The handle of the leaf after the loop."""
        if value.rank == 0 and not self.scalar:
            return fresh_array(value)
        return fresh(value, None if isinstance(self.kind, DType) else self.kind)


def entry_leaf(x: Any) -> Leaf:
    """A leaf as it is on entry, in the current region."""
    if isinstance(x, Tracer):
        return Leaf(value_of(x), x._kind, not x._storage.writable, whose(x))
    payload, kind = operand(x)
    scalar = not isinstance(x, np.ndarray | list | tuple)
    return Leaf(materialise(payload, strong(kind), payload.shape), kind, scalar, whose(x))


class StandIn:
    """In the place of an argument of known type: it has no number that could be asked for."""

    __slots__ = ("dtype", "shape")

    def __init__(self, type_: TensorType) -> None:
        self.shape = type_.shape
        self.dtype = type_.dtype.numpy


class Traced(NamedTuple):
    """A traced body.  kinds: what promotion sees of the output leaves; truths: whose these are; truths_asked: whether it mattered."""

    result: TraceResult
    kinds: list[Kind]
    truths: list[bool | None]
    truths_asked: bool

    def paths(self, root: str) -> list[str]:
        return tree.treedef_paths(self.result.output_tree, root)


def trace_body(fun: Callable[..., Any], parameter: str, name: str, treedef: tree.TreeDef | None = None,
               arguments: Sequence[ArgumentType] = (), truths: Sequence[bool | None] = ()) -> Traced:
    """fun(tree of handles), or fun() without a tree, traced in a region of its own; `name` and `parameter` are for texts.

    truths: whose truth values the handles are, where that is known.
    """
    kinds: list[Kind] = []
    given: list[bool | None] = []

    def run(*args: Any) -> Any:
        for leaf, truth in zip(tree.leaves(args) if truths else (), truths, strict=True):
            if leaf._type.dtype is BOOL:
                note_truth(leaf, truth)
        result = captured_form(fun)(*args)
        leaves = tree.leaves(result)
        kinds[:] = map(_kind, leaves)
        given[:] = map(whose, leaves)
        return result

    args: tuple[Any, ...] = ()
    if treedef is not None:
        args = (tree.unflatten(treedef, [StandIn(argument.type) for argument in arguments]),)
        run.__signature__ = inspect.Signature([inspect.Parameter(  # type: ignore[attr-defined]
            parameter, inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    policy = open_region().policy
    was_asked = policy is not None and policy.truths_asked
    if policy is not None:
        policy.truths_asked = False
    traced = trace(run, args, name=name, argument_types=arguments)
    is_asked = policy is not None and policy.truths_asked
    if policy is not None:
        policy.truths_asked = is_asked or was_asked
    checks = len(traced.outputs) - len(kinds)      # of a body that only checks
    return Traced(traced, kinds + [F64] * checks, given + [False] * checks, is_asked)


def _kind(leaf: Any) -> Kind:
    return kind_of(leaf) if isinstance(leaf, Tracer | bool | int | float | complex | np.generic | np.ndarray) else float


def parameter_name(fun: Callable[..., Any], position: int, default: str) -> str:
    """What the user calls a parameter."""
    names = parameter_names(fun)
    return names[position] if position < len(names) else default


# ----- promotion
def joined(x: Kind, y: Kind) -> Kind:
    """What promotion sees of something that is one or the other: Python numbers stay weak only among themselves."""
    if x is y:
        return x
    if isinstance(x, DType) or isinstance(y, DType):
        return common_dtype((x, y))
    order = (int, float, complex)
    return order[max(order.index(x), order.index(y))]


def promoted_kinds(what: str, before: Sequence[Kind], after: Sequence[Kind], paths: Sequence[str], outputs: Sequence[Value],
                   source: Source | None) -> list[Kind]:
    """What the leaves of a carry are, if they are one kind on entry and another after the body; raises DTypeError."""
    found = [joined(x, y) for x, y in zip(before, after, strict=True)]
    for x, kind, path, output in zip(before, found, paths, outputs, strict=True):
        if isinstance(x, DType) and _class(x) != _class(strong(kind)):
            raise DTypeError(at(output.source or source, f"{what}: {path} is {x.numpy} on entry and {output.dtype.numpy} after the body\n"
                                f"  hint: start with {strong(kind).numpy}, or convert the result (.astype({x.numpy}))"))
    return found


def _class(dtype: DType) -> str:
    return {"i": "integer", "u": "integer"}.get(dtype.kind, dtype.kind)


def require_tree(what: str, found: tree.TreeDef, expected: tree.TreeDef, source: Source | None) -> None:
    """Raise TracerError unless a body returns the structure that it got."""
    if found != expected:
        hint = "" if found.num_leaves else "\n  hint: is a `return` missing in the body? (* is a number or an array)"
        raise TracerError(at(source, f"{what} has the structure {shown(expected)} on entry and {shown(found)} after the body{hint}"))


def shown(treedef: tree.TreeDef, leaves: Sequence[Any] = ()) -> str:
    """A structure with these leaves, else a star for each, as messages have it."""
    return str(tree.unflatten(treedef, [_Word(str(leaf)) for leaf in leaves] or [_Word("*")] * treedef.num_leaves))


class _Word:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def require_shapes(what: str, expected: Sequence[Leaf], outputs: Sequence[Value], paths: Sequence[str], source: Source | None) -> None:
    """Raise ShapeError unless the outputs of a body have the shapes of what is carried."""
    for leaf, output, path in zip(expected, outputs, paths, strict=True):
        if leaf.value.shape != output.shape:
            raise ShapeError(at(output.source or source, f"{what}: {path} has shape {leaf.value.shape} on entry and {output.shape} after "
                                "the body"))


def as_kind(values: Sequence[Value], kinds: Sequence[Kind]) -> list[Value]:
    """The values in the dtypes of kinds, in the current record."""
    return [value if value.dtype is strong(kind) else ops.cast(value, dtype=strong(kind))
            for value, kind in zip(values, kinds, strict=True)]


# ----- what is read and assigned outside
class Outer:
    """What bodies touch of enclosing regions: arrays that one of them assigns to, then those that are only read, then concrete ones."""

    def __init__(self, results: Iterable[TraceResult]) -> None:
        handles: dict[Storage, Tracer] = {}
        assigned: dict[Storage, Tracer] = {}
        arrays: dict[int, Any] = {}
        for result in results:
            for number, handle in enumerate(result.lifted):
                handles.setdefault(handle._storage, handle)
                if number in result.assigned:
                    assigned[handle._storage] = handle
            for array in result.captured:
                arrays.setdefault(id(array), array)
        self.assigned = list(assigned.values())
        self.read = [handle for storage, handle in handles.items() if storage not in assigned]
        self.arrays = list(arrays.values())

    def assigned_values(self) -> list[Value]:
        """In the current region."""
        return [value_of(handle) for handle in self.assigned]

    def read_values(self) -> list[Value]:
        """In the current region."""
        region = open_region()
        return [value_of(handle) for handle in self.read] + [region.capture(array) for array in self.arrays]

    def assign(self, values: Iterable[Value]) -> None:
        """Write what the op gave for the assigned arrays."""
        for handle, value in zip(self.assigned, values, strict=True):
            assign(handle, value)

    def inputs(self, result: TraceResult) -> tuple[list[Value], list[Value], list[Value]]:
        """Of a traced body: the inputs that stand for assigned arrays, their values in the end, the inputs of what is only read."""
        first = len(result.argument_types)
        places = {handle._storage: number for number, handle in enumerate(result.lifted)}
        captures = {id(array): number for number, array in enumerate(result.captured)}
        inputs = result.graph.inputs

        def of(handle: Tracer) -> Value:
            number = places.get(handle._storage)
            return input_value(handle._type) if number is None else inputs[first + number]

        def of_array(array: Any) -> Value:
            number = captures.get(id(array))
            if number is None:
                return input_value(open_region().capture(array).type)
            return inputs[first + len(result.lifted) + number]

        carried = [of(handle) for handle in self.assigned]
        final = []
        for handle, value in zip(self.assigned, carried, strict=True):
            number = places.get(handle._storage)
            final.append(value if number is None else result.assigned.get(number, value))
        return carried, final, [*[of(handle) for handle in self.read], *[of_array(array) for array in self.arrays]]


def require_pure(what: str, result: TraceResult) -> None:
    """Raise UnsupportedError where a function that only decides assigns to arrays."""
    if result.mutated or result.assigned:
        raise UnsupportedError(at(current_source(), f"{what} assigns to an array; only the body may"))


def added() -> Record:
    """A record for what is added to a body; it has the user's line of the call that is being handled."""
    record = Record()
    record.source = open_region().record.source
    return record


def region_graph(result: TraceResult, inputs: Sequence[Value], record: Record, outputs: Sequence[Value], index: Index | None = None,
                 ) -> Graph:
    """The closed graph of a traced body and of what `record` adds to it."""
    return cut(result.graph.name, inputs, [*result.graph.body, *record.values], outputs, index=index)


def zeros(value: Value) -> Value:
    """Zeros like a value, in the current record."""
    return ops.full(value=zero_of(value.dtype), shape=value.shape, dtype=value.dtype)
