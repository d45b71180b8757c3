"""Whose error it is that ends a trace, and which frames of its traceback the user sees: his own, unless it is a bug of ours."""

from __future__ import annotations

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
        return TracerError(f"{name} may have no value here, which is not known while tracing\n  hint: {unbound[name]}")
    hidden = "<traced" in str(error) or (isinstance(error, IndexError) and "are valid indices" in str(error))
    return region.refusal if hidden else None


def cut_to_user_frames(error: Exception) -> None:
    """Leave the user's frames in the traceback of an error, unless it is a bug of ours."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    ours = last is not None and is_hidden(last.tb_frame.f_code)
    if (isinstance(error, BwError) and not isinstance(error, InternalError)) or not ours:
        error.with_traceback(user_traceback(error.__traceback__))


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
