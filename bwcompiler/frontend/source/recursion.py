"""Recursion that ends depending on data: each call is in a branch of the call before, so tracing it would never end.

A function that is tail-recursive is traced again as a loop (`syntax/recursion.py`).  Others end with RecursionError, or are
refused if there would be too many calls before that.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.source.syntax.functions import form, loop_form
from bwcompiler.frontend.source.variables import not_capturable
from bwcompiler.frontend.tracing.policy import FUNCTION, Policy, Recapture, Site
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.refusals.notes import RECURSION_NOTE
from bwcompiler.frontend.tracing.storages.region import open_region

DEEPEST = 36                   # branches and loops, one inside of the other, around a call of a function
LEAST = 12                     # calls of it around that one
MOST = 3000                    # calls inside of calls, until they are taken for endless
MANY, DEEP = 40, 4             # such calls, so many in branches of one another, of a function that can be a loop: it had better be one
FRAMES = 8                     # of one function among Python's, from which on it runs inside of itself


def is_loop(function: Any, policy: Policy) -> bool:
    """Whether a function is called as a loop; noted, if it is not, in which calls of itself it is called."""
    plain = getattr(function, "__func__", function)
    if type(plain) is not FunctionType or form(plain).code is None:
        return False
    site = _site(plain)
    if site in policy.unrolled:
        return loop_form(function).code is not None
    around = policy.calls.setdefault(id(plain.__code__), [])
    while around and around[-1] >= policy.depth:
        around.pop()
    around.append(policy.depth)
    if len(around) < 2:
        return False
    if policy.counting and _runs(plain):
        not_capturable("it calls the function that it is in")
    policy.inner_calls += 1
    is_too_much = policy.inner_calls > MOST and (plain is function or policy.depth >= LEAST)   # trees of objects have an end
    is_deep = policy.depth >= DEEPEST and len(around) >= LEAST
    is_broad = policy.inner_calls > MANY and len(around) >= DEEP
    if (is_too_much or is_deep or is_broad) and loop_form(function).code is not None and _is_recursive(plain, policy, DEEP):
        raise Recapture(site, _refusal())
    if is_too_much and _is_recursive(plain, policy, FRAMES):
        raise _refusal()
    return False                                   # as Python, up to its RecursionError


def _refusal() -> TracerError:
    return TracerError(at(current_source(open_region().outer), RECURSION_NOTE))


def _runs(function: FunctionType) -> bool:
    """Whether a function runs now."""
    code, frame = form(function).code, sys._getframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


def _is_recursive(function: FunctionType, policy: Policy, least: int) -> bool:
    """Whether a function runs inside of itself now, so often; else the calls that were counted stood beside one another."""
    code, frame, count = form(function).code, sys._getframe(), 0
    while frame is not None and count < least:
        count += frame.f_code is code
        frame = frame.f_back  # type: ignore[assignment]
    if count < least:
        policy.inner_calls = 0
    return count == least


def _site(function: FunctionType) -> Site:
    code = function.__code__
    return code.co_filename, code.co_firstlineno, FUNCTION
