"""What ends a command early: `UserProblem` and `UsageProblem`, and how an exception becomes one message and an exit status.

    0  done
    1  something about the user's program or files: not found, cannot be imported, traced, differentiated or written
    2  the command itself is wrong: an unknown option, stage, format or type
    3  compiling failed: ours to repair
"""

from __future__ import annotations

import traceback

from bwcompiler.errors import BwError, CompileError, InternalError

USER_ERROR, USAGE_ERROR, COMPILE_FAILURE = 1, 2, 3
_OURS = CompileError | InternalError


class UserProblem(Exception):
    """Exit status 1; the message says what to do instead."""


class UsageProblem(Exception):
    """Exit status 2."""


def status_of(error: BaseException) -> int:
    """The exit status for an exception of a command."""
    if isinstance(error, UsageProblem):
        return USAGE_ERROR
    if isinstance(error, UserProblem | OSError) or (isinstance(error, BwError) and not isinstance(error, _OURS)):
        return USER_ERROR
    return COMPILE_FAILURE


def message_of(error: BaseException) -> str:
    """What is printed for it."""
    if isinstance(error, UserProblem | UsageProblem | BwError):
        notes = "".join(f"\n  note: {note}" for note in getattr(error, "__notes__", ()))
        return f"{error}{notes}"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    return f"this is a bug in bwcompiler, please report it with the output of --traceback\n  {type(error).__name__}: {error}"


def user_line(error: BaseException, file: str) -> str:
    """`file:line: ` of the innermost frame in the user's file; empty where there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: "
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{file}:{frames[-1].lineno}: " if frames else ""
