"""The current position in the user's program: the innermost frame that is not in this package, the standard library or an installed one.

`current_source()` runs once per traced operation, so everything about a (code object, instruction) is cached.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType
from typing import Any, Protocol

import numpy as np

from bwcompiler import errors
from bwcompiler.ir.source import Source

_OURS, _NUMPY = (os.path.dirname(os.path.abspath(module.__file__ or "")) for module in (errors, np))
_POLYNOMIALS = os.path.join(_NUMPY, "polynomial") + os.sep
_PLAIN = os.path.join(_OURS, "frontend", "source", "library", "plain.py")
_SCIPY = os.path.join(os.path.dirname(_NUMPY), "scipy")
_HIDDEN_FOLDERS = tuple(folder + os.sep for folder in (_OURS, _NUMPY, _SCIPY))
_LIBRARY_FOLDERS = tuple([sysconfig.get_path(key) + os.sep for key in ("purelib", "platlib", "stdlib", "platstdlib")])
_CHAIN_LIMIT = 12           # frames of the user's call chain that are remembered

_HIDE, _STOP, _SHOW, _LIBRARY, _BORDER = 0, 1, 2, 3, 4
_roles: dict[int, tuple[CodeType, int]] = {}              # id of a code object -> (itself, kept alive; role)
_sources: dict[tuple[int, int, Source | None], tuple[CodeType, Source]] = {}
Positions = tuple[tuple[int | None, int | None, int | None, int | None], ...]
_positions: dict[int, tuple[CodeType, Positions]] = {}
_MOST_POSITIONS = 64
_LIMIT = 1 << 14            # entries of each: programs that make code (notebooks, exec) must not keep all of it for ever
_stops: set[CodeType] = set()
_borders: set[CodeType] = set()
_rewritten: dict[int, tuple[CodeType, CodeType | None]] = {}   # id of a code object -> (itself, kept alive; what it was made from)


def stop_at(code: CodeType) -> None:
    """The call chain ends where this code calls the user's function."""
    _stops.add(code)


def calls_users(code: CodeType) -> bool:
    """Whether this code does nothing but call the user's function."""
    return code in _stops


def observe_below(code: CodeType) -> None:
    """Callers of this code are no part of what is traced: their lines may be told, but what they read is not observed."""
    _borders.add(code)


def stands_for(code: CodeType, original: CodeType | None) -> None:
    """Note that this code was made of the user's; None of part of a function, whose names are those of the function."""
    _rewritten[id(code)] = (code, original)


def is_rewritten(code: CodeType) -> bool:
    """Whether this code was made of the user's, control flow captured."""
    found = _rewritten.get(id(code))
    return found is not None and found[0] is code


def original_code(code: CodeType) -> CodeType | None:
    """What the user wrote in place of this code; None of part of a function."""
    found = _rewritten.get(id(code))
    return code if found is None or found[0] is not code else found[1]


def is_ours(code: CodeType) -> bool:
    """Whether a frame of this code is this package's."""
    return code.co_filename.startswith(_OURS + os.sep) or code.co_filename.startswith("<__array_function__")


def is_hidden(code: CodeType) -> bool:
    """Whether a frame of this code is ours, NumPy's or SciPy's."""
    return is_hidden_file(code.co_filename)


def is_hidden_file(file: str) -> bool:
    """Whether a file is ours, NumPy's or SciPy's."""
    return file.startswith(_HIDDEN_FOLDERS) or file.startswith("<__array_function__")


def is_library(code: CodeType) -> bool:
    """Whether a frame of this code is hidden, or the standard library's, or an installed package's (pandas): not the user's own."""
    return is_library_file(code.co_filename)


def is_library_file(file: str) -> bool:
    """Whether a file is not the user's own."""
    return is_hidden_file(file) or file.startswith(_LIBRARY_FOLDERS) or file.startswith("<frozen") or _is_of_cython(file)


_asking: dict[int, tuple[CodeType, bool]] = {}            # id of a code object -> (itself, kept alive; whether it is the user's)


def asks_for_types(code: CodeType) -> bool:
    """Whether code that asks for the type of a handle is to see what Python would have in its place: the user's, and functools', which
    chooses among his functions by it.
    """
    found = _asking.get(id(code))
    if found is None:
        if len(_asking) >= _LIMIT:
            _asking.clear()
        found = _asking[id(code)] = code, not is_library(code) or code.co_filename == functools.__file__
    return found[1]


def _is_of_cython(file: str) -> bool:
    """Whether it is the name that an installed package's Cython gives its frames, `numpy/random/mtrand.pyx`: from where it was built."""
    module = sys.modules.get(file.partition("/")[0]) if file.endswith(".pyx") else None
    return module is not None and is_library_file(getattr(module, "__file__", None) or "")


def is_convertible(code: CodeType) -> bool:
    """Whether control flow and calls of this code are captured: the user's own, np.polynomial, which is Python that calls NumPy, and what
    stands for functions of Python's.
    """
    return not is_library(code) or code.co_filename.startswith(_POLYNOMIALS) or is_plain_python(code)


def is_plain_python(code: CodeType) -> bool:
    """Whether this code stands for a function of Python's, and is captured like the user's own."""
    return code.co_filename == _PLAIN


def _role(code: CodeType) -> int:
    role = (_STOP if code in _stops else _BORDER if code in _borders else _HIDE if is_hidden(code) else
            _LIBRARY if is_library(code) else _SHOW)
    if len(_roles) >= _LIMIT:
        _roles.clear()
    _roles[id(code)] = (code, role)
    return role


class FrameObserver(Protocol):
    """Who wants to see the user's frames: all but those of settled code, and those that it has seen.

    Both are by the ids of code objects, which are kept alive: the hash of one takes as long as the function is, for each operation.
    """

    settled: dict[int, CodeType]
    latest: dict[int, FrameType]

    def frame(self, frame: FrameType) -> None: ...

    def snapshots(self) -> list[dict[str, Any]]:
        """What Python keeps of the variables of frames."""

    def array(self, array: np.ndarray[Any, Any], source: Callable[[], Source | None]) -> None: ...

    def as_written(self, function: FunctionType) -> None: ...

    def made(self, containers: Iterable[Any]) -> None:
        """Containers and objects that were made for this trace: what they hold is no read from outside."""


def current_source(outer: Source | None = None, observer: FrameObserver | None = None) -> Source | None:
    """The user's line that is running, with its callers; `outer` is the place that called the traced function."""
    frame: FrameType | None = sys._getframe(1)
    chain: list[tuple[CodeType, int]] = []
    library: tuple[CodeType, int] | None = None             # a function that is itself an installed package's has no better line
    while frame is not None:
        code = frame.f_code
        number = id(code)
        found = _roles.get(number)
        role = found[1] if found is not None else _role(code)
        if role == _SHOW:
            chain.append((code, frame.f_lasti))
            if observer is not None and number not in observer.settled and observer.latest.get(number) is not frame:
                observer.frame(frame)
            if len(chain) == _CHAIN_LIMIT:
                break
        elif role == _STOP:
            break
        elif role == _BORDER:
            observer = None
        elif role == _LIBRARY and library is None:
            library = (code, frame.f_lasti)
        frame = frame.f_back
    if not chain and library is not None:
        chain.append(library)
    source = outer
    for code, instruction in reversed(chain):
        key = (id(code), instruction, source)
        known = _sources.get(key)
        source = known[1] if known is not None else _make(key, code, instruction, source)
    return source


def positions_of(code: CodeType) -> Positions:
    """Where each instruction of a code object stands; all are needed soon if one is, and are read one after another."""
    found = _positions.get(id(code))
    if found is None:
        if len(_positions) >= _MOST_POSITIONS:
            _positions.clear()
        found = _positions[id(code)] = (code, tuple(code.co_positions()))
    return found[1]


def _make(key: tuple[int, int, Source | None], code: CodeType, instruction: int, caller: Source | None) -> Source:
    positions = positions_of(code)[instruction // 2]
    name = getattr(code, "co_qualname", code.co_name)
    source = Source(code.co_filename, positions[0] or code.co_firstlineno, positions[2] or 0, name, caller)
    if len(_sources) >= _LIMIT:
        _sources.clear()
    _sources[key] = (code, source)                        # the code too: its id is the key
    return source


def levels_to_the_user() -> int:
    """How many frames up from its caller's the first one is that is not ours, counted as `warnings.warn` does."""
    frame, levels = sys._getframe(1), 1
    while frame.f_back is not None and is_hidden(frame.f_code):
        frame, levels = frame.f_back, levels + 1
    return levels
