"""LLVM text that reads words of a table (`table.py`) and fields of Python objects."""

from __future__ import annotations

from bwcompiler.runtime.entry.table import HEADER


def header(name: str, of: str = "%table", type_: str = "i64", name_as: str = "") -> str:
    """Two instructions that load a word of the header as %<name>, or as %<name_as>."""
    result = name_as or name
    at = f"  %{result}.at = getelementptr i8, ptr {of}, i64 {8 * HEADER.index(name)}\n"
    return f"{at}  %{result} = load {type_}, ptr %{result}.at"


def word(number: int, name: str, type_: str = "i64") -> str:
    """Two instructions that load word `number` of the operation %op as %<name>."""
    return f"  %{name}.at = getelementptr i8, ptr %op, i64 {8 * number}\n  %{name} = load {type_}, ptr %{name}.at"


def field(name: str, offset: int, of: str = "%object", type_: str = "ptr") -> str:
    """Two instructions that load the field of an object at `offset` (`python_abi`) as %<name>."""
    return f"  %{name}.at = getelementptr i8, ptr {of}, i64 {offset}\n  %{name} = load {type_}, ptr %{name}.at"


def switch(value: str, targets: dict[str, int], otherwise: str) -> str:
    cases = "\n".join(f"    i64 {number}, label %{name}" for name, number in targets.items())
    return f"  switch i64 {value}, label %{otherwise} [\n{cases}\n  ]"
