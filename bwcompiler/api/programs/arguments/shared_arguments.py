"""Arguments that share memory, one of which the function assigns to: as in NumPy, the assignment is visible through all of them.

Normally a program is compiled for arguments with separate memory.  If an argument that is assigned to overlaps another
one, the function is compiled once more for this overlap (`SharedArguments`).  The new program takes the underlying arrays
("memories") as arguments; while tracing, the overlapping arguments are views of them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.api.programs.arguments.assignments import may_mutate
from bwcompiler.errors import SignatureError
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, StaticArgument
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.storages.common_memory import Place, chain_of
from bwcompiler.frontend.tracing.storages.contents import owner_of
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.frontend.tracing.tracer import handle
from bwcompiler.ir.types import tensor

Array = np.ndarray[Any, Any]

_MEMORIES = "shared_memory"    # the first argument of a function over memories

class View:
    """Stands in for an argument: a view of the memory with this number; `first` is the first leaf that is the same object."""

    __slots__ = ("first", "memory", "place")

    def __init__(self, memory: int, place: Place, first: int) -> None:
        self.memory = memory
        self.place = place
        self.first = first

    def __eq__(self, other: object) -> bool:
        return isinstance(other, View) and (self.memory, self.place, self.first) == (other.memory, other.place, other.first)

    def __hash__(self) -> int:
        return hash((self.memory, self.place, self.first))

    def __repr__(self) -> str:
        offset, shape, strides = self.place
        return f"<a view of shared memory from element {offset}, of shape {shape} and steps {strides}>"


class SharedArguments:
    """The programs of one function for arguments that overlap.

    compiled   (function, arguments that are written back) -> a compiled function.
    """

    def __init__(self, fun: Callable[..., Any], mutates: Any, autoloop: bool, compiled: Callable[[Any, Any], Callable[..., Any]]) -> None:
        self.fun = fun
        self.mutates = mutates
        self.autoloop = autoloop
        self.compiled = compiled
        self._programs: dict[Any, Any] = {}

    def __call__(self, traced: TraceResult, arguments: Arguments, given: Sequence[Any], groups: Sequence[Sequence[int]]) -> Any:
        """The result for the dynamic leaves `given`; those of a group overlap.  traced: the function, traced for separate arguments.

        Raises SignatureError if the arrays of a group cannot be views of one array, or `mutates` selects only some of them.
        """
        leaves = list(given)
        memories: list[Array] = []
        back: list[bool] = []
        for group, memory in _with_memories(groups, leaves):
            chosen = {may_mutate(self.mutates, k, traced) for k in group if k in traced.written}
            if memory is None or len(chosen) > 1:
                why = ("their dtypes differ, or their elements are not aligned with each other" if memory is None else
                       "mutates= selects only some of them")
                listed = " and ".join([traced.input_names[k] for k in group])
                raise SignatureError(f"{listed} share memory, one of them is assigned to, and {why}\n"
                                     f"  hint: pass a copy, {traced.input_names[group[-1]]}.copy()")
            objects = [id(leaves[k]) for k in group]
            views = [View(len(memories), _place(leaves[k], memory), group[objects.index(id(leaves[k]))]) for k in group]
            for k, view in zip(group, views, strict=True):
                leaves[k] = StaticArgument(view)
            memories.append(memory)
            back.append(chosen == {True})
        args, kwargs = arguments.with_leaves(leaves, declare=True)
        return self._program(self._written_back(back, traced))(memories, *args, **kwargs)

    def _written_back(self, back: Sequence[bool], traced: TraceResult) -> Any:
        """`mutates` of the function over memories: the memories selected by `back`, and the selected other arguments."""
        if isinstance(self.mutates, bool):
            return self.mutates
        others = {name for number, name in enumerate(traced.input_names) if may_mutate(self.mutates, number, traced)}
        return (*[f"{_MEMORIES}.{k}" for k, one in enumerate(back) if one], *sorted(others))

    def _program(self, back: Any) -> Any:
        found = self._programs.get(back)
        if found is None:
            over = functools.update_wrapper(functools.partial(_over, self.fun, self.autoloop), self.fun, updated=())
            vars(over)["__signature__"] = _signature_over(self.fun)
            found = self._programs[back] = self.compiled(over, back)
        return found


class ProgramsOver:
    """A compiled function of memories and views: one `Program` per kind of arguments, compiled for the first ones of the kind."""

    def __init__(self, program: Callable[..., Any]) -> None:
        self.program = program
        self.programs: dict[Any, Any] = {}

    def __call__(self, memories: Sequence[Array], *args: Any) -> Any:
        views = [leaf.value for leaf in tree.leaves(args) if isinstance(leaf, StaticArgument) and isinstance(leaf.value, View)]
        key = (*[(array.shape, array.dtype) for array in memories], *views)
        if key not in self.programs:
            self.programs[key] = self.program(memories, *args)
        return self.programs[key](memories, *args)


def _over(fun: Callable[..., Any], autoloop: bool, memories: Sequence[Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call fun with views of the traced memories in place of `View`s."""
    made: dict[int, Any] = {}

    def argument(leaf: Any) -> Any:
        if not isinstance(leaf, View):
            return leaf
        if leaf.first not in made:
            memory = memories[leaf.memory]
            made[leaf.first] = handle(memory._storage, chain_of(leaf.place, memory.shape), tensor(memory._type.dtype, leaf.place.shape))
        return made[leaf.first]

    args, kwargs = tree.map(argument, (args, kwargs))
    return call_user(fun, args, kwargs, autoloop)


def _signature_over(fun: Callable[..., Any]) -> inspect.Signature:
    """The signature of `_over`: one more parameter, then those of fun, so that leaves keep their names."""
    first = inspect.Parameter(_MEMORIES, inspect.Parameter.POSITIONAL_ONLY)
    try:
        parameters = list(inspect.signature(fun).parameters.values())
        return inspect.Signature([first, *parameters])
    except (TypeError, ValueError):                # it has no signature, or a parameter of this name
        return inspect.Signature([first, inspect.Parameter("arg", inspect.Parameter.VAR_POSITIONAL),
                                  inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])


# ----- memory
def _with_memories(groups: Sequence[Sequence[int]], leaves: Sequence[Any]) -> list[tuple[list[int], Array | None]]:
    """The groups, each with its common memory (None: impossible).  Leaves that overlap the common memory of a group join it."""
    found: list[tuple[list[int], Array | None]] = []
    waiting = [list(group) for group in groups]
    while waiting:
        group = waiting.pop()
        memory = _common_memory([leaves[k] for k in group])
        more = [k for k, leaf in enumerate(leaves) if k not in group and memory is not None and isinstance(leaf, np.ndarray)
                and np.may_share_memory(memory, leaf)]
        if not more:
            found.append((group, memory))
            continue
        met = [other for other in (*waiting, *[one for one, _ in found]) if {*other} & {*more}]
        found = [pair for pair in found if pair[0] not in met]
        waiting = [*[other for other in waiting if other not in met], sorted({*group, *more}.union(*met))]
    return sorted(found, key=lambda pair: pair[0])


def _common_memory(arrays: Sequence[Array]) -> Array | None:
    """A C-ordered array that contains all of these arrays, within the memory of their owners; None if there is none.

    If they are all views of one array in C or Fortran order, it consists of whole rows of that array.
    """
    first = arrays[0]
    size = first.itemsize
    starts = [_lowest(array) for array in arrays]
    if any(array.dtype != first.dtype or not array.dtype.isnative or (start - starts[0]) % size or not _steps_whole(array)
           for array, start in zip(arrays, starts, strict=True)):
        return None
    low, high = min(starts), max(start + _reach(array) for array, start in zip(arrays, starts, strict=True))
    row: tuple[int, ...] = ()
    owners = [owner_of(array) for array in arrays]
    if all(owner is owners[0] for owner in owners) and owners[0].dtype == first.dtype:
        owner = owners[0] if owners[0].flags.c_contiguous else owners[0].T
        if owner.flags.c_contiguous and owner.ndim > 1:
            row, begin = owner.shape[1:], owner.__array_interface__["data"][0]
            stride = prod(row) * size
            low, high = begin + (low - begin) // stride * stride, begin - (begin - high) // stride * stride
    return np.asarray(_Bytes(low, high - low, arrays)).view(first.dtype).reshape(-1, *row)


class _Bytes:
    """The bytes at an address, for NumPy; keeps the arrays that own them alive."""

    def __init__(self, address: int, count: int, arrays: Sequence[Array]) -> None:
        self.arrays = arrays
        self.__array_interface__ = {"version": 3, "shape": (count,), "typestr": "|u1", "data": (address, False)}


def _lowest(array: Array) -> int:
    """The lowest address of an element."""
    before = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True) if stride < 0]
    return int(array.__array_interface__["data"][0] + sum(before))


def _reach(array: Array) -> int:
    """Bytes from the lowest address of an element to the end of the highest element."""
    return int(array.itemsize + sum([abs(stride) * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True)]))


def _steps_whole(array: Array) -> bool:
    return all(stride % array.itemsize == 0 for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1)


def _place(array: Array, memory: Array) -> Place:
    size = array.itemsize
    start = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return Place(start // size, array.shape, tuple([stride // size if extent > 1 else 0
                                                    for stride, extent in zip(array.strides, array.shape, strict=True)]))
