"""The contract between a lowered program and the runtime: how a call's Python objects map to buffers.

A program is LLVM text with `define i32 @bw_program(ptr %buffers, ptr %arena)`.  `%buffers` points to an array of
pointers: one per argument leaf, then one per captured array, then one per result (`CallSignature.buffer_count`).
`%arena` is 64-byte aligned: a 64-byte error record {i64 node id, i64 index, i64 values[6]}, zeroed before the call,
followed by `arena_bytes` of scratch.  0 means success; a positive code is handed with the record to `raise_error`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bwcompiler.ir.types import TensorType

# How an argument leaf arrives.  "array": exact np.ndarray, C-contiguous.  "scalar": a NumPy scalar (np.float64).
# "float", "int", "bool", "complex": exact Python numbers, seen by the program as 0-d values of the leaf's dtype.
# "static": a compile-time constant that must compare equal; its buffer is null, its type ignored (None).
ArgumentKind = Literal["array", "scalar", "float", "int", "bool", "complex", "static"]
ResultKind = Literal["array", "scalar"]  # "scalar": a NumPy scalar is returned for a 0-d value
ContainerKind = Literal["tuple", "list", "dict", "none"]

ERROR_RECORD_BYTES = 64  # at the start of every arena; also the alignment of arenas


@dataclass(frozen=True, slots=True)
class Leaf:
    """Argument leaf or result number `index`."""

    index: int

    def __str__(self) -> str:
        return f"%{self.index}"


@dataclass(frozen=True, slots=True)
class Container:
    """An exact tuple, list, dict (with string `keys`) or None."""

    kind: ContainerKind
    children: tuple[Tree, ...] = ()
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.children))
        if self.kind == "tuple":
            return f"({inner}{',' if len(self.children) == 1 else ''})"
        if self.kind == "list":
            return f"[{inner}]"
        if self.kind == "dict":
            items = zip(self.keys, self.children, strict=True)
            return "{" + ", ".join(f"{key!r}: {child}" for key, child in items) + "}"
        return "None"


Tree = Leaf | Container


def leaf_indices(tree: Tree) -> tuple[int, ...]:
    """The leaves of `tree` from left to right."""
    if isinstance(tree, Leaf):
        return (tree.index,)
    return tuple(index for child in tree.children for index in leaf_indices(child))


@dataclass(frozen=True)
class CallSignature:
    """What a call takes and gives back.  `str()` of it is a readable description."""

    arguments: tuple[Tree, ...]  # one tree per positional argument
    argument_types: tuple[TensorType | None, ...]  # per leaf; None if static
    argument_kinds: tuple[ArgumentKind, ...]
    captured_types: tuple[TensorType, ...] = ()
    result: Tree = field(default_factory=lambda: Container("none"))
    result_types: tuple[TensorType, ...] = ()
    result_kinds: tuple[ResultKind, ...] = ()
    arena_bytes: int = 0  # scratch after the error record
    release_gil: bool = False
    # Result k is argument leaf j itself, the same object is returned; empty means none are.
    result_aliases_argument: tuple[int | None, ...] = ()
    # Result k is written into the array that is argument leaf j (`out=`), which is returned; empty means none are.
    result_into: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        for name in ("result_aliases_argument", "result_into"):
            if all(leaf is None for leaf in getattr(self, name)):
                object.__setattr__(self, name, (None,) * len(self.result_types))
        self._check()

    def _check(self) -> None:
        argument_leaves = [index for tree in self.arguments for index in leaf_indices(tree)]
        _require(argument_leaves == list(range(len(self.argument_types))), "argument leaves must be numbered in order")
        _require(len(self.argument_kinds) == len(self.argument_types), "one kind per argument leaf")
        results = len(self.result_types)
        _require(sorted(leaf_indices(self.result)) == list(range(results)), "every result must appear once in the tree")
        for per_result in (self.result_kinds, self.result_aliases_argument, self.result_into):
            _require(len(per_result) == results, "one entry per result")
        for kind, type_ in zip(self.argument_kinds, self.argument_types, strict=True):
            _require(kind == "static" or type_ is not None, "only static leaves have no type")
            _require(kind in ("array", "static") or (type_ is not None and type_.shape == ()), "scalars are 0-d")
        targets = [index for index in self.result_into if index is not None]
        _require(len(set(targets)) == len(targets), "two results written into one argument")
        for result, leaf in enumerate(self.result_into):
            if leaf is not None:
                _require(self.argument_kinds[leaf] == "array", "a result can only be written into an array")
                _require(self.argument_types[leaf] == self.result_types[result], "`out` is not of the result's type")
                _require(self.result_aliases_argument[result] is None, "a result is either written or an argument")

    @property
    def buffer_count(self) -> int:
        return len(self.argument_types) + len(self.captured_types) + len(self.result_types)

    def __str__(self) -> str:
        leaves = (f"{kind} {type_}" for kind, type_ in zip(self.argument_kinds, self.argument_types, strict=True))
        lines = [
            f"call ({', '.join(map(str, self.arguments))}) -> {self.result}",
            *(f"  argument %{index}: {leaf}" for index, leaf in enumerate(leaves)),
            *(f"  captured {index}: {type_}" for index, type_ in enumerate(self.captured_types)),
        ]
        for index, (kind, type_) in enumerate(zip(self.result_kinds, self.result_types, strict=True)):
            alias, into = self.result_aliases_argument[index], self.result_into[index]
            note = f" is argument %{alias}" if alias is not None else ""
            note += f" into argument %{into}" if into is not None else ""
            lines.append(f"  result %{index}: {kind} {type_}{note}")
        lines.append(f"  arena {self.arena_bytes} B, GIL {'released' if self.release_gil else 'held'}")
        return "\n".join(lines)


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise ValueError(f"CallSignature: {rule}")
