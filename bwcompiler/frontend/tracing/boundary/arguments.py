"""The arguments of one call, flattened once: leaves that are traced, leaves that are compile-time values, and the trees that contain them.

Arrays and numbers are traced.  Strings, functions, enumeration members and configuration objects are compile-time values without being
declared.  So are whole arguments that the user declares (`static_argnums`, `static_argnames`), and integers whose number a trace had
to ask for (`region.StaticDemand`).
"""

from __future__ import annotations

import copy
import enum
import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import DTypeError, SignatureError, TracerError, UnsupportedError
from bwcompiler.frontend.tracing.operands import require_plain
from bwcompiler.frontend.tracing.promotion import strong
from bwcompiler.frontend.tracing.storages.memory_order import C_ORDER, Layout, fixed, unknown
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.types import TensorType, dtype_of, tensor


class ArgumentType:
    """What tracing needs to know of one leaf.

    weak     int or float for a Python number, else None.
    scalar   a NumPy or Python number (immutable), not a 0-d array.
    layout   how the array lies in memory.
    """

    __slots__ = ("layout", "scalar", "type", "weak")

    def __init__(self, type: TensorType, weak: type | None = None, scalar: bool = False, layout: Layout = C_ORDER) -> None:
        self.type = type
        self.weak = weak
        self.scalar = scalar
        self.layout = layout

    def __repr__(self) -> str:
        return f"{'weak ' if self.weak else ''}{self.type}"


class StaticArgument:
    """A whole argument that the user declared to be a compile-time value; a leaf of the arguments' tree."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


DROPPED = object()


class Arguments:
    """The arguments of one call.

    args, kwargs   in canonical form: what could be passed by position is.
    leaves         all leaves; `treedef` is the tree of (args, kwargs) around them.
    static         positions of the leaves that are compile-time values; `dynamic` those of the others.
    """

    __slots__ = ("args", "dynamic", "kwargs", "leaves", "parameters", "static", "treedef")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], parameters: Sequence[str], demanded: Iterable[int] = ()) -> None:
        self.args = args
        self.kwargs = kwargs
        self.parameters = parameters
        self.leaves, self.treedef = tree.flatten((args, kwargs))
        self.static = {position for position, leaf in enumerate(self.leaves) if is_static(leaf)}.union(demanded)
        self.dynamic = [position for position in range(len(self.leaves)) if position not in self.static]

    def also_static(self, positions: Iterable[int]) -> None:
        """Make more leaves compile-time values."""
        self.static.update(positions)
        self.dynamic = [position for position in self.dynamic if position not in self.static]

    def beside(self, positions: Sequence[int]) -> list[int]:
        """What stands beside these numbers in lists and tuples, if one number there is a compile-time value already.

        Whoever asks for two numbers of a list asks for all: one after the other, each would have the function traced again.
        """
        entries = [tuple([None if level > 1 and isinstance(part.entry, int) else part.entry for level, part in enumerate(accessor)])
                   for accessor in self.treedef.accessors()]
        known = {entries[position] for position in self.static if isinstance(self.leaves[position], int | np.integer)}
        families = known & {entries[position] for position in positions if None in entries[position]}
        return [position for position in self.dynamic if entries[position] in families and position not in positions]

    def without_leaves(self) -> Arguments:
        """The same structure and static values; arrays and numbers are not kept alive by it."""
        made = copy.copy(self)
        made.leaves = [leaf if position in self.static else DROPPED for position, leaf in enumerate(self.leaves)]
        made.args, made.kwargs = tree.unflatten(self.treedef, made.leaves)
        return made

    @property
    def dynamic_leaves(self) -> list[Any]:
        return [self.leaves[position] for position in self.dynamic]

    @property
    def static_values(self) -> list[Any]:
        return [unwrapped(self.leaves[position]) for position in sorted(self.static)]

    def with_leaves(self, replaced: Sequence[Any], declare: bool = False) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(args, kwargs) with other leaves in the dynamic places; `declare` keeps the others compile-time values when traced."""
        leaves = [StaticArgument(unwrapped(leaf)) if declare else unwrapped(leaf) for leaf in self.leaves]
        for position, leaf in zip(self.dynamic, replaced, strict=True):
            leaves[position] = leaf
        return tree.unflatten(self.treedef, leaves)  # type: ignore[no-any-return]

    def by_name(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """What stands in the places of the arguments, by the names of the parameters."""
        return dict(zip(self.parameters, args, strict=False)) | kwargs

    def whole_statics(self) -> list[Any]:
        """The positional arguments that are compile-time values as a whole; None for the others."""
        found: list[Any] = []
        for argument in self.args:
            leaves = tree.leaves(argument)
            found.append(unwrapped(argument) if len(leaves) == 1 and leaves[0] is argument and is_static(argument) else None)
        return found

    def observe_statics(self, observe: Callable[[Any, str], None]) -> None:
        """observe(value, name) of compile-time values that are objects: what they hold may change."""
        found = [position for position in self.static if not isinstance(self.leaves[position], StaticArgument | str | enum.Enum)]
        names = self.names() if found else []
        for position in found:
            observe(self.leaves[position], names[position])

    def names(self) -> list[str]:
        """A name for every leaf: `params.w` for params['w']."""
        return [_name(accessor, self.parameters) for accessor in self.treedef.accessors()]

    def dynamic_names(self) -> list[str]:
        names = self.names()
        return [names[position] for position in self.dynamic]

    def object_in(self, argnum: int) -> tuple[str, Any] | None:
        """Path and value of the first leaf of a positional argument, if none of its leaves is an array or a number."""
        leaves = tree.leaves(self.args[argnum])
        if not leaves or self.positions_of(argnum):
            return None
        name = self.parameters[argnum] if argnum < len(self.parameters) else f"args[{argnum}]"
        return tree.paths(self.args[argnum], name)[0], unwrapped(leaves[0])

    def positions_of(self, argnum: int) -> list[int]:
        """The numbers, among the dynamic leaves, of those of one positional argument."""
        start = sum(len(tree.leaves(arg)) for arg in self.args[:argnum])
        stop = start + len(tree.leaves(self.args[argnum]))
        return [number for number, position in enumerate(self.dynamic) if start <= position < stop]


def require_function(fun: Any, name: str = "grad") -> None:
    """Raise TypeError for what cannot be called: `bw.grad(f(x))`, with the transform's name."""
    if not callable(fun):
        hint = "@classmethod goes above, nearer to the caller" if isinstance(fun, classmethod) else f"bw.{name}(f)(x), not bw.{name}(f(x))"
        raise TypeError(f"a function is expected, not {fun!r} of type {type(fun).__name__}\n  hint: {hint}")


def check_statics(transform: str, fun: Callable[..., Any], static_argnums: int | Iterable[int],
                  static_argnames: str | Iterable[str]) -> None:
    """Raise SignatureError for static arguments that fun has not, as far as its signature says."""
    try:
        parameters = inspect.signature(fun).parameters
    except (TypeError, ValueError):
        return
    kinds = {parameter.kind for parameter in parameters.values()}
    names, function = parameter_names(fun), getattr(fun, "__name__", "the function")
    for number in [static_argnums] if isinstance(static_argnums, int) else static_argnums:
        if inspect.Parameter.VAR_POSITIONAL not in kinds and not -len(names) <= number < len(names):
            raise SignatureError(f"{transform}: static_argnums has {number}, but {function} takes {', '.join(names) or 'nothing'}")
    for name in [static_argnames] if isinstance(static_argnames, str) else static_argnames:
        if inspect.Parameter.VAR_KEYWORD not in kinds and name not in parameters:
            raise SignatureError(f"{transform}: static_argnames has {name!r}, but {function} takes {', '.join(parameters) or 'nothing'}")


def required_names(fun: Any) -> list[str]:
    """The parameters of fun that have to be passed, by position or by name."""
    names = parameter_names(fun)
    return [name for name in names if inspect.signature(fun).parameters[name].default is inspect.Parameter.empty]


def require_arguments(fun: Any, args: Sequence[Any], what: str, call: str, otherwise: str = "") -> None:
    """Raise SignatureError for a program of a function whose arguments are not given: `bw.compile(f)`; `call` is what goes before them."""
    needed = [] if args else required_names(fun)
    if needed:
        name = getattr(fun, "__name__", "fun")
        listed = ", ".join(needed)
        raise SignatureError(f"{what}: {name} takes {listed}, and a program is made for arguments of given shapes and dtypes\n"
                             f"  hint: {call}{listed}), with arrays or bw.ShapeDtypeStruct{otherwise}")


def take_apart(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None,
               static_argnums: int | Iterable[int] = (), static_argnames: str | Iterable[str] = (),
               demanded: Iterable[int] = ()) -> Arguments:
    """The arguments of fun(*args, **kwargs).

    Raises SignatureError for an array that is declared static, or a value there that cannot be hashed.
    """
    require_function(fun)
    kwargs = kwargs or {}
    names = parameter_names(fun)
    args, kwargs = tuple(args), dict(kwargs)
    while kwargs and len(args) < len(names) and names[len(args)] in kwargs:
        args = (*args, kwargs.pop(names[len(args)]))
    if len(kwargs) > 1:                            # only **kwargs have an order
        kwargs = {name: kwargs.pop(name) for name in (*names, *_signature(fun).named) if name in kwargs} | kwargs
    numbers = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)
    chosen = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
    if numbers or chosen:
        positions = {number + len(args) if number < 0 else number for number in numbers}
        positions |= {position for position, name in enumerate(names[:len(args)]) if name in chosen}
        chosen |= {names[position] for position in positions if position < len(names)}
        args = tuple([declared(value, static_argument(names, position)) if position in positions else value
                      for position, value in enumerate(args)])
        kwargs = {name: declared(value, f"static argument {name}") if name in chosen else value for name, value in kwargs.items()}
    return Arguments(args, kwargs, positional_names(fun, len(args)), demanded)


def declared(value: Any, what: str, without: str = "static_argnums and static_argnames") -> StaticArgument:
    """A compile-time value, hashable and no array; `what` names it in errors, `without` the options that arrays are left out of."""
    if isinstance(value, StaticArgument):
        return value
    if isinstance(value, np.ndarray | Tracer):
        raise SignatureError(f"{what}: static arguments must be hashable Python values; an array cannot be static\n"
                             f"  hint: leave arrays out of {without}")
    try:
        hash(value)
    except TypeError:
        hint = "\n  hint: a tuple in the place of the list" if isinstance(value, list) else ""
        raise SignatureError(f"{what}: static arguments must be hashable, got {type(value).__name__}{hint}") from None
    return StaticArgument(value)


def static_argument(names: Sequence[str], position: int) -> str:
    """What errors call the static argument at this position."""
    return f"static argument {names[position] if position < len(names) else position}"


def unwrapped(leaf: Any) -> Any:
    """The value of a leaf."""
    return leaf.value if isinstance(leaf, StaticArgument) else leaf


def is_static(leaf: Any) -> bool:
    """Whether a leaf is a compile-time value: whatever is neither an array nor a number."""
    if type(leaf) is np.ndarray or type(leaf) is float:
        return False
    if isinstance(leaf, StaticArgument | type | enum.Enum | str | bytes):
        return True
    if isinstance(leaf, Tracer | np.ndarray | np.generic | bool | int | float | complex) or _has(leaf, "__array__"):
        return False
    if _has(leaf, "shape", "dtype"):
        return False
    if _has(leaf, "__next__"):
        raise TracerError(f"an argument is a {type(leaf).__name__}: an iterator is used up while the function is traced\n"
                          "  hint: pass a list or an array")
    return True


def _has(x: Any, *names: str) -> bool:
    """Whether it has these attributes; a class with `__getattr__ = dict.__getitem__` says that it has not by a KeyError."""
    try:
        return all(hasattr(x, name) for name in names)
    except LookupError:
        return False


def is_buffer(value: Any) -> bool:
    """Whether it gives its memory to others: an array.array, a memoryview, bytes."""
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


# ----- types
def argument_type(leaf: Any, name: str = "argument") -> ArgumentType:
    """What tracing needs to know of a dynamic leaf; `name` is for errors."""
    if isinstance(leaf, Tracer):
        weak = None if strong(leaf._kind) is leaf._kind else leaf._kind
        memory = leaf._memory()
        layout = Layout(lambda: memory.shadow().strides, [memory.layout])
        return ArgumentType(leaf._type, weak, not leaf._storage.writable, layout)  # type: ignore[arg-type]
    if isinstance(leaf, np.ndarray):
        return _array_type(leaf, name)
    if isinstance(leaf, np.generic):
        return ArgumentType(tensor(_dtype(leaf.dtype, name)), scalar=True)
    if isinstance(leaf, bool):
        return ArgumentType(tensor(dtype_of(bool)), scalar=True)
    if isinstance(leaf, int | float | complex):
        weak = int if isinstance(leaf, int) else float if isinstance(leaf, float) else complex
        return ArgumentType(tensor(strong(weak)), weak, scalar=True)
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        if hasattr(leaf, "tocsr"):
            raise UnsupportedError(f"{name}: a sparse array of shape {leaf.shape} is not an argument\n"
                                   "  hint: let the function read it from outside; or pass a.data, and in the function "
                                   "bw.scipy.sparse.csr_array((data, a.indices, a.indptr), a.shape) where its numbers change")
        return ArgumentType(tensor(_dtype(foreign_dtype(leaf), name), tuple(leaf.shape)))
    array = np.asarray(leaf)
    if array.dtype == object and hasattr(leaf, "select_dtypes"):
        others = [column for column in leaf.columns if column not in leaf.select_dtypes("number").columns]
        raise DTypeError(f"{name}: a frame with columns that are not numbers: {', '.join(map(repr, others))}\n"
                         "  hint: pass frame.select_dtypes('number'), or the columns that are needed, frame[column].to_numpy()")
    return _array_type(array, name)


def foreign_dtype(leaf: Any) -> Any:
    """The dtype of an array of another library, or of a description; PyTorch's own dtypes are those of the converted array."""
    try:
        return np.dtype(leaf.dtype)
    except TypeError:
        return np.asarray(leaf).dtype if hasattr(leaf, "__array__") else leaf.dtype


def _dtype(dtype: Any, name: str) -> Any:
    try:
        return dtype_of(dtype)
    except (DTypeError, TypeError) as error:
        raise DTypeError(f"{name}: {error}") from None


def _array_type(array: np.ndarray[Any, Any], name: str) -> ArgumentType:
    require_plain(array, f"{name}: ")
    return ArgumentType(tensor(_dtype(array.dtype, name), array.shape), layout=_array_layout(array))


def _array_layout(array: np.ndarray[Any, Any]) -> Layout:
    if array.flags.c_contiguous:
        return C_ORDER
    if any(stride % array.itemsize for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1):
        return unknown("an array that is part of larger records")
    return fixed(tuple([stride // array.itemsize for stride in array.strides]))


# ----- names
class _Signature(NamedTuple):
    """Names of the parameters that can be passed by position, of *args, and of those that can only be passed by name."""

    positional: tuple[str, ...]
    rest: str
    named: tuple[str, ...]


_signatures: weakref.WeakKeyDictionary[Callable[..., Any], _Signature] = weakref.WeakKeyDictionary()


def _signature(fun: Callable[..., Any]) -> _Signature:
    if type(fun) is FunctionType and not fun.__dict__:                       # no __wrapped__ or __signature__ of its own
        return _signature_of_code(fun.__code__)
    try:
        known = _signatures.get(fun)
    except TypeError:                        # a callable that cannot be hashed or referred to
        return _read_signature(fun)
    if known is None:
        known = _signatures[fun] = _read_signature(fun)
    return known


def _signature_of_code(code: CodeType) -> _Signature:
    count = code.co_argcount
    last = count + code.co_kwonlyargcount
    rest = code.co_varnames[last] if code.co_flags & inspect.CO_VARARGS else "arg"
    return _Signature(code.co_varnames[:count], rest, code.co_varnames[count:last])


def _read_signature(fun: Callable[..., Any]) -> _Signature:
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return _Signature((), "arg", ())
    names = tuple([parameter.name for parameter in parameters
                   if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)])
    rest = next((parameter.name for parameter in parameters if parameter.kind is parameter.VAR_POSITIONAL), "arg")
    named = tuple([parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY])
    return _Signature(names, rest, named)


def parameter_names(fun: Callable[..., Any]) -> tuple[str, ...]:
    """Names of fun's parameters that can be passed by position."""
    return _signature(fun).positional


def positional_names(fun: Callable[..., Any], count: int) -> list[str]:
    """Names of fun's positional arguments, at least `count` of them."""
    names, rest, _ = _signature(fun)
    return [*names, *[f"{rest}_{position - len(names)}" for position in range(len(names), count)]]


def _name(accessor: Any, parameters: Sequence[str]) -> str:
    kind, key = accessor[0].entry, accessor[1].entry
    root = parameters[key] if kind == 0 else str(key)
    return name_of_path(accessor[2:].codify(root))


def name_of_path(path: str) -> str:
    """A name for a value: `params['b'].w` is `params.b.w`."""
    return path.replace("['", ".").replace("']", "").replace("[", ".").replace("]", "")
