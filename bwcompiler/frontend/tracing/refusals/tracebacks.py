"""Whose error it is that ends a trace, and which frames of its traceback the user sees: his own, unless it is a bug of ours."""

from __future__ import annotations

import dis
import os
from types import TracebackType

from bwcompiler.errors import BwError, InternalError, TracerError
from bwcompiler.frontend.tracing.source import is_hidden
from bwcompiler.frontend.tracing.storages.region import Region


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


# Modules of captured code, and packages, that do what the user wrote with his own objects: `table[key]`, `f(x)`, `x.name`, `int(text)`.
FOR_USERS = tuple([f"bwcompiler.frontend.source.{name}" for name in (
    "calls", "concrete.contents", "concrete.makers", "decisions", "items", "library", "runtime")])


def cut_to_user_frames(error: Exception) -> None:
    """Leave the user's frames in the traceback of an error, unless it is a bug of ours."""
    if isinstance(error, InternalError):
        return
    if isinstance(error, BwError) or "source" in vars(error) or not _is_ours(error.__traceback__):      # source: it names the user's line
        error.with_traceback(user_traceback(error.__traceback__))


def _is_ours(traceback: TracebackType | None) -> bool:
    """Whether code of this package failed; not where it raises something on purpose, or did what the user wrote."""
    called = False                                 # a function of the user's
    while traceback is not None and traceback.tb_next is not None:
        called |= not is_hidden(traceback.tb_frame.f_code)
        traceback = traceback.tb_next
    if traceback is None or not is_hidden(traceback.tb_frame.f_code):
        return False
    code, module = traceback.tb_frame.f_code, str(traceback.tb_frame.f_globals.get("__name__", ""))
    on_purpose = dis.opname[code.co_code[traceback.tb_lasti]] == "RAISE_VARARGS"
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
