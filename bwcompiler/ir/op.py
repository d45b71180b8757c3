"""Ops (what can be computed), values (one application of an op) and the record of values being built.

An `Op` is one declaration that holds every rule: shape, derivative, batching, element rule, NumPy reference.  A `Value`
is an immutable node: op, ordered operands, attributes, type.  Calling an op makes a value and appends it to the
innermost `Record` of the thread, in topological order; graphs are cut out of records (`bwcompiler.ir.graph`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np

from bwcompiler.errors import InternalError
from bwcompiler.ir.declaration import LINEAR, Absent, Derived, Into, Joint, NotDifferentiable, OfOp, derived_jvp, problems
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.routine import Routine
from bwcompiler.ir.source import Source
from bwcompiler.ir.types import DType, TensorType, TupleType

Attributes = Mapping[str, Any]
VjpRule = Callable[..., Any]
Vjp = tuple[VjpRule | Into | NotDifferentiable, ...] | Joint | NotDifferentiable

KINDS = ("input", "constant", "elementwise", "layout", "index", "reduction", "scan", "push", "library", "region",
         "item", "check")


class Op:
    """The declaration of an operation.  Made by `define_op`; calling it applies it to values.

    kind         how it is lowered: constant/elementwise/layout/index ops have an `element` rule (one result element as
                 a scalar expression of its index), reductions a `combine`, push ops add into a buffer, library ops
                 call native code, region ops own graphs, checks fail or do nothing.
    kinds        supported dtype kinds of the operands: b, i, u, f, c.
    attributes   names of the compile-time attributes, in canonical order.
    shape        operand types and attributes -> result type; raises ShapeError.
    vjp          one rule per operand, rule(ct, out, *operands, **attrs) -> cotangent; or Joint; or not_differentiable.
                 The last rule of a variadic op stands for all further operands (`vjp_rules`).
    jvp          rule(tangents, out, *operands, **attrs) with None for a zero tangent; or a Derived (the default for elementwise ops
                 and for ops without any derivative); or absent.
    batch        rule(operands, batched, size, **attrs) -> Value with a leading axis: the op with axis 0 mapped; or absent.
    reference    NumPy function of arrays and attributes: it defines the op.
    numpy        how the op is written as NumPy source: a template such as "{0} @ {1}", which may name attributes, or a rule of
                 `bwcompiler.ops.numpy_text`; None: a call of the reference, whose source is copied if NumPy does not have it.
    ufuncs       names of the functions of NumPy (and scipy.special) that are this op alone, on operands of one dtype.
    element      rule(at, *reads, **attrs) -> Scalar; at holds one index expression per result axis; a read is called
                 with one per operand axis and has the `shape` and `dtype` of its operand (`bwcompiler.ops.rules.Read`).
    combine      the scalar operation that a reduction or scan folds elements with.
    keeps_zero   the VJP maps a zero cotangent to zero for any operand (nan and inf included).
    commutative  operands may be swapped (canonical order, CSE).
    pure         may be merged, dropped and recomputed.
    library      of a library op: the routine that computes it in native code; None: a callback of its reference.
    core_rank    of a library op: the number of last axes of its operands that form one object; those before are batch axes.
    cheap        recomputing an element costs a few cycles (no transcendental function, no memory walk).
    regions      of a region op: names of the attributes that are its graphs.
    virtual      needs no memory: an element is an element of its operand, or computed from its index (`bwcompiler.ir.access`).
    in_order     of a virtual op: it only changes the shape; elements keep their order.
    uniform      all elements are equal, or undefined.
    """

    __slots__ = ("attributes", "batch", "cheap", "combine", "commutative", "core_rank", "doc", "element", "in_order", "jvp",
                 "keeps_zero", "kind", "kinds", "library", "name", "numpy", "pure", "reference", "regions", "shape", "ufuncs",
                 "uniform", "virtual", "vjp")

    def __init__(self, name: str, kind: str, *, doc: str, attributes: tuple[str, ...], shape: Callable[..., Any],
                 vjp: Vjp, reference: Callable[..., Any], batch: Callable[..., Any] | OfOp | Absent | None,
                 jvp: Callable[..., Any] | Derived | Absent | None = None, element: Callable[..., Any] | None = None,
                 combine: str | None = None, library: Routine | None = None, numpy: str | Callable[..., Any] | None = None,
                 ufuncs: tuple[str, ...] | None = None, kinds: str = "biufc", keeps_zero: bool = False, commutative: bool = False,
                 pure: bool = True, cheap: bool = True, core_rank: int = 0, regions: tuple[str, ...] = (), virtual: bool = False,
                 in_order: bool = False, uniform: bool = False) -> None:
        self.name = name
        self.kind = kind
        self.doc = doc
        self.kinds = kinds
        self.attributes = attributes
        self.shape = shape
        self.vjp = vjp
        self.jvp = derived_jvp(kind, vjp, jvp)
        self.batch = batch.make(self) if isinstance(batch, OfOp) else batch
        self.reference = reference
        self.element = element
        self.combine = combine
        self.numpy = numpy
        self.ufuncs = ((reference.__name__,) if isinstance(reference, np.ufunc) else ()) if ufuncs is None else ufuncs
        self.keeps_zero = keeps_zero
        self.commutative = commutative
        self.pure = pure
        self.cheap = cheap
        self.regions = regions
        self.library = library
        self.core_rank = core_rank
        self.virtual = virtual
        self.in_order = in_order
        self.uniform = uniform

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (op_named, (self.name,))

    def vjp_rules(self, count: int) -> tuple[VjpRule | Into | NotDifferentiable, ...]:
        """The VJP rules of `count` operands, for an op that has one rule per operand."""
        if not isinstance(self.vjp, tuple):
            raise InternalError(f"{self.name} has no rule per operand")
        return self.vjp + self.vjp[-1:] * (count - len(self.vjp))

    def __call__(self, *operands: Value, **attrs: Any) -> Value:
        """The value of this op applied to operands, recorded in the thread's innermost record."""
        result_type = self.shape(*[operand.type for operand in operands], **attrs)
        return emit(self, operands, attrs or NO_ATTRIBUTES, result_type)


NO_ATTRIBUTES: Attributes = {}
REGISTRY: dict[str, Op] = {}
UFUNC_OPS: dict[str, Op] = {}             # name of a ufunc of NumPy or scipy.special -> the op that implements it


def define_op(name: str, kind: str, **rules: Any) -> Op:
    """Declare an op and register it under its name, which may be used once; InternalError if the declaration is incomplete."""
    if name in REGISTRY:
        raise InternalError(f"op {name} is declared twice")
    if kind not in KINDS:
        raise InternalError(f"op {name}: unknown kind {kind}")
    op = Op(name, kind, **rules)
    holes = problems(op)
    if holes:
        raise InternalError(f"op {name} has an incomplete declaration:" + "".join(f"\n  {hole}" for hole in holes))
    for ufunc in op.ufuncs:
        if ufunc in UFUNC_OPS:
            raise InternalError(f"ops {UFUNC_OPS[ufunc]} and {name} both are np.{ufunc}; give one of them ufuncs=()")
        UFUNC_OPS[ufunc] = op
    REGISTRY[name] = op
    return op


def op_named(name: str) -> Op:
    """The registered op of that name."""
    return REGISTRY[name]


class Value:
    """One application of an op: a node of the graph, and the array it computes.  Immutable once made.

    source   the user's line that made it; forward: the forward value whose derivative this is (adjoint values).
    name     a hint for printing.
    """

    __slots__ = ("__weakref__", "attrs", "forward", "name", "op", "operands", "source", "type")

    def __init__(self, op: Op, operands: tuple[Value, ...], attrs: Attributes, type: Any, name: str | None = None,
                 source: Source | None = None, forward: Value | None = None) -> None:
        self.op = op
        self.operands = operands
        self.attrs = attrs
        self.type = type
        self.name = name
        self.source = source
        self.forward = forward

    def __repr__(self) -> str:
        return f"%{self.name or self.op.name}: {self.type}"

    def with_operands(self, operands: tuple[Value, ...]) -> Value:
        """The same application on other operands of the same types; itself if the operands are unchanged."""
        if operands == self.operands:
            return self
        return Value(self.op, operands, self.attrs, self.type, self.name, self.source, self.forward)

    def with_regions(self, change: Callable[[Any], Any]) -> Value:
        """The same application with `change` applied to the graphs that it owns; itself if none changes."""
        if not self.op.regions:
            return self
        changed = {name: made for name in self.op.regions if (made := change(self.attrs[name])) is not self.attrs[name]}
        if not changed:
            return self
        return Value(self.op, self.operands, {**self.attrs, **changed}, self.type, self.name, self.source, self.forward)

    @property
    def label(self) -> str:
        """Its name, which need not be unique."""
        return self.name or self.op.name

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.type.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> DType:
        return self.type.dtype  # type: ignore[no-any-return]

    @property
    def rank(self) -> int:
        return self.type.rank  # type: ignore[no-any-return]

    def __add__(self, other: Any) -> Value:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Value:
        return _binary("subtract", other, self)

    def __mul__(self, other: Any) -> Value:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Value:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Value:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return _binary("divide", other, self)

    def __neg__(self) -> Value:
        return REGISTRY["negative"](self)


def constant(value: Any, like: TensorType) -> Value:
    """A value filled with one Python scalar."""
    return REGISTRY["full"](value=value, shape=like.shape, dtype=like.dtype)


def is_constant(value: Value) -> bool:
    """Whether value is filled with one known scalar."""
    return value.op.name == "full"


def _binary(name: str, x: Any, y: Any) -> Value:
    if not isinstance(x, Value):
        x = constant(x, y.type)
    elif not isinstance(y, Value):
        y = constant(y, x.type)
    return REGISTRY[name](x, y)


class Record:
    """The values made while it is the thread's innermost record, in order; gives them their provenance.

    captured   concrete arrays that custom derivative rules close over, with their inputs.
    """

    __slots__ = ("captured", "forward", "source", "values")

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.captured: dict[int, tuple[Any, Value]] = {}
        self.source: Source | None = None
        self.forward: Value | None = None

    def capture(self, array: Any, type: TensorType) -> Value:
        """The input that stands for a concrete array; the owner of the record adds it to its graph's captured inputs."""
        found = self.captured.get(id(array))
        if found is None:
            found = self.captured[id(array)] = (array, input_value(type, f"captured_{len(self.captured)}", self.source))
        return found[1]

    def emit(self, op: Op, operands: tuple[Value, ...], attrs: Attributes, type: Any) -> Value:
        """Append the value of op applied to operands (or, in a rewriter, its replacement)."""
        value = Value(op, operands, attrs, type, None, self.source, self.forward)
        self.values.append(value)
        return value

    def __enter__(self) -> Record:
        _state.records.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        _state.records.pop()


class _State(threading.local):
    def __init__(self) -> None:
        self.records: list[Record] = []


_state = _State()


def current_record() -> Record | None:
    """The thread's innermost record, or None outside of any."""
    return _state.records[-1] if _state.records else None


def emit(op: Op, operands: tuple[Value, ...], attrs: Attributes, type: Any) -> Value:
    """Record the value of op applied to operands, whose result type is already known."""
    records = _state.records
    if not records:
        raise InternalError(f"{op.name} applied outside of any record")
    return records[-1].emit(op, operands, attrs, type)


@contextmanager
def provenance(source: Source | None, forward: Value | None = None) -> Iterator[None]:
    """Values made inside carry this source line and forward value."""
    record = _state.records[-1]
    saved = record.source, record.forward
    record.source, record.forward = source, forward
    try:
        yield
    finally:
        record.source, record.forward = saved


def _input_shape(**_: Any) -> Any:
    raise InternalError("inputs are made by input_value")


INPUT = define_op("input", "input", doc="An argument of the graph.", attributes=(), shape=_input_shape, vjp=(),
                  batch=None, reference=_input_shape)


def input_value(type: TensorType, name: str | None = None, source: Source | None = None) -> Value:
    """A new graph input."""
    return Value(INPUT, (), NO_ATTRIBUTES, type, name, source)


def _item_shape(values: TupleType, *, index: int) -> TensorType:
    return values.items[index]


def _item_batch(operands: Sequence[Value], batched: Sequence[bool], size: Extent, *, index: int) -> Value:
    return item(operands[0], index=index)


item = define_op("item", "item", doc="Result number index of an op with several results.", attributes=("index",),
                 shape=_item_shape, vjp=Joint(lambda ct, out, operands, needs, *, index: (None,)), jvp=LINEAR,
                 batch=_item_batch, reference=lambda values, *, index: values[index], numpy="{0}[{index}]",
                 keeps_zero=True)
