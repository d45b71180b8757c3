"""A call signature as a table of 64-bit words, which the one native entry of the process walks at every call.

Tables are data, so that a new signature costs microseconds where machine code of its own would cost 7 to 200 ms.
A table is: a header; array specifications, keys and sizes of buffers; guard, result and packing operations.
Offsets are in bytes from the start of the table.  Objects are referred to by address: `Table.keep_alive` owns them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bwcompiler.ir.contracts.call_signature import (
    NOTHING,
    CallSignature,
    Container,
    Contents,
    Fixed,
    Leaf,
    Read,
    Static,
    Tree,
    is_plain,
    names_in_dict,
)
from bwcompiler.ir.contracts.plain_objects import has_dict
from bwcompiler.ir.contracts.program_interface import ERROR_RECORD_BYTES
from bwcompiler.ir.types import DTYPES, TensorType
from bwcompiler.runtime import python_abi as abi

STACK_ARENA_LIMIT = 16 * 1024
LARGE_BYTES = 256 * 1024  # least size of results and arenas from `memory_pool.py`; below, malloc reuses memory itself

# Words of the header.  The frame is one block on the stack: buffers first, then the parts at the *_at offsets.
HEADER = (
    "program argument_count keyword_count keywords frame_bytes objects_at held_at owned_at stack_at registers_at slots_at"
    " copies_at arena_at arena_bytes arena_slots release_gil leaf_count captured_count result_count held_count guards"
    " results packing sizes into_count into copied_count copied captured_specs"
).split()

# A guard operation is 8 words: operation, source, base, key, a, b, is the object held, leaf; for a known array, the last two words are
# the address of its bytes and their number; for an object of a class, the number of attributes in its dict (-1: it has no dict), and how
# many of these, the last ones, are in this order.
# The source is the place of the object: item `key` of the vector in register `base`; entry `key` of the dict in that register, or
# attribute `key` of the object in it; or, for the object at address `base`: entry `key` of a dict, the contents of a cell, attribute
# `key`, item `key` of a list, the pointer at byte offset `key`, or the object itself.
GUARDS = {name: number for number, name in enumerate(
    "end array number scalar plain none tuple list dict instance same size keys bytes holds known absent".split())}
SOURCES = {name: number for number, name in enumerate("item entry member global cell attribute list_item slot itself".split())}
GUARD_BYTES = 64
COPY, STRIDES = 1 << 32, 1 << 33  # in word b of an array: it may be copied; its strides follow in the specification
# A result operation is 4 words: operation, a, b.  A packing operation is 4 words: operation, a, b.
RESULTS = {name: number for number, name in enumerate("array large_array scalar numpy_scalar argument".split())}
PACKING = {name: number for number, name in enumerate("end result none tuple list dict named instance constant".split())}
STEP_BYTES = 32

NUMBER_KINDS = ("float", "int", "bool", "complex")
DTYPE_NUMBERS = {dtype.name: number for number, dtype in enumerate(DTYPES)}
NUMBER_DTYPES = {
    "float": ("f32", "f64", "c64", "c128"),
    "int": ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "c64", "c128"),
    "bool": tuple([name for name in DTYPE_NUMBERS if name != "f16"]),       # f16 is rounded in Python: a slower call
    "complex": ("c64", "c128"),
}


def takes_numbers(signature: CallSignature) -> bool:
    """Whether the native entry can convert every Python number among the arguments to the dtype of the program."""
    return all(kind not in NUMBER_KINDS or type_.dtype.name in NUMBER_DTYPES[kind]
               for kind, type_ in zip(signature.argument_kinds, signature.argument_types, strict=True))


class Question:
    """Whether a read holds, as machine code asks: by comparing this with anything."""

    __slots__ = ("read",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, read: Read) -> None:
        self.read = read

    def __eq__(self, other: object) -> bool:
        return self.read.holds()


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


def build_table(
    signature: CallSignature, program: int, arena_slots: int, statics: Sequence[object] = (), reads: Sequence[Read] = (),
    strided: Sequence[int] = ()
) -> Table:
    """The table of `signature` for the program and the list of arenas at these addresses.

    strided   captured arrays that are copied at every call, as they are not C-contiguous and aligned.
    """
    return _Builder(signature, statics, strided).build(program, arena_slots, reads)


class _Builder:
    def __init__(self, signature: CallSignature, statics: Sequence[object], strided: Sequence[int]) -> None:
        self.signature = signature
        self.statics = statics
        self.strided = strided
        self.data: list[int] = []  # data that operations refer to, right after the header
        self.guards: list[int] = []
        self.packing: list[int] = []
        self.specs: dict[tuple[TensorType, tuple[int, ...]], int] = {}
        self.keys: dict[tuple[type, str | int], str | int] = {}
        self.registers = 1  # register 0 is the vector of arguments
        self.held = self.numbers = self.depth = 0
        self.questions: list[Question] = []
        self.classes: list[type] = []
        self.fixed: list[object] = []

    def build(self, program: int, arena_slots: int, reads: Sequence[Read]) -> Table:
        signature = self.signature
        for read in reads:
            self.read(read)
        for position, tree in enumerate(signature.arguments):
            self.walk(tree, (SOURCES["item"], 0, position), mutable=False)
        self.guards.append(GUARDS["end"])
        results = [word for number in range(len(signature.result_types)) for word in self.result(number)]
        self.pack(signature.result, 0)
        self.packing.append(PACKING["end"])
        into = signature.unshared
        copied = self.copied()
        header = {
            "program": program,
            "argument_count": len(signature.arguments) - len(signature.keywords),
            "keyword_count": len(signature.keywords),
            "keywords": self.place([self.key(name) for name in signature.keywords]),
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
            "copied_count": len(copied),
            "copied": self.place(copied),
            "captured_specs": self.place([word for number in range(len(signature.captured_types)) for word in self.captured(number)]),
            **self.frame(len(copied)),
        }
        words = [0] * len(HEADER) + self.data
        for name, operations in (("guards", self.guards), ("results", results), ("packing", self.packing)):
            header[name] = 8 * len(words)
            words += operations
        words[: len(HEADER)] = [header[name] for name in HEADER]
        content = b"".join([word.to_bytes(8, sys.byteorder) for word in words])
        return Table(content, (*self.keys.values(), *self.statics, *reads, *self.questions, *self.classes, *self.fixed))

    def place(self, words: Sequence[int]) -> int:
        """Append `words` to the data; returns their offset."""
        offset = 8 * (len(HEADER) + len(self.data))
        self.data += words
        return offset

    def frame(self, copies: int) -> dict[str, int]:
        """The offsets of the parts of the stack frame; arena_at is 0 if the arena does not fit on the stack."""
        signature = self.signature
        results = len(signature.result_types)
        parts = {
            "objects_at": 8 * (len(signature.argument_types) + len(signature.captured_types)),
            "held_at": 8 * (self.held + 1),  # one more, as every leaf is stored at the next free place
            "owned_at": 8 * results,
            "stack_at": 8 * self.depth,
            "registers_at": 8 * self.registers,
            "slots_at": 16 * (self.numbers + results),
            "copies_at": 8 * copies,
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

    def spec(self, type_: TensorType, strides: tuple[int, ...] = ()) -> int:
        """Offset of {ptr descr, i32 type number, i32 rank, i64 extents..., i64 strides...}."""
        if (type_, strides) not in self.specs:
            dtype, shape = type_.dtype.numpy, int_shape(type_)
            halves = (dtype.num, len(shape))
            numbers = b"".join(half.to_bytes(4, sys.byteorder) for half in halves)
            words = [id(dtype), int.from_bytes(numbers, sys.byteorder), *shape, *[stride % 2**64 for stride in strides]]
            self.specs[type_, strides] = self.place(words)
        return self.specs[type_, strides]

    def key(self, key: str | int) -> int:
        return id(self.keys.setdefault((type(key), key), sys.intern(key) if isinstance(key, str) else key))

    def in_order(self, keys: Sequence[str | int]) -> tuple[int, int]:
        """How many keys a dict must have, and the offset of these."""
        return len(keys), self.place(list(map(self.key, keys)))

    def sizes(self) -> list[int]:
        """Bytes of the leaves and captured arrays that a result written into an argument must not overlap."""
        signature = self.signature
        leaves = zip(signature.argument_kinds, signature.argument_types, strict=True)
        sizes = [type_.nbytes if kind in ("array", "scalar") else 0 for kind, type_ in leaves]
        return sizes + [type_.nbytes for type_ in signature.captured_types]

    # --- arguments ----------------------------------------------------------------------------------------------------

    def walk(self, tree: Tree, source: tuple[int, int, int], mutable: bool) -> None:
        """Guards for `tree`, found at (source, register, index or key); `mutable`: inside a list or a dict."""
        if isinstance(tree, Leaf):
            self.leaf(tree.index, source, mutable)
            return
        if isinstance(tree, Static):
            self.expect(self.statics[tree.index], source)
            return
        if isinstance(tree, Fixed):
            self.fixed.append(tree.value)
            self.expect(tree.value, source)
            return
        self.guards += [GUARDS[tree.kind], *source, *self.container(tree)]
        if tree.kind == "none":
            return
        register, self.registers = self.registers, self.registers + 1
        name = {"dict": "entry", "instance": "member"}.get(tree.kind, "item")
        for number, child in enumerate(tree.children):
            key = number if name == "item" else self.key(tree.keys[number])
            self.walk(child, (SOURCES[name], register, key), mutable or tree.kind != "tuple")

    def container(self, tree: Container) -> tuple[int, int, int, int]:
        """The last four words of the guard for a container."""
        if tree.kind == "instance":
            names = names_in_dict(tree) if has_dict(self.class_of(tree)) else None
            keys = 0 if names is None else self.in_order(names)[1]
            return id(tree.cls), keys, -1 % 2**64 if names is None else len(names), len(tree.extra)
        detail = self.in_order(tree.keys)[1] if tree.kind == "dict" else id(self.class_of(tree)) if tree.kind == "tuple" else 0
        return len(tree.children), detail, 0, 0

    def class_of(self, tree: Container) -> type:
        """The class that a tuple or an object has to be of; the table keeps it alive."""
        cls = tree.cls or tuple
        self.classes.append(cls)
        return cls

    def expect(self, expected: object, source: tuple[int, int, int]) -> None:
        """A guard for exactly this object, for an equal number or string, a tuple of these, or for an array that holds the same."""
        if type(expected) is Contents:
            array = expected.array
            flags = abi.C_CONTIGUOUS | abi.ALIGNED
            self.guards += [GUARDS["known"], *source, self.spec(expected.type), flags, array.ctypes.data, array.nbytes]
            return
        if type(expected) is tuple and is_plain(expected):
            self.guards += [GUARDS["tuple"], *source, len(expected), id(tuple), 0, 0]
            register, self.registers = self.registers, self.registers + 1
            for number, item in enumerate(expected):
                self.expect(item, (SOURCES["item"], register, number))
            return
        name = "plain" if type(expected) in (int, str, bytes, float) else "same"
        self.guards += [GUARDS[name], *source, id(expected), 0, 0, 0]

    def read(self, read: Read) -> None:
        """A guard for a value outside of the arguments, or the operands that are read there."""
        if read.kind == "size":
            self.guards += [GUARDS["size"], SOURCES["itself"], id(read.base), 0, read.expected, 0, 0, 0]
            return
        if read.kind == "keys":
            self.guards += [GUARDS["keys"], SOURCES["itself"], id(read.base), 0, *self.in_order(read.expected), 0, 0]
            return
        if read.kind == "bytes":
            expected = id(read.expected) + abi.BYTES_DATA
            self.guards += [GUARDS["bytes"], SOURCES["itself"], id(read.base), 0, expected, len(read.expected), 0, 0]
            return
        if read.kind == "items":
            question = Question(read)
            self.questions.append(question)
            self.guards += [GUARDS["holds"], SOURCES["itself"], id(question), 0, 0, 0, 0, 0]
            return
        if read.expected is NOTHING:
            self.guards += [GUARDS["absent"], SOURCES["itself"], id(read.base), 0, self.key(read.key), 0, 0, 0]
            return
        slot = abi.function_slots().get(read.key) if read.is_of_function else None
        kind = "slot" if slot is not None else {"item": "list_item", "entry": "global"}.get(read.kind, read.kind)
        key = 0 if kind == "cell" else slot or (read.key if kind == "list_item" else self.key(read.key))
        source = (SOURCES[kind], id(read.base), key)
        if read.tree is None:
            self.expect(read.expected, source)
        else:                                      # numbers are copied; other objects are held, as the name may be rebound during the call
            is_number = isinstance(read.tree, Leaf) and self.signature.argument_kinds[read.tree.index] in NUMBER_KINDS
            self.walk(read.tree, source, mutable=not is_number)

    def leaf(self, index: int, source: tuple[int, int, int], mutable: bool) -> None:
        kind, type_ = self.signature.argument_kinds[index], self.signature.argument_types[index]
        self.held += int(mutable)
        name = kind if kind in GUARDS else "number"
        if kind == "array":
            first, second = self.array(index)
        elif kind == "scalar":
            first, second = id(type_.dtype.numpy.type), 0
        else:
            if type_.dtype.name not in NUMBER_DTYPES[kind]:
                raise ValueError(f"a Python {kind} cannot be passed as {type_}")
            first, second = NUMBER_KINDS.index(kind), DTYPE_NUMBERS[type_.dtype.name]
            self.numbers += 1
        self.guards += [GUARDS[name], *source, first, second, int(mutable), index]

    def array(self, index: int) -> tuple[int, int]:
        """The specification of an array argument and its flags."""
        signature = self.signature
        type_, layout = signature.argument_types[index], signature.layouts[index]
        if index in signature.result_into:
            return self.spec(type_), abi.C_CONTIGUOUS | abi.ALIGNED | abi.WRITEABLE
        if layout is None:
            return self.spec(type_), COPY
        if layout == "C":
            return self.spec(type_), abi.C_CONTIGUOUS | abi.ALIGNED
        return self.spec(type_, layout), STRIDES | COPY

    def copied(self) -> list[int]:
        """The leaves, followed by captured arrays, that are copied if they are not C-contiguous and aligned."""
        signature = self.signature
        leaves = [index for index, (kind, layout) in enumerate(zip(signature.argument_kinds, signature.layouts, strict=True))
                  if kind == "array" and layout != "C" and index not in signature.result_into]
        return leaves + [len(signature.argument_types) + number for number in self.strided]

    def captured(self, number: int) -> tuple[int, int]:
        """The specification of a captured array and its flags."""
        return self.spec(self.signature.captured_types[number]), COPY if number in self.strided else abi.C_CONTIGUOUS | abi.ALIGNED

    # --- results ------------------------------------------------------------------------------------------------------

    def result(self, number: int) -> list[int]:
        signature = self.signature
        leaf = signature.result_into[number]
        if leaf is not None:
            return [RESULTS["argument"], leaf, 0, 0]
        type_ = signature.result_types[number]
        if signature.result_kinds[number] == "array":
            return [RESULTS["array" if type_.nbytes < LARGE_BYTES else "large_array"], self.spec(type_), 0, 0]
        dtype = type_.dtype.numpy
        if dtype.kind == "b":  # there are only two np.bool objects
            return [RESULTS["numpy_scalar"], id(dtype), 0, 0]
        return [RESULTS["scalar"], id(dtype.type), dtype.itemsize, 0]

    def pack(self, tree: Tree, depth: int) -> None:
        """Stack-machine operations that push the object of `tree` on top of `depth` others."""
        self.depth = max(self.depth, depth + 1)
        if isinstance(tree, Static):
            raise ValueError("a result has no static values")
        if isinstance(tree, Leaf):
            self.packing += [PACKING["result"], tree.index, 0, 0]
            return
        if isinstance(tree, Fixed):
            self.fixed.append(tree.value)
            self.packing += [PACKING["constant"], 0, id(tree.value), 0]
            return
        for number, child in enumerate(tree.children):
            self.pack(child, depth + number)
        if tree.cls is not None:
            cls = id(self.class_of(tree))
            detail = self.place([cls, *map(self.key, tree.keys)]) if tree.kind == "instance" else cls
            self.packing += [PACKING["instance" if tree.kind == "instance" else "named"], len(tree.children), detail, 0]
            return
        keys = self.in_order(tree.keys)[1] if tree.keys else 0
        self.packing += [PACKING[tree.kind], len(tree.children), keys, 0]
