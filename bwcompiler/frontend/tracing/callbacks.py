"""Python functions called by programs: `host_call`, and `Primitive`, a host function with host derivatives."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import CallbackError, SignatureError
from bwcompiler.frontend.tracing.boundary.arguments import argument_type, is_static
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.custom_rules import BothRules, CustomFunction, Rule
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.storages.region import active_region, untraced
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.types import TensorType, dtype_of, tensor
from bwcompiler.ops.calls.callback import HostFunction, array_type, concrete_shape
from bwcompiler.spellings import says_instead

_function_numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_counter = itertools.count()
PLAIN = (str, bytes, bool, int, float, complex, type(None))


class Struct:
    """An array by its type."""

    __slots__ = ("dtype", "shape")

    def __init__(self, type: TensorType) -> None:
        self.shape = concrete_shape(type)
        self.dtype = type.dtype.numpy


def host_call(fun: Callable[..., Any], spec: Any, args: Sequence[Any], kwargs: dict[str, Any] | None = None, *,
              vectorized: bool = False, none_is_zero: bool = False, raises: BaseException | None = None) -> Any:
    """fun(*args, **kwargs), which returns arrays of the types in `spec`: called now, or whenever the program runs that is traced."""
    leaves, treedef = tree.flatten((tuple(args), kwargs or {}))
    statics = {position: leaf for position, leaf in enumerate(leaves) if is_static(leaf)}
    structs, result_tree = tree.flatten(spec)
    for struct, path in zip(structs, tree.treedef_paths(result_tree, "result_spec"), strict=True):
        if not (hasattr(struct, "shape") and hasattr(struct, "dtype")):
            raise CallbackError(f"{path} is a {type(struct).__name__}; result_spec holds bw.ShapeDtypeStruct(shape, dtype), or arrays, in "
                                "the containers that the function returns")
    types = [array_type(struct) for struct in structs]
    key = _key(fun, treedef, statics, types, result_tree, vectorized, none_is_zero, raises is not None)
    host = HostFunction(fun, treedef, statics, types, result_tree, vectorized=vectorized, none_is_zero=none_is_zero,
                        raises=raises, key=key)
    arrays = [leaf for position, leaf in enumerate(leaves) if position not in statics]
    if active_region() is None and not any(isinstance(leaf, Tracer) for leaf in arrays):
        found = host.call((), [np.asarray(array) for array in arrays])
        return tree.unflatten(result_tree, [array if array.ndim else array[()] for array in found])
    return tree.unflatten(result_tree, call(_record, host, arrays))


def _record(host: HostFunction, arrays: Sequence[Any]) -> list[Tracer]:
    values = [value_of(leaf) if isinstance(leaf, Tracer) else value_as(leaf) for leaf in arrays]
    return [fresh(ops.callback(*values, host=host, result=k, batch=())) for k in range(len(host.results))]


def _key(fun: Any, treedef: tree.TreeDef, statics: dict[int, Any], *rest: Any) -> str | None:
    """A text that says all there is to know; None where that cannot be said: then no two calls are the same."""
    if not all(type(value) in PLAIN for value in statics.values()):
        return None
    try:
        number = _function_numbers.setdefault(fun, next(_counter))
    except TypeError:
        return None
    return f"{number} {treedef} {statics} {rest}"


# ----- functions with derivatives
class Primitive(CustomFunction[..., Any]):
    """A host function with host derivatives: see `bwcompiler.primitive`."""

    kind = "primitive"

    def __init__(self, fun: Callable[..., Any], result_spec: Any = None, vectorized: bool = False) -> None:
        super().__init__(fun)
        self.result_spec = result_spec
        self.vectorized = vectorized
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.jvp: Callable[..., Any] | None = None
        self.traced = False
        self._specs: dict[Any, Any] = {}

    @says_instead
    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any], *, traced: bool = False) -> Primitive:
        """Register host functions fwd(*args) -> (out, residuals) and bwd(residuals, ct) -> one cotangent per argument (None: zero).

        Residuals are arrays, in containers.  traced: fwd and bwd are NumPy code to be traced, as those of `custom_vjp` are: they may
        call other primitives, and then have derivatives themselves.  Returns the primitive.
        """
        self.fwd, self.bwd, self.traced = fwd, bwd, traced
        return self

    @says_instead
    def defjvp(self, rule: Callable[..., Any]) -> Primitive:
        """Register a host function rule(primals, tangents) -> (out, tangent); tangents of integers are None.  Returns the primitive."""
        self.jvp = rule
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = self._positional(args, kwargs)
        if active_region() is None and not any(isinstance(leaf, Tracer) for leaf in tree.leaves(args)):
            return self._call(*args)
        if self.fwd is None and self.jvp is None:
            return self._call(*args)
        return super().__call__(*args)

    def _call(self, *args: Any) -> Any:
        return host_call(self.fun, self.spec(args), args, vectorized=self.vectorized)

    def _traced_function(self) -> Callable[..., Any]:
        return self._call

    def spec(self, args: Sequence[Any]) -> Any:
        """The types of the results for arguments like these."""
        if self.result_spec is not None and not callable(self.result_spec):
            return self.result_spec
        return self._found("result", self.fun, args)

    def _found(self, what: str, fun: Callable[..., Any], args: Sequence[Any]) -> Any:
        """The types of what a host function returns: by `result_spec`, or found by calling it once with made-up numbers."""
        leaves, treedef = tree.flatten(tuple(args))
        types = tuple([None if is_static(leaf) else argument_type(leaf).type for leaf in leaves])
        key = (what, treedef, types, tuple([leaf for leaf in leaves if is_static(leaf)]))
        if key not in self._specs:
            structs = tree.unflatten(treedef, [leaf if type_ is None else Struct(type_) for leaf, type_ in zip(leaves, types, strict=True)])
            if what == "result" and self.result_spec is not None:
                self._specs[key] = self.result_spec(*structs)
            else:
                self._specs[key] = self._called(fun, structs)
        return self._specs[key]

    def _called(self, fun: Callable[..., Any], structs: Any) -> Any:
        rng = np.random.default_rng(0)
        made = tree.map(lambda leaf: _made_up(leaf, rng) if isinstance(leaf, Struct) else leaf, structs)
        name = getattr(fun, "__name__", "the function")
        try:
            with untraced():
                found = fun(*made)
        except Exception as error:
            raise CallbackError(f"{name} was called with made-up numbers, to find the types of its results, and raised "
                                f"{type(error).__name__}: {error}\n  hint: declare them, bw.primitive({name}, result_spec=...)") from error
        for leaf, path in zip(tree.leaves(found), tree.paths(found, "result"), strict=True):
            if is_static(leaf) or np.asarray(leaf).dtype.kind not in "biufc":
                raise CallbackError(f"{name}: {path} is a {type(leaf).__name__}; a host function returns arrays, in containers")
        return tree.map(lambda leaf: Struct(tensor(dtype_of(np.asarray(leaf).dtype), np.shape(leaf))), found)

    # ----- rules, as functions that are traced
    def forward_rule(self, args: Sequence[Any]) -> Any:
        """(out, residuals)."""
        assert self.fwd is not None
        if self.traced:
            return call_user(self.fwd, args, {})
        spec = self._found("residuals", self.fwd, args)
        if not isinstance(spec, tuple | list) or len(spec) != 2:
            raise CallbackError(f"{self.__name__}: fwd must return a pair (out, residuals)")
        return host_call(self.fwd, (self.spec(args), spec[1]), args, vectorized=self.vectorized)

    def push_rule(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        """(out, tangent)."""
        assert self.jvp is not None
        spec = self.spec(primals)
        changes = tree.map(lambda leaf: leaf if dtype_of(leaf.dtype).is_differentiable else None, spec)
        return host_call(self.jvp, (spec, changes), (primals, tangents), vectorized=self.vectorized, none_is_zero=True)

    def _rule(self, primal: TraceResult, primals: int) -> Rule:
        return _HostRule(self, primal, primals)


def _made_up(struct: Struct, rng: np.random.Generator) -> Any:
    kind = struct.dtype.kind
    if kind in "biu":
        return np.zeros(struct.shape, struct.dtype)
    found = rng.uniform(0.5, 1.5, struct.shape)
    return np.asarray(found + 1j * found if kind == "c" else found).astype(struct.dtype)


class _HostRule(BothRules):
    """The rules of a primitive: for cotangents, for tangents, or both."""

    def __init__(self, owner: Primitive, primal: TraceResult, primals: int) -> None:
        super().__init__(owner, primal, primals)
        self.primitive = owner

    def fwd(self) -> Callable[..., Any]:
        """What is traced."""
        return lambda *args: self.primitive.forward_rule(args)

    def bwd(self, primals: Sequence[TensorType]) -> Callable[..., Any]:
        """What is traced, for primals of these types."""
        bwd = self.primitive.bwd
        assert bwd is not None
        if self.primitive.traced:
            return bwd
        numbers = self.leaf_numbers()
        spec = tuple([tree.map(lambda k: Struct(primals[k]) if primals[k].dtype.is_differentiable else None, numbers[k]) for k in self.own])

        @functools.wraps(bwd)
        def of_tuples(residuals: Any, ct: Any) -> Any:
            found = bwd(residuals, ct)
            return found if isinstance(found, tuple | list) or len(spec) != 1 else (found,)

        return lambda residuals, ct: host_call(of_tuples, spec, (residuals, ct), vectorized=self.primitive.vectorized, none_is_zero=True)

    def jvp(self) -> Callable[..., Any]:
        """What is traced."""
        return self.primitive.push_rule


def primitive_of(fun: Callable[..., Any], result_spec: Any, vectorized: bool) -> Primitive:
    """A primitive; SignatureError for what cannot be called."""
    if not callable(fun):
        raise SignatureError(f"primitive: a function is needed, got {type(fun).__name__}")
    return Primitive(fun, result_spec, vectorized)
