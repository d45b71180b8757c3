"""Loops that compute with known numbers alone, of meshes, tables and schedules: they run while tracing, and what they make stays known.

A loop over a known array that is recorded makes data of what is known: a dictionary of its edges has traced keys then, and a list that
it appends to under a test has as many elements as data say.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import types
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np

from bwcompiler.frontend.source.bodies.iteration import Header
from bwcompiler.frontend.source.concrete.makers import maker_of
from bwcompiler.frontend.source.drawn.draws import is_generator
from bwcompiler.frontend.source.drawn.streams import draws_known
from bwcompiler.frontend.source.variables import UNBOUND, Names, held_in, open_policy, site_of
from bwcompiler.frontend.tracing.policy import Policy, Reconsidered
from bwcompiler.frontend.tracing.provenance.source import is_library

MOST = 3000                    # iterations of a loop, and of those in it: an iteration takes up to 30 us here; longer loops are recorded,
MOST_ASSUMED = 100_000         # but not where the function is refused otherwise
_LEVELS = 4                    # of functions that call others, and of containers in others
_NUMBERS = (int, float, bool, str, type(None), range)
_DICTIONARIES = (dict, collections.defaultdict, collections.OrderedDict, collections.Counter)
_CONTAINERS = (list, tuple, set, collections.deque, *_DICTIONARIES)
_CODE = (types.ModuleType, types.BuiltinFunctionType, np.ufunc, type(np.copyto), type)


def computes_with_known(source: Any, count: Any, body: Callable[..., Any], policy: Policy) -> bool:
    """Whether nothing of data can be reached from a loop over `count` elements, as far as one sees; or that was found out before."""
    if not isinstance(count, int) or count > MOST or site_of(body) in policy.heavy:
        return False
    held = (*_parts(source), *Names(body).held(body.__code__.co_freevars).values())
    if not all(map(_is_known, held)):
        return False
    if site_of(body) not in policy.plain and _names_known(body.__code__, body.__globals__, _LEVELS):
        policy.plain.add(site_of(body))
    return site_of(body) in policy.plain


@contextlib.contextmanager
def running(body: Callable[..., Any], count: int, policy: Policy) -> Iterator[None]:
    """Around the iterations of such a loop; where there are too many, with those of loops around it, these are recorded after all."""
    sites = policy.running
    policy.iterations = count + (policy.iterations if sites else 0)
    sites.append(site_of(body))
    try:
        if policy.iterations > (MOST_ASSUMED if policy.assumes else MOST):
            raise Reconsidered(sites[0], tuple(sites[1:]))
        yield
    finally:
        sites.pop()


def _parts(source: Any) -> list[Any]:
    """What enumerate, zip, reversed and map go over, and functions that they call."""
    return [part for one in (*source.parts, *source.options.values()) for part in _parts(one)] if type(source) is Header else [source]


def _is_known(x: Any, levels: int = _LEVELS, within: tuple[Any, ...] = ()) -> bool:
    """Whether there is no data in it; of containers the first and the last element are looked at.  within: the functions around."""
    if type(x) in _CONTAINERS:
        items = x.values() if type(x) in _DICTIONARIES else x
        ends = (*itertools.islice(items, 1), *(() if type(x) is set else itertools.islice(reversed(items), 1)))
        return not ends or (levels > 0 and all(_is_known(item, levels - 1, within) for item in ends))
    if type(x) is types.FunctionType:
        return any(x is one for one in within) or _calls_known(x, levels, within)
    return x is UNBOUND or type(x) in _NUMBERS or isinstance(x, (np.generic, *_CODE)) or (
        type(x) is np.ndarray and is_known_array(x)) or (is_generator(x) and draws_known(x))


def is_known_array(x: Any) -> bool:
    """Whether the function has made an array, or its contents are compiled in."""
    policy = open_policy()
    return maker_of(x) is not None or (policy is not None and policy.known is not None and id(x) in policy.known.arrays)


def _names_known(code: CodeType, variables: dict[str, Any], levels: int, within: tuple[Any, ...] = ()) -> bool:
    """Whether what a function finds by its global names is code, or known likewise."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return all(_is_known(variables[name], levels, within) for name in code.co_names if name in variables) and all(
        _names_known(one, variables, levels, within) for one in inner)


def _calls_known(function: types.FunctionType, levels: int, within: tuple[Any, ...]) -> bool:
    """Whether a function computes with nothing but its arguments, and what is known."""
    if is_library(function.__code__):
        return not (function.__closure__ and str(function.__module__).startswith("bwcompiler."))   # of ours it may be the user's function
    within = (*within, function)
    held = (*map(held_in, function.__closure__ or ()), *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return levels > 0 and _names_known(function.__code__, function.__globals__, levels - 1, within) and all(
        _is_known(one, levels - 1, within) for one in held)
