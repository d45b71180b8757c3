"""Arguments that are arrays of integers or booleans, and are compiled in because their numbers decide what is traced.

By default such an array is data, like every array.  If the function is refused so (its numbers say how many elements something has, or
which elements of a sparse matrix exist), it is traced with the contents of all such arrays, and then once more with only those that were
read while tracing: arrays that only the program reads stay arguments.  The result is kept under these contents (`contents_key`).

Numbers of floats are likewise given only if the function is refused otherwise (`np.zeros(int(end / step))`); those that it asks for are
compiled in.  If that does not do, so are arrays of floats, but only those of which a size was computed (`np.arange(0, np.sum(x), dt)`).
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import numpy as np

from bwcompiler.errors import BwError
from bwcompiler.frontend.tracing.boundary.arguments import Arguments
from bwcompiler.frontend.tracing.refusals.tracebacks import user_traceback

Traced = TypeVar("Traced")


class KnownArrays:
    """The arrays, which nobody can write to, by their ids; of which what they hold was read.

    floats  whether numbers of floats are given, too; floats_asked: whether any that is not was asked for.
    assumes  whether numbers of data may be assumed (`assumed`), where nothing else is left; decides: on which side branches go, always.
    arrays_asked  the arrays of floats, by their ids, of which sizes are computed, and that are data.
    """

    def __init__(self, arrays: Sequence[np.ndarray[Any, Any]] = (), floats: bool = False, assumes: bool = False,
                 decides: bool = False) -> None:
        self.arrays = {id(array): array for array in arrays}
        self.read: set[int] = set()
        self.floats = floats
        self.floats_asked = False
        self.assumes = assumes
        self.decides = decides
        self.arrays_asked: dict[int, Any] = {}

    def note_read(self, array: Any) -> None:
        """An array is read while tracing: one of these, perhaps, or a view of one."""
        while isinstance(array, np.ndarray):
            if id(array) in self.arrays:
                self.read.add(id(array))
            array = array.base


def contents_key(array: np.ndarray[Any, Any]) -> Any:
    """Equal for arrays that hold the same and lie in memory alike."""
    layout = None if array.flags.c_contiguous else array.strides
    return ("contents", array.dtype, array.shape, layout, hashlib.blake2b(array.tobytes(), digest_size=32).digest())


def known_in(arguments: Arguments, floats: bool = False, assumes: bool = False, decides: bool = False) -> KnownArrays:
    """The arrays among the compile-time values, which from now on have memory of their own that nobody writes to."""
    found = []
    for position in arguments.static:
        leaf = arguments.leaves[position]
        if type(leaf) is np.ndarray:
            if leaf.flags.writeable or leaf.base is not None:
                leaf = arguments.leaves[position] = np.array(leaf, order="K")
                leaf.flags.writeable = False
            found.append(leaf)
    return KnownArrays(found, floats, assumes, decides)


def knowing_floats(arguments: Arguments, attempt: Callable[[KnownArrays], Traced]) -> Traced | BwError | None:
    """What `attempt` traces when it is given numbers of floats; what it is refused for even then, if that is told."""
    before = copy.copy(arguments)
    _restore(arguments, before)
    try:
        return attempt(known_in(arguments, floats=True))
    except Exception as error:
        _restore(arguments, before)
        return error.with_traceback(user_traceback(error.__traceback__)) if isinstance(error, BwError) else None


def assuming(arguments: Arguments, attempt: Callable[[KnownArrays], Traced]) -> Traced | None:
    """What `attempt` traces when it takes numbers that data decide for what they are now; None where it is refused even then.

    First where it is refused otherwise; then the sides of all branches, as in trees that are built of objects.  The function may raise
    what Python does for these arguments, which nothing told before.
    """
    before = copy.copy(arguments)
    for decides in (False, True):
        _restore(arguments, before)
        try:
            return attempt(known_in(arguments, assumes=True, decides=decides))
        except (BwError, TypeError, AttributeError, NameError):    # the last of a handle in the place of a number, perhaps
            _restore(arguments, before)
    return None


def knowing_arrays(arguments: Arguments, attempt: Callable[[KnownArrays], Traced], asked: Collection[int] = (),
                   integers: bool = False) -> tuple[Traced, list[int]] | Exception | None:
    """What `attempt` traces when it knows what arrays of integers hold, and the positions of these; why it is still refused; None: if
    there are no such arguments.

    The arguments have them among their compile-time values then.  asked: the ids of arrays of floats that it is to know, too; integers:
    and so are all numbers that are integers.
    """
    numbers = [position for position in arguments.dynamic if integers and type(arguments.leaves[position]) in (int, bool)]
    candidates = [position for position in arguments.dynamic if _may_be_known(arguments.leaves[position])
                  or id(arguments.leaves[position]) in asked or position in numbers]
    before = copy.copy(arguments)
    floats = bool(asked)
    with_all = _attempted(arguments, before, candidates, attempt, floats) if candidates and (numbers or not integers) else None
    if not isinstance(with_all, tuple):
        return with_all
    known, found = with_all
    needed = [position for position in candidates if position in numbers or id(arguments.leaves[position]) in known.read]
    if len(needed) == len(candidates):
        return found, candidates
    after = copy.copy(arguments)
    with_needed = _attempted(arguments, before, needed, attempt, floats)
    if not isinstance(with_needed, tuple):
        _restore(arguments, after)
        return found, candidates
    return with_needed[1], needed


def _attempted(arguments: Arguments, before: Arguments, positions: Sequence[int],
               attempt: Callable[[KnownArrays], Traced], floats: bool) -> tuple[KnownArrays, Traced] | Exception:
    _restore(arguments, before)
    arguments.also_static(positions)
    known = known_in(arguments, floats)
    try:
        return known, attempt(known)
    except Exception as error:                     # of NumPy's, too: the function may write to such an array
        _restore(arguments, before)
        return error


def _restore(arguments: Arguments, state: Arguments) -> None:
    arguments.leaves, arguments.static, arguments.dynamic = list(state.leaves), set(state.static), list(state.dynamic)


def _may_be_known(leaf: Any) -> bool:
    return type(leaf) is np.ndarray and leaf.ndim > 0 and leaf.dtype.kind in "biu"
