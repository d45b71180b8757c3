"""Who caused the error that ends a trace, and which frames of its traceback are shown: the user's, unless it is a bug in bwcompiler."""

from __future__ import annotations

import collections
import dis
import functools
import os
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

from bwcompiler.errors import BwError, InternalError, TracerError, is_located, located
from bwcompiler.frontend.tracing.provenance.source import calls_users, is_hidden, is_library
from bwcompiler.frontend.tracing.storages.region import Region, active_region
from bwcompiler.ir.source import Source

Function = TypeVar("Function", bound=Callable[..., Any])


def hidden_refusal(region: Region, error: Exception) -> BwError | None:
    """Our own error where NumPy replaced it by one of its own (`A[0] = x`, `np.zeros(x)`)."""
    if isinstance(error.__cause__, BwError):
        return error.__cause__
    unbound = region.policy.unbound if isinstance(error, NameError) and region.policy is not None else {}
    name = next((name for name in unbound if f"'{name}'" in str(error)), None)
    if name is not None:
        return TracerError(unbound[name])
    hidden = "<traced" in str(error) or (isinstance(error, IndexError) and "are valid indices" in str(error))
    return region.refusal if hidden else None


def with_users_line(error: BwError, traceback: TracebackType | None) -> BwError:
    """An error of ours, with the user's line that led to it unless it names one: not all code that refuses something knows where it is."""
    frame, line = users_place(traceback)
    if frame is None or isinstance(error, InternalError) or is_located(error):
        return error
    return located(error, Source(frame.f_code.co_filename, line))


def users_place(traceback: TracebackType | None) -> tuple[FrameType | None, int]:
    """The user's innermost frame, and its line."""
    frame, line = None, 0
    while traceback is not None:
        if not is_library(traceback.tb_frame.f_code):
            frame, line = traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
    return frame, line


def recursive_call(traceback: TracebackType | None) -> Source | None:
    """The user's line that calls its own function again, of a traceback of many such calls."""
    calls: collections.Counter[tuple[str, int]] = collections.Counter()
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_library(code):
            calls[code.co_filename, traceback.tb_lineno] += 1
        traceback = traceback.tb_next
    repeated = [place for place, count in calls.items() if count > max(calls.values()) // 2]      # a branch around it is another frame
    return Source(*max(repeated)) if repeated else None


# Modules of captured code, and packages, that do what the user wrote with his own objects: `table[key]`, `f(x)`, `x.name`, `int(text)`.
FOR_USERS = tuple([f"bwcompiler.frontend.source.{name}" for name in (
    "calls", "concrete.contents", "concrete.makers", "decisions", "items", "library", "loops", "runtime")])


def shows_users_frames(fun: Function) -> Function:
    """The function, which users call: the traceback of an error that leaves it for their code has their frames alone."""
    @functools.wraps(fun)
    def shown(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            if active_region() is None:                # else what is traced around it does so
                cut_to_user_frames(error)
            raise
    return shown  # type: ignore[return-value]


def cut_to_user_frames(error: Exception) -> None:
    """Leave the user's frames in the traceback of an error, unless it is a bug of ours."""
    if isinstance(error, InternalError):
        return
    names_the_line = "source" in vars(error)
    if isinstance(error, BwError | RecursionError) or names_the_line or not failed_here(error):
        error.with_traceback(user_traceback(error.__traceback__))


def failed_here(error: Exception) -> bool:
    """Whether code of this package failed; not where it raises something on purpose, or did what the user wrote."""
    traceback = error.__traceback__
    called = False                                 # a function of the user's
    while traceback is not None and traceback.tb_next is not None:
        called |= not is_hidden(traceback.tb_frame.f_code)
        traceback = traceback.tb_next
    if traceback is None or not is_hidden(traceback.tb_frame.f_code) or calls_users(traceback.tb_frame.f_code):
        return False                               # the last of these: with other arguments than it takes
    code, module = traceback.tb_frame.f_code, str(traceback.tb_frame.f_globals.get("__name__", ""))
    on_purpose = dis.opname[code.co_code[traceback.tb_lasti]] == "RAISE_VARARGS"
    if on_purpose and isinstance(error, TypeError | ValueError | OverflowError) and module.startswith("bwcompiler"):
        return False                               # what it says of arguments
    return not (called and (on_purpose or module.startswith(FOR_USERS) or not module.startswith("bwcompiler")))


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
