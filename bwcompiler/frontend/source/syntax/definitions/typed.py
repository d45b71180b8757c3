"""Source of functions whose file has no name: passed to `python -c` or `python < file`, or typed at the prompt, which keeps it since 3.13.

The source found is a guess: callers check that it compiles to the code that runs.
"""

from __future__ import annotations

import ast
import itertools
import os
import stat
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType

_REMEMBERED = 5000                 # lines of the prompt's history that are looked at
_LONGEST = 300                     # lines of one statement


def typed_texts(code: CodeType) -> Iterator[list[str]]:
    """Lines that the code may have been compiled from; the latest first."""
    if code.co_filename == "<string>":
        yield from _command()
    elif code.co_filename == "<stdin>":
        yield from _input()
        yield from _statements(code, _history())


def _command() -> Iterator[list[str]]:
    """What stands behind -c."""
    for option, text in itertools.pairwise(sys.orig_argv[1:]):
        if option.startswith("-") and option.endswith("c"):
            yield textwrap.dedent(text).splitlines(keepends=True)
            return


def _input() -> Iterator[list[str]]:
    """The file that Python reads its program from; what comes through a pipe is gone."""
    try:
        status = os.fstat(0)
        if stat.S_ISREG(status.st_mode):
            yield os.pread(0, status.st_size, 0).decode().splitlines(keepends=True)
    except (OSError, UnicodeDecodeError, AttributeError):          # no such file; no os.pread on this platform
        return


def _history() -> list[str]:
    """The last lines that were typed."""
    readline = sys.modules.get("readline")
    if readline is None:
        return []
    count = readline.get_current_history_length()
    return [f"{readline.get_history_item(k) or ''}\n" for k in range(max(1, count - _REMEMBERED), count + 1)]


def _statements(code: CodeType, lines: list[str]) -> Iterator[list[str]]:
    """The statements that may define the code's function: lines are counted from the beginning of the statement."""
    begins = ("lambda",) if code.co_name == "<lambda>" else (f"def {code.co_name}", "@")
    for place in reversed(range(code.co_firstlineno - 1, len(lines))):
        if any(part in lines[place] for part in begins):
            first = place - code.co_firstlineno + 1
            last = min(len(lines), first + _LONGEST)
            ends = [end for end in range(place + 1, last + 1) if end == len(lines) or not lines[end][0].isspace()]
            found = next((lines[first:end] for end in ends if _is_complete(lines[first:end])), None)
            if found is not None:
                yield found


def _is_complete(lines: list[str]) -> bool:
    try:
        ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return False
    return True
