"""`jit`: compiled functions.  A call goes straight to native code; the first of a signature traces and compiles."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.api.executables import Compiled, compile_graph, flat_tree
from bwcompiler.collector import collector_paused
from bwcompiler.errors import SignatureError
from bwcompiler.frontend.tracing.region import active_region
from bwcompiler.frontend.tracing.trace import ArgumentType, TraceResult, argument_type, split_static, trace
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.plan import ArgumentKind, Container, Leaf, Tree, leaf_indices
from bwcompiler.locks import RenewedLock
from bwcompiler.runtime.executable import CompiledFunction

Entry = Callable[..., Any]


class JitFunction(CompiledFunction):
    """What `jit` returns: call it like the function.  Each new signature (shapes, dtypes, tree, static values) compiles once."""

    def __init__(self, fun: Callable[..., Any], static_argnums: int | Iterable[int] = (), static_argnames: str | Iterable[str] = (),
                 mutates: bool | Any = True) -> None:
        self.fun = fun
        self.static_argnums = static_argnums
        self.static_argnames = static_argnames
        self.mutates = mutates
        self.entries: dict[Any, Specialisation] = {}
        self.last: Specialisation | None = None
        self._compiling = RenewedLock()
        functools.update_wrapper(self, fun, updated=())
        self._install(self._slow)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _slow(self, *args: Any, **kwargs: Any) -> Any:
        """Any call that the installed native entry does not take."""
        if active_region() is not None:
            return self.fun(*args, **kwargs)
        return self.specialise(args, kwargs).call(args, kwargs)

    def specialise(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Specialisation:
        """The compiled specialisation for these arguments."""
        call = split_static(self.fun, args, kwargs, self.static_argnums, self.static_argnames)
        leaves, treedef = tree.flatten((call.dynamic_args, call.dynamic_kwargs))
        fixed: dict[Any, Any] = {**call.static_args, **call.static_kwargs}
        statics = tuple((k, _static_key(v)) for k, v in sorted(fixed.items(), key=str))
        key = (treedef, statics, tuple([_leaf_key(leaf) for leaf in leaves]))
        found = self.entries.get(key)
        if found is None:
            with self._compiling:
                found = self.entries.get(key)
                if found is None:
                    found = self.entries[key] = Specialisation(self, args, kwargs, leaves, treedef, call)
                    if not statics and found.native is not None:
                        self.last = found
                        self._install(found.native)
        return found

    def clear_cache(self) -> None:
        """Forget all compilations of this function."""
        self.entries.clear()
        self._install(self._slow)


def _static_key(value: Any) -> Any:
    if isinstance(value, np.ndarray | Tracer):
        raise SignatureError("static arguments must be hashable Python values; an array cannot be static")
    try:
        hash(value)
    except TypeError:
        raise SignatureError(f"static arguments must be hashable, got {type(value).__name__}") from None
    return (type(value), value)


def _leaf_key(leaf: Any) -> Any:
    if type(leaf) is np.ndarray:
        flags = leaf.flags
        return (leaf.dtype, leaf.shape, None if flags.c_contiguous else leaf.strides)
    if isinstance(leaf, np.generic):
        return (leaf.dtype, "scalar")
    if isinstance(leaf, bool | int | float | complex):
        return type(leaf)
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return (np.dtype(leaf.dtype), tuple(leaf.shape), type(leaf).__name__)
    return type(leaf)


class Specialisation:
    """One compilation: the traced program, its executable, and how calls reach it.

    direct   whether the native entry walks the caller's containers itself; else it gets and returns leaves.
    native   the builtin that takes calls with natively guarded arguments, or None where Python has to prepare the call.
    """

    def __init__(self, owner: JitFunction, args: Sequence[Any], kwargs: dict[str, Any], leaves: list[Any], treedef: tree.TreeDef,
                 call: Any) -> None:
        self.owner = owner
        with collector_paused():
            self.traced: TraceResult = trace(owner.fun, args, kwargs, static_argnums=owner.static_argnums,
                                             static_argnames=owner.static_argnames)
        self.treedef = treedef
        count = len(leaves)
        types: list[ArgumentType] = self.traced.argument_types
        kinds = tuple([argument_kind(type_, leaf) for type_, leaf in zip(types, leaves, strict=True)])
        argument_trees = None if kwargs or call.static_args else plan_trees(tree.unflatten(treedef, range(count))[0])
        results = len(self.traced.outputs)
        self.result_tree = tree.unflatten(self.traced.output_tree, range(results))
        extra = len(self.traced.graph.outputs) - results
        result = plan_tree(self.result_tree) if not extra else None
        self.direct = argument_trees is not None and result is not None
        arguments = argument_trees if self.direct and argument_trees is not None else tuple(Leaf(k) for k in range(count))
        if not self.direct or result is None:
            result = flat_tree(results + extra)
        self.compiled: Compiled = compile_graph(self.traced.graph, arguments, kinds, result, getattr(owner, "__name__", "compiled"))
        self.captured = self.traced.captured
        self.entry: Entry = self._bind()
        self.native: Entry | None = self.entry if self.direct and isinstance(self.entry, type(len)) else None

    def _bind(self) -> Entry:
        executable = self.compiled.executable
        if all(_is_plain(array) for array in self.captured):
            slow = self.owner._slow if self.direct else self._run_flat
            return executable.bind(slow, self.compiled.raise_error, self.captured)
        return self._run_direct if self.direct else self._run_flat

    def _run_direct(self, *args: Any) -> Any:
        leaves, _ = tree.flatten(args)
        return self._run_flat(*leaves)

    def _run_flat(self, *leaves: Any) -> Any:
        """Arguments of any layout: converted and copied as needed."""
        return self.compiled.executable.run(leaves, self.compiled.raise_error, self.captured)

    def call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run on arguments that fit this specialisation."""
        split = split_static(self.owner.fun, args, kwargs, self.owner.static_argnums, self.owner.static_argnames)
        leaves, _ = tree.flatten((split.dynamic_args, split.dynamic_kwargs))
        if self.direct:
            return self._run_flat(*leaves)
        self._refuse_shared(leaves)
        results = self.entry(*leaves)
        outputs = results[:len(self.traced.outputs)]
        self._write_back(leaves, results[len(outputs):])
        return tree.unflatten(self.traced.output_tree, outputs)

    def _refuse_shared(self, leaves: list[Any]) -> None:
        """An assignment to one argument would have to be seen through another: the trace knows them as two arrays."""
        for number in self.traced.mutated:
            for other, leaf in enumerate(leaves):
                if other != number and isinstance(leaf, np.ndarray) and np.may_share_memory(leaves[number], leaf):
                    names = self.traced.input_names
                    raise SignatureError(f"{names[number]} is assigned to and may share memory with {names[other]}: the other would "
                                         f"change too\n  hint: pass a copy, {names[other]}.copy()")

    def _write_back(self, leaves: list[Any], finals: Sequence[Any]) -> None:
        """Give the caller's arrays what the function assigned to them."""
        for number, final in zip(self.traced.mutated, finals, strict=True):
            if self.owner.mutates is not True and not self._may_mutate(number):
                continue
            target = leaves[number]
            if not isinstance(target, np.ndarray):
                raise SignatureError(f"{self.traced.input_names[number]} is assigned to, but the argument is not an array")
            if not target.flags.writeable:
                raise ValueError(f"{self.traced.input_names[number]} is assigned to, but the array is read-only")
            target[...] = final

    def _may_mutate(self, number: int) -> bool:
        chosen = self.owner.mutates
        if isinstance(chosen, bool):
            return chosen
        root = self.traced.input_names[number].split(".")[0]
        selected = (chosen,) if isinstance(chosen, int | str) else tuple(chosen)
        return root in selected or number in selected


def _is_plain(array: np.ndarray[Any, Any]) -> bool:
    flags = array.flags
    return bool(flags.c_contiguous and flags.aligned and array.dtype.isnative and type(array) is np.ndarray)


def argument_kind(argument: ArgumentType, leaf: Any) -> ArgumentKind:
    """How the native entry is to take a leaf."""
    if isinstance(leaf, bool):
        return "bool"
    if type(leaf) is float:
        return "float"
    if type(leaf) is int:
        return "int"
    return "scalar" if isinstance(leaf, np.generic) else "array"


def plan_trees(args: Sequence[Any]) -> tuple[Tree, ...] | None:
    """Trees of positional arguments, leaves numbered in order; None where the native entry cannot walk them."""
    trees = [plan_tree(arg) for arg in args]
    found = tuple([plan for plan in trees if plan is not None])
    if len(found) != len(trees):
        return None
    order = [index for plan in found for index in leaf_indices(plan)]
    return found if order == list(range(len(order))) else None


def plan_tree(value: Any) -> Tree | None:
    """A container of leaf numbers as the runtime's tree; None for containers only Python can handle."""
    if isinstance(value, int):
        return Leaf(value)
    if value is None:
        return Container("none")
    if type(value) in (tuple, list):
        children = [plan_tree(item) for item in value]
        found = tuple([child for child in children if child is not None])
        return Container("tuple" if type(value) is tuple else "list", found) if len(found) == len(children) else None
    if type(value) is dict and all(isinstance(key, str) for key in value):
        keys = sorted(value)
        children = [plan_tree(value[key]) for key in keys]
        found = tuple([child for child in children if child is not None])
        return Container("dict", found, tuple(keys)) if len(found) == len(children) else None
    return None


def jit(fun: Callable[..., Any] | None = None, *, static_argnums: int | Iterable[int] = (), static_argnames: str | Iterable[str] = (),
        mutates: bool | int | str | Iterable[int | str] = True) -> Any:
    """Compile fun: the first call of a signature traces it, later ones run native code.

    fun             a function of arrays, numbers and containers of them, written with plain NumPy.
    static_argnums  positions (and static_argnames: names) of hashable arguments that are compile-time values.
    mutates         arguments that fun assigns to are written back to the caller's arrays; False leaves them; positions or
                    names select.

    Results are NumPy arrays and scalars of the shapes and dtypes that NumPy gives.  Raises TracerError (or a kind of it) where fun
    needs the numbers behind an argument, UnsupportedError for NumPy functions and keywords that are not supported, ShapeError and
    DTypeError as NumPy would, SignatureError for static arguments that cannot be hashed; ValueError where fun assigns to a
    read-only array.

    >>> import numpy as np, bwcompiler as bw
    >>> f = bw.jit(lambda x: np.sum(np.sin(x) ** 2))
    >>> float(f(np.zeros(3)))
    0.0
    """
    if fun is None:
        return functools.partial(jit, static_argnums=static_argnums, static_argnames=static_argnames, mutates=mutates)
    if isinstance(fun, JitFunction):
        return fun
    return JitFunction(fun, static_argnums, static_argnames, mutates)


__all__ = ["JitFunction", "Specialisation", "argument_type", "jit"]
