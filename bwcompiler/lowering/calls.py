"""A lowered graph as a function that calls its steps, in order: a sequence of calls, or a table of calls that one loop walks.

A short program is a sequence; a long one (an unrolled loop) is a table, so that code size and compile time depend on the
distinct functions only.  There are two kinds of function:

    i32 bw_program(ptr buffers, ptr arena)                                        the program itself
    i32 body(ptr record, ptr arena, ptr argument 0, ..., ptr result 0, ..., i64 index 0, ...)       the body of a loop, a branch

`Slots` has what they share: the registers of the arguments, the results and the arena of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bwcompiler.ir.contracts.memory import Location
from bwcompiler.ir.contracts.program_interface import ERROR_RECORD_BYTES
from bwcompiler.ir.extent import Affine, Extent, Index
from bwcompiler.ir.types import I64, DType
from bwcompiler.lowering.llvm_scalars import literal, register_type

TABLE_CALLS = 48               # programs with more calls than this use a table,
REPEATS = 4                    # if functions are called this often on average: the wrapper of a function is as long as some calls
RECORD = Location("record", 0)


class Pointer(NamedTuple):
    """A location plus an offset in bytes; in the body of a loop the offset may depend on the index."""

    location: Location
    bytes: Extent = 0


class Told(NamedTuple):
    """A word: a scalar argument of a function."""

    value: Extent | float
    dtype: DType = I64

    @property
    def bits(self) -> int:
        """The i64 in a row of a table: the bits of a float, or the integer itself."""
        if self.dtype.is_float:
            return int(np.asarray(self.value, self.dtype.numpy).view(f"i{self.dtype.itemsize}"))
        return int(self.value)  # type: ignore[arg-type]


class FunctionCall(NamedTuple):
    """One call: pointer arguments, then words; and whether it returns a status."""

    function: str
    arguments: tuple[Pointer, ...]
    words: tuple[Told, ...] = ()
    status: bool = False


class Slots(NamedTuple):
    """The parameters of a graph's function: numbers of arguments and results, and the indices of the enclosing loops."""

    arguments: int
    results: int
    indices: tuple[Index, ...] = ()

    @property
    def registers(self) -> list[str]:
        """Their registers in the function."""
        return [*[f"%argument{number}" for number in range(self.arguments)], *[f"%result{number}" for number in range(self.results)]]

    def number(self, location: Location) -> int:
        """The slot of an argument or result; the error record and the arena have the two slots after these."""
        match location.kind:
            case "argument":
                return location.number
            case "result":
                return self.arguments + location.number
            case "record":
                return self.arguments + self.results
        return self.arguments + self.results + 1


def program_text(name: str, slots: Slots, calls: Sequence[FunctionCall], texts: list[str]) -> str:
    """The function `i32 name(ptr buffers, ptr arena)`; the arena begins with the error record."""
    function = _Function(slots)
    head = f"define i32 @{name}(ptr %buffers, ptr %arena) #0 {{\nentry:\n"
    function.lines += ["  %record = getelementptr i8, ptr %arena, i64 0",
                       f"  %memory = getelementptr i8, ptr %arena, i64 {ERROR_RECORD_BYTES}"]
    for number, register in enumerate(slots.registers):
        function.lines += [f"  {register}.slot = getelementptr ptr, ptr %buffers, i64 {number}",
                           f"  {register} = load ptr, ptr {register}.slot"]
    return head + _body(name, function, calls, texts)


def parts_text(name: str, parts: Sequence[str]) -> str:
    """A function that calls others of its form in order."""
    lines = [f"define i32 @{name}(ptr %buffers, ptr %arena) #0 {{", "entry:"]
    for number, part in enumerate(parts):
        lines += [f"  %status{number} = call i32 @{part}(ptr %buffers, ptr %arena)", *_leave(number)]
    return "\n".join([*lines, "  ret i32 0", "}", ""])


def body_text(name: str, slots: Slots, calls: Sequence[FunctionCall], texts: list[str]) -> str:
    """The function of the body of a loop, or of a branch."""
    function = _Function(slots)
    short = not repeats(calls)
    return (f"define internal i32 @{name}({', '.join(body_parameters(slots))}) #{2 if short else 1} {{\nentry:\n"
            + _body(name, function, calls, texts))


def body_parameters(slots: Slots) -> list[str]:
    """The parameters of `body_text`, with their types."""
    return ["ptr %record", "ptr %memory", *[f"ptr {register}" for register in slots.registers],
            *[f"i64 %x{number}" for number in range(len(slots.indices))]]


def extent_register(extent: Extent, put: Callable[[str], str], register_of: Callable[[Index], str]) -> str:
    """The register, or literal, of an extent; `put` appends an instruction and returns its register."""
    if isinstance(extent, int):
        return str(extent)
    total = ""
    for index, factor in extent.terms:
        step = register_of(index)
        if factor != 1:
            step = put(f"mul nsw i64 {step}, {factor}")
        total = put(f"add nsw i64 {total}, {step}") if total else step
    return put(f"add nsw i64 {total}, {extent.constant}") if extent.constant else total


class _Function:
    """The lines of one function, and registers of pointers and extents that it has already computed."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.lines: list[str] = []
        self.known: dict[object, str] = {index: f"%x{number}" for number, index in enumerate(slots.indices)}
        self.bases = [*slots.registers, "%record", "%memory"]

    def put(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def extent(self, extent: Extent) -> str:
        """The register, or literal, of an extent."""
        if isinstance(extent, int):
            return str(extent)
        found = self.known.get(extent)
        if found is None:
            found = self.known[extent] = extent_register(extent, self.put, self.known.__getitem__)
        return found


    def pointer(self, pointer: Pointer) -> str:
        """The register of an address; equal pointers share one."""
        base, offset = place = self.place(pointer)
        found = self.known.get(place)
        if found is None:
            found = self.bases[base]
            if offset != 0:
                at, source = self.extent(offset), found
                found = f"{source}.{offset}" if isinstance(offset, int) else f"%p{len(self.lines)}"
                self.lines.append(f"  {found} = getelementptr i8, ptr {source}, i64 {at}")
            self.known[place] = found
        return found

    def place(self, pointer: Pointer) -> tuple[int, Extent]:
        """(slot, byte offset)."""
        offset = pointer.bytes + pointer.location.number if pointer.location.kind == "arena" else pointer.bytes
        return self.slots.number(pointer.location), offset

    def word(self, word: Told) -> str:
        """Type and register, or literal, of a number."""
        if isinstance(word.value, Affine):
            return f"i64 {self.extent(word.value)}"
        return f"{register_type(word.dtype)} {literal(word.value, word.dtype)}"


def _body(name: str, function: _Function, calls: Sequence[FunctionCall], texts: list[str]) -> str:
    (_table if repeats(calls) else _sequence)(name, function, calls, texts)
    return "\n".join([*function.lines, "}", ""])


def repeats(calls: Sequence[FunctionCall]) -> bool:
    """Whether a table pays off: many calls, and functions that are called several times."""
    return len(calls) > TABLE_CALLS and len(calls) >= REPEATS * len({call.function for call in calls})


def _sequence(name: str, function: _Function, calls: Sequence[FunctionCall], texts: list[str]) -> None:
    lines = function.lines
    for number, call in enumerate(calls):
        arguments = [*[f"ptr {function.pointer(pointer)}" for pointer in call.arguments], *[function.word(word) for word in call.words]]
        if not call.status:
            lines.append(f"  call void @{call.function}({', '.join(arguments)})")
            continue
        lines += [f"  %status{number} = call i32 @{call.function}({', '.join(arguments)})", *_leave(number)]
    lines.append("  ret i32 0")


def _leave(number: int) -> list[str]:
    """Return with the status of a call, unless that is 0."""
    return [f"  %bad{number} = icmp ne i32 %status{number}, 0", f"  br i1 %bad{number}, label %leave{number}, label %go{number}",
            f"leave{number}:", f"  ret i32 %status{number}", f"go{number}:"]


# ----- tables
def _table(name: str, function: _Function, calls: Sequence[FunctionCall], texts: list[str]) -> None:
    """A loop over rows {length of the row, function, (slot, offset) per pointer, words}.

    Arguments that depend on a loop index are computed first: such pointers get a slot of their own, such words an entry in the array
    `told`.  The rows of a function that takes any such word have positions in `told` instead of the words.
    """
    bases, told = _Numbered(function.bases), _Numbered([])
    moving = {call.function for call in calls if any(isinstance(word.value, Affine) for word in call.words)}
    wrappers: dict[str, int] = {}
    rows: list[int] = []
    for call in calls:
        if call.function not in wrappers:
            wrappers[call.function] = len(wrappers)
            texts.append(_wrapper(f"{name}.{call.function}", call, call.function in moving))
        places: list[int] = []
        for pointer in call.arguments:
            slot, offset = function.place(pointer)
            places += (slot, offset) if isinstance(offset, int) else (bases.number(function.pointer(pointer)), 0)
        words = [told.number(_as_word(function, word)) if call.function in moving else word.bits for word in call.words]
        rows += [2 + len(places) + len(words), wrappers[call.function], *places, *words]
    names = ", ".join(f"ptr @{name}.{wrapped}.row" for wrapped in wrappers)
    texts.extend([f"@{name}.functions = private constant [{len(wrappers)} x ptr] [{names}]",
                       f"@{name}.table = private constant [{len(rows)} x i64] [{', '.join([f'i64 {word}' for word in rows])}]"])
    lines = function.lines
    for array, type_, entries in (("bases", "ptr", bases.entries), ("told", "i64", told.entries)):
        lines.append(f"  %{array} = alloca [{len(entries)} x {type_}]")
        for number, entry in enumerate(entries):
            lines += [f"  %{array}.{number} = getelementptr {type_}, ptr %{array}, i64 {number}",
                      f"  store {type_} {entry}, ptr %{array}.{number}"]
    lines.append(_WALK.format(name=name, words=len(rows)))


class _Numbered:
    """Distinct registers, numbered in order."""

    def __init__(self, entries: Sequence[str]) -> None:
        self.entries = list(entries)
        self.known = {entry: number for number, entry in enumerate(entries)}

    def number(self, entry: str) -> int:
        found = self.known.get(entry)
        if found is None:
            found = self.known[entry] = len(self.entries)
            self.entries.append(entry)
        return found


def _as_word(function: _Function, word: Told) -> str:
    return function.extent(word.value) if isinstance(word.value, Affine) else str(word.bits)


def _wrapper(name: str, call: FunctionCall, moving: bool) -> str:
    """A wrapper of the function that reads its pointers and words from a row of the table."""
    lines = [f"define internal i32 @{name}.row(ptr %bases, ptr %told, ptr %row) #1 {{"]
    arguments = []
    for k in range(len(call.arguments)):
        lines += [f"  %s{k}.at = getelementptr i64, ptr %row, i64 {2 + 2 * k}", f"  %s{k} = load i64, ptr %s{k}.at",
                  f"  %o{k}.at = getelementptr i64, ptr %row, i64 {3 + 2 * k}", f"  %o{k} = load i64, ptr %o{k}.at",
                  f"  %b{k}.at = getelementptr ptr, ptr %bases, i64 %s{k}", f"  %b{k} = load ptr, ptr %b{k}.at",
                  f"  %p{k} = getelementptr i8, ptr %b{k}, i64 %o{k}"]
        arguments.append(f"ptr %p{k}")
    for k, word in enumerate(call.words):
        type_ = register_type(word.dtype)                  # stored in the low bytes of its 8-byte entry
        place = 2 + 2 * len(call.arguments) + k
        lines.append(f"  %w{k}.at = getelementptr i64, ptr %row, i64 {place}")
        source = f"%w{k}.at"
        if moving:
            source = f"%w{k}.told"
            lines += [f"  %w{k}.place = load i64, ptr %w{k}.at", f"  {source} = getelementptr i64, ptr %told, i64 %w{k}.place"]
        lines.append(f"  %w{k} = load {type_}, ptr {source}")
        arguments.append(f"{type_} %w{k}")
    if call.status:
        lines += [f"  %status = call i32 @{call.function}({', '.join(arguments)})", "  ret i32 %status"]
    else:
        lines += [f"  call void @{call.function}({', '.join(arguments)})", "  ret i32 0"]
    return "\n".join([*lines, "}", ""])


_WALK = """  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %go ]
  %more = icmp slt i64 %at, {words}
  br i1 %more, label %body, label %done
body:
  %row = getelementptr i64, ptr @{name}.table, i64 %at
  %length = load i64, ptr %row
  %which.at = getelementptr i64, ptr %row, i64 1
  %which = load i64, ptr %which.at
  %function.at = getelementptr ptr, ptr @{name}.functions, i64 %which
  %function = load ptr, ptr %function.at
  %status = call i32 %function(ptr %bases, ptr %told, ptr %row)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %leave, label %go
leave:
  ret i32 %status
go:
  %next = add i64 %at, %length
  br label %head
done:
  ret i32 0"""
