"""Strings that contain traced values (`f"{loss:.3f}"`): they may be printed, joined and stored, but not examined.

While a function is traced such a string describes the value instead of giving its number, so its length, its parts, its position in a
dictionary and what it equals are wrong.  Asking for these is refused: by `asked` in functions and methods, by `require_known` elsewhere.
"""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Callable
from typing import Any

from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.source.variables import among
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import active_region

_MARK = "<traced "             # see Tracer.__repr__
_CONTAINERS = (list, tuple, set, frozenset)
_LISTS = (list, collections.deque)
_KEYED = (dict, set, frozenset, *_LISTS)
_COMPARING = frozenset(("count", "index", "remove", "sort"))           # methods of lists that look at the elements
_VALUED = frozenset(("get", "pop", "setdefault"))          # methods of dictionaries whose first argument alone is a key
_OF_A_TEXT = frozenset((len, hash, int, float, complex, ord, eval, bytes, bytearray, list, tuple, collections.deque, iter, reversed,
                        enumerate, zip, map, filter))
_OF_EACH = frozenset((hash, sorted, min, max, set, frozenset, dict, collections.Counter, collections.OrderedDict, dict.fromkeys))
_BY_NAME = frozenset((getattr, hasattr, setattr, delattr))
_MODULES = ("re", "itertools", "_operator", "operator", "numpy", "hashlib", "_hashlib", "zlib", "decimal", "fractions")


def is_unknown(x: Any) -> bool:
    """Whether a traced value stands in a text, or in one that a container holds."""
    if type(x) is str:
        return _MARK in x
    return type(x) in _CONTAINERS and any(type(one) in (str, tuple) and is_unknown(one) for one in x)


def require_known(*texts: Any) -> None:
    """Refuse to compare texts that traced values stand in, or to look them up: they are not the numbers'."""
    if any(type(text) in (str, *_CONTAINERS) and is_unknown(text) for text in texts):
        _refuse("is compared, or looked up")


def require_known_keys(container: Any) -> Any:
    """A dictionary or set that was just made, and what it is made of."""
    if type(container) in (dict, set, frozenset):
        for key in container:
            if type(key) in (str, tuple):
                require_known(key)
    return container


def _refuse(what: str) -> None:
    region = active_region()
    if region is None:
        return
    if region.policy is not None:
        region.policy.needed = True                # as it is written it would go on with that text
    raise TracerError(at(current_source(), f"a text that a traced value stands in {what}: its numbers are not known while tracing\n"
                         "  hint: compare the numbers, or use them in the place of the text; make texts of results"))


def asked(function: Any, args: tuple[Any, ...], found: Callable[..., Any]) -> Callable[..., Any]:
    """What is called in the place of a function that is not the user's: refused where it asks a text, as it is where that is only shown."""
    owner: Any = getattr(function, "__self__", None)
    if type(owner) is str:
        return functools.partial(_text_of, function.__name__, found, owner) if any(map(is_unknown, (owner, *args))) else found
    if type(owner) in _LISTS and function.__name__ in _COMPARING:
        require_known(list(owner), *args)
    elif any(type(arg) in (str, *_CONTAINERS) and is_unknown(arg) for arg in args):
        if getattr(function, "__objclass__", None) is str and type(args[0]) is str:
            return functools.partial(_text_of, function.__name__, found, args[0])
        if _asks(function, owner, args):
            _refuse(f"is given to {getattr(function, '__name__', type(function).__name__)}()")
    return found


def _asks(function: Any, owner: Any, args: tuple[Any, ...]) -> bool:
    """Whether a function that gets such texts looks at what is in them."""
    if isinstance(owner, _KEYED):
        return not isinstance(owner, _LISTS) and any(map(is_unknown, args[:1] if function.__name__ in _VALUED else args))
    if among(function, _OF_EACH) or isinstance(function, functools._lru_cache_wrapper):
        return True
    if among(function, _BY_NAME):
        return is_unknown(args[1])
    within = among(function, _OF_A_TEXT) or isinstance(owner, re.Pattern)
    within = within or str(getattr(function, "__module__", "")).partition(".")[0] in _MODULES
    return within and any(type(arg) is str and _MARK in arg for arg in args)


def _text_of(name: str, found: Callable[..., Any], text: str, *args: Any, **kwargs: Any) -> Any:
    """What a method of a text gives, if that is a text in which traced values stand, too."""
    made = found(*args, **kwargs)
    if type(made) is not str:
        _refuse(f"is asked by {name}()")
    return made if is_unknown(made) or not is_unknown(text) else text
