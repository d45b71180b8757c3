"""The tables through which handles find supported functions: ufuncs by name, NumPy functions by identity.

The modules of `frontend/numpy` fill the tables; handles (`tracer`) and `frontend/numpy/dispatch.py` read them.

`HANDLERS` is also where the way leads back up: what a user's code does to a handle may end in his code again (an element of a list that is
an object of his class, whose `__eq__` is called; the truth of a comparison, which becomes a branch).  So modules ask here by name for what
modules above them do, most of them in `frontend/source`.  A test checks that each name which is asked for is there.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from bwcompiler.errors import UnsupportedError

Handler = TypeVar("Handler", bound=Callable[..., Any])


class Entry(NamedTuple):
    """A supported NumPy function.

    states_layout  the handler says itself how the result is laid out in memory; else NumPy's function is asked.
    """

    name: str
    function: Any
    handler: Callable[..., Any]
    states_layout: bool = False


# Parameters of NumPy's functions that are sizes, axes and counts: integers that have to be known while tracing.
_SIZES = frozenset("N M axes axis axis1 axis2 bins ddof deg destination indices_or_sections k kth m minlength n new_shape newshape num "
                   "obj offset pad_width repeats reps shape shift source start".split())


FUNCTIONS: dict[Any, Entry] = {}
HANDLERS: dict[str, Callable[..., Any]] = {}         # the same handlers, methods, and functions of higher modules by name
UFUNC_METHODS: dict[str, Callable[..., Any]] = {}    # "__call__", "reduce", ... of __array_ufunc__
UFUNC_NAMES: list[str] = []
TAKING: list[type] = []                              # classes of what computes with handles by itself: selections


def implements(*functions: Any, states_layout: bool = False) -> Callable[[Handler], Handler]:
    """The decorated function is what NumPy's `functions` do on traced arrays."""
    def register(handler: Handler) -> Handler:
        for function in functions:
            name = qualified_name(function)
            FUNCTIONS[function] = Entry(name, function, handler, states_layout)
            HANDLERS[name] = handler
        return handler
    return register


def qualified_name(function: Any) -> str:
    """`linalg.norm` for np.linalg.norm."""
    module = str(getattr(function, "__module__", "") or "")
    prefix = module.removeprefix("numpy").lstrip(".")
    prefix = "emath" if prefix == "lib.scimath" else prefix
    return f"{prefix}.{function.__name__}" if prefix in ("linalg", "fft", "emath") else str(function.__name__)


@functools.cache                                     # signatures cost 20 us each: too much for every function of NumPy's when imported
def _keywords(handler: Callable[..., Any]) -> frozenset[str] | None:
    """The parameters of a handler; None: it checks its keywords itself."""
    parameters = inspect.signature(handler).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return None if takes_all else frozenset(parameters)


@functools.cache
def _sizes(handler: Callable[..., Any]) -> tuple[tuple[int, str], ...]:
    """Which of its parameters, by position and by name, say what is computed."""
    return tuple([(place, name) for place, name in enumerate(inspect.signature(handler).parameters) if name in _SIZES])


@functools.cache
def _names(function: Any) -> tuple[str, ...]:
    """The parameters of a function of NumPy's, with those of ufuncs where it passes keywords on; none where nobody knows."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    passed = _OF_UFUNCS if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters) else ()
    return (*[one.name for one in parameters if one.kind is not one.VAR_KEYWORD], *passed)


_OF_UFUNCS = ("where", "casting", "dtype")


@functools.cache
def _defaults(function: Any) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    return {name: parameter.default for name, parameter in parameters.items() if parameter.default is not parameter.empty}


def nearest(name: str, known: list[str]) -> str:
    """`; nearest supported: a, b` or the empty string."""
    found = difflib.get_close_matches(name, known, n=3, cutoff=0.7)
    return f"; nearest supported: {', '.join(found)}" if found else ""


CALL_BACK = "bw.pure_callback calls a Python function back with numbers, bw.primitive one with a derivative of its own"


def unsupported(what: str, name: str, known: list[str]) -> UnsupportedError:
    """The error for a function that traced arrays do not take: the nearest that they do, else how Python is called."""
    instead = nearest(name, known) or f"\n  hint: {CALL_BACK}"
    return UnsupportedError(f"{what} is not supported on traced arrays{instead}")


_UFUNCS_OF = ("numpy", "numpy._core.umath", "numpy.core.umath", "scipy.special", "scipy.special._ufuncs", "scipy.special._special_ufuncs")


def require_known(ufunc: Any) -> None:
    """Raises UnsupportedError for a ufunc that is neither NumPy's nor SciPy's, whatever its name is."""
    name = ufunc.__name__
    if any(getattr(sys.modules.get(space), name, None) is ufunc for space in _UFUNCS_OF):
        return
    if not name.isidentifier():                                                     # np.frompyfunc, np.vectorize
        raise UnsupportedError(f"{name}, a ufunc made from a Python function, is not supported on traced arrays\n"
                               "  hint: call the function on the array itself; where it branches, np.where(condition, a, b)")
    raise UnsupportedError(f"{name}, a ufunc that is neither NumPy's nor SciPy's, is not supported on traced arrays\n"
                           "  hint: call the Python function behind it; where it branches, np.where(condition, a, b)")


def lookup(function: Any) -> Entry:
    """The entry of a NumPy function; raises UnsupportedError with the nearest names."""
    entry = FUNCTIONS.get(function)
    if entry is None:
        name = qualified_name(function)
        if name in _NEED_NUMBERS:
            raise UnsupportedError(f"np.{name} needs the numbers behind a traced array, which are not known while tracing\n"
                                   f"  hint: return the array from the function, and np.{name} of the result")
        known = [entry.name for entry in FUNCTIONS.values()] + UFUNC_NAMES
        raise unsupported(f"np.{name}", name, known)
    return entry


# What writes or prints arrays.
_NEED_NUMBERS = frozenset("save savez savez_compressed savetxt array2string array_repr array_str format_float_positional".split())


# Keywords of PyTorch's functions of the same names.
_OF_PYTORCH = {"dim": "axis=", "dims": "axis=", "keepdim": "keepdims=", "unbiased": "ddof=1, or 0", "descending": "np.sort(x)[::-1]",
               "other": "the second operand, by position", "input": "the first operand, by position"}


def call_entry(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The handler's result; keywords it does not take must have NumPy's default value."""
    keywords = _keywords(entry.handler) if kwargs else None
    if keywords is not None and not keywords.issuperset(kwargs):
        defaults = _defaults(entry.function)
        for key in [key for key in kwargs if key not in keywords]:
            value = kwargs.pop(key)
            known = _names(entry.function)
            if key in _OF_PYTORCH or (known and key not in known):
                near = [f"{name}=" for name in difflib.get_close_matches(key, known, n=1)] or [f"{name}=" for name in known[1:]]
                raise TypeError(f"np.{entry.name} has no keyword {key!r}\n  hint: {_OF_PYTORCH.get(key, ', '.join(near))}")
            if key not in defaults or not same_option(value, defaults[key]):
                raise UnsupportedError(f"np.{entry.name}: keyword {key}={value!r} is not supported on traced arrays")
    for place, name in _sizes(entry.handler):
        if place < len(args):
            args = (*args[:place], HANDLERS["known_parts"](args[place]), *args[place + 1:])
        elif name in kwargs:
            kwargs[name] = HANDLERS["known_parts"](kwargs[name])
    return entry.handler(*args, **kwargs)


def same_option(value: Any, default: Any) -> bool:
    """Whether an option was left at its default."""
    if value is default:
        return True
    return isinstance(value, bool | int | str | float) and type(value) is type(default) and bool(value == default)


def refuse_options(function: str, **options: tuple[Any, Any]) -> None:
    """Raise UnsupportedError for each option of `np.name`, given as (value, supported value), that has another value."""
    for key, (value, supported) in options.items():
        if not same_option(value, supported):
            raise UnsupportedError(f"{function}: {key}={value!r} is not supported on traced arrays")
