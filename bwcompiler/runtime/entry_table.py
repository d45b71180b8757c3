"""A call signature as a table of 64-bit words, which the one native entry of the process walks at every call.

Tables are data, so that a new signature costs microseconds where machine code of its own would cost 7 to 200 ms.
A table is: a header; array specifications, keys and sizes of buffers; guard, result and packing operations.
Offsets are in bytes from the start of the table.  Objects are referred to by address: `Table.keep_alive` owns them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bwcompiler.ir.plan import ERROR_RECORD_BYTES, CallSignature, Leaf, Tree
from bwcompiler.ir.types import DTYPES, TensorType
from bwcompiler.runtime import python_abi as abi

STACK_ARENA_LIMIT = 16 * 1024

# Words of the header.  The frame is one block on the stack: buffers first, then what the *_at words say.
HEADER = (
    "program argument_count frame_bytes objects_at held_at owned_at stack_at registers_at slots_at arena_at arena_bytes"
    " arena_slots release_gil leaf_count captured_count result_count held_count guards results packing sizes into_count"
    " into"
).split()

# A guard operation is 8 words: operation, is the container a dict, register of the container, index or key, a, b, held.
GUARDS = {name: number for number, name in enumerate("end array number scalar static none tuple list dict".split())}
GUARD_BYTES = 64
# A result operation is 4 words: operation, a, b.  A packing operation is 4 words: operation, a, b.
RESULTS = {name: number for number, name in enumerate("array scalar numpy_scalar argument".split())}
PACKING = {name: number for number, name in enumerate("end result none tuple list dict".split())}
STEP_BYTES = 32

NUMBER_KINDS = ("float", "int", "bool", "complex")
DTYPE_NUMBERS = {dtype.name: number for number, dtype in enumerate(DTYPES)}
NUMBER_DTYPES = {
    "float": ("f32", "f64", "c64", "c128"),
    "int": ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "c64", "c128"),
    "bool": tuple(DTYPE_NUMBERS),
    "complex": ("c64", "c128"),
}


@dataclass(frozen=True)
class Table:
    content: bytes
    keep_alive: tuple[object, ...]


def int_shape(type_: TensorType) -> tuple[int, ...]:
    """The shape of an argument or result: constant, as extents depend on indices only inside loops."""
    if not all(isinstance(extent, int) for extent in type_.shape):
        raise ValueError(f"a call cannot take or return {type_}: its shape is not constant")
    return tuple(extent for extent in type_.shape if isinstance(extent, int))


def arena_size(signature: CallSignature) -> int:
    """Bytes of the arena with its error record, in whole cache lines."""
    return -(-(ERROR_RECORD_BYTES + signature.arena_bytes) // 64) * 64


def build_table(signature: CallSignature, program: int, arena_slots: int) -> Table:
    """The table of `signature` for the program and the list of arenas at these addresses."""
    return _Builder(signature).build(program, arena_slots)


class _Builder:
    def __init__(self, signature: CallSignature) -> None:
        self.signature = signature
        self.data: list[int] = []  # what operations refer to; comes right after the header
        self.guards: list[int] = []
        self.packing: list[int] = []
        self.specs: dict[TensorType, int] = {}
        self.keys: dict[str, str] = {}
        self.registers = 1  # register 0 is the vector of positional arguments
        self.held = self.numbers = self.statics = self.depth = 0

    def build(self, program: int, arena_slots: int) -> Table:
        signature = self.signature
        for position, tree in enumerate(signature.arguments):
            self.walk(tree, (0, 0, position), mutable=False)
        self.guards.append(GUARDS["end"])
        results = [word for number in range(len(signature.result_types)) for word in self.result(number)]
        self.pack(signature.result, 0)
        self.packing.append(PACKING["end"])
        into = [leaf for leaf in signature.result_into if leaf is not None]
        header = {
            "program": program,
            "argument_count": len(signature.arguments),
            "arena_bytes": arena_size(signature),
            "arena_slots": arena_slots,
            "release_gil": int(signature.release_gil),
            "leaf_count": len(signature.argument_types),
            "captured_count": len(signature.captured_types),
            "result_count": len(signature.result_types),
            "held_count": self.held,
            "into_count": len(into),
            "sizes": self.place(self.sizes()),
            "into": self.place(into),
            **self.frame(),
        }
        words = [0] * len(HEADER) + self.data
        for name, operations in (("guards", self.guards), ("results", results), ("packing", self.packing)):
            header[name] = 8 * len(words)
            words += operations
        words[: len(HEADER)] = [header[name] for name in HEADER]
        content = b"".join(word.to_bytes(8, sys.byteorder) for word in words)
        return Table(content, tuple(self.keys.values()))

    def place(self, words: Sequence[int]) -> int:
        """The offset at which `words` lie from now on."""
        offset = 8 * (len(HEADER) + len(self.data))
        self.data += words
        return offset

    def frame(self) -> dict[str, int]:
        """Where the parts of the stack frame lie; an arena that does not fit on the stack has arena_at 0."""
        signature = self.signature
        results = len(signature.result_types)
        parts = {
            "objects_at": 8 * len(signature.argument_types),
            "held_at": 8 * (self.held + 1),  # one more, as every leaf is stored at the next free place
            "owned_at": 8 * results,
            "stack_at": 8 * self.depth,
            "registers_at": 8 * self.registers,
            "slots_at": 16 * (self.numbers + results),
        }
        offset, places = 8 * signature.buffer_count, {}
        for name, size in parts.items():
            offset = -(-offset // 16) * 16
            places[name] = offset
            offset += size
        offset = -(-offset // 64) * 64 + 64  # never 0
        if arena_size(signature) <= STACK_ARENA_LIMIT:
            return {**places, "arena_at": offset, "frame_bytes": offset + arena_size(signature)}
        return {**places, "arena_at": 0, "frame_bytes": offset}

    def spec(self, type_: TensorType) -> int:
        """Offset of {ptr descr, i32 type number, i32 rank, i64 extents...}."""
        if type_ not in self.specs:
            dtype, shape = type_.dtype.numpy, int_shape(type_)
            halves = (dtype.num, len(shape))
            numbers = b"".join(half.to_bytes(4, sys.byteorder) for half in halves)
            self.specs[type_] = self.place([id(dtype), int.from_bytes(numbers, sys.byteorder), *shape])
        return self.specs[type_]

    def key(self, key: str) -> int:
        return id(self.keys.setdefault(key, sys.intern(key)))

    def sizes(self) -> list[int]:
        """Bytes of the leaves and captured arrays that a result written into an argument must not overlap."""
        signature = self.signature
        leaves = zip(signature.argument_kinds, signature.argument_types, strict=True)
        sizes = [type_.nbytes if kind in ("array", "scalar") and type_ is not None else 0 for kind, type_ in leaves]
        return sizes + [type_.nbytes for type_ in signature.captured_types]

    # --- arguments ----------------------------------------------------------------------------------------------------

    def walk(self, tree: Tree, source: tuple[int, int, int], mutable: bool) -> None:
        """Guards for `tree`, found at (is in a dict, register, index or key); `mutable`: inside a list or a dict."""
        if isinstance(tree, Leaf):
            self.leaf(tree.index, source, mutable)
            return
        self.guards += [GUARDS[tree.kind], *source, len(tree.children), 0, 0, 0]
        if tree.kind == "none":
            return
        register, self.registers = self.registers, self.registers + 1
        for number, child in enumerate(tree.children):
            where = (1, register, self.key(tree.keys[number])) if tree.kind == "dict" else (0, register, number)
            self.walk(child, where, mutable or tree.kind != "tuple")

    def leaf(self, index: int, source: tuple[int, int, int], mutable: bool) -> None:
        kind, type_ = self.signature.argument_kinds[index], self.signature.argument_types[index]
        held = int(mutable and kind != "static")
        self.held += held
        first = second = 0
        name = kind if kind in GUARDS else "number"
        if kind == "static" or type_ is None:
            first, self.statics = 8 * self.statics, self.statics + 1
        elif kind == "array":
            first, second = self.spec(type_), abi.C_CONTIGUOUS | abi.ALIGNED
            second |= abi.WRITEABLE if index in self.signature.result_into else 0
        elif kind == "scalar":
            first = id(type_.dtype.numpy.type)
        else:
            if type_.dtype.name not in NUMBER_DTYPES[kind]:
                raise ValueError(f"a Python {kind} cannot be passed as {type_}")
            first, second = NUMBER_KINDS.index(kind), DTYPE_NUMBERS[type_.dtype.name]
            self.numbers += 1
        self.guards += [GUARDS[name], *source, first, second, held, 0]

    # --- results ------------------------------------------------------------------------------------------------------

    def result(self, number: int) -> list[int]:
        signature = self.signature
        alias, into = signature.result_aliases_argument[number], signature.result_into[number]
        leaf = alias if alias is not None else into
        if leaf is not None:
            return [RESULTS["argument"], leaf, 0, 0]
        type_ = signature.result_types[number]
        if signature.result_kinds[number] == "array":
            return [RESULTS["array"], self.spec(type_), 0, 0]
        dtype = type_.dtype.numpy
        if dtype.kind == "b":  # there are only two np.bool objects
            return [RESULTS["numpy_scalar"], id(dtype), 0, 0]
        return [RESULTS["scalar"], id(dtype.type), dtype.itemsize, 0]

    def pack(self, tree: Tree, depth: int) -> None:
        """Operations of a stack machine that leave the object of `tree` on top of `depth` others."""
        self.depth = max(self.depth, depth + 1)
        if isinstance(tree, Leaf):
            self.packing += [PACKING["result"], tree.index, 0, 0]
            return
        for number, child in enumerate(tree.children):
            self.pack(child, depth + number)
        keys = self.place([self.key(key) for key in tree.keys]) if tree.keys else 0
        self.packing += [PACKING[tree.kind], len(tree.children), keys, 0]
