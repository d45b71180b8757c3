"""LLVM text of `@bw.number`: Python numbers as 0-d values of a dtype, in place or in a stack slot."""

from __future__ import annotations

from bwcompiler.runtime import python_abi as abi
from bwcompiler.runtime.entry.table import DTYPE_NUMBERS, NUMBER_DTYPES, NUMBER_KINDS
from bwcompiler.runtime.entry.words import switch

_PYTHON_TYPES = {"float": "PyFloat_Type", "int": "PyLong_Type", "complex": "PyComplex_Type"}
_INTEGERS = {"8": "i8", "16": "i16", "32": "i32", "64": "i64"}


def number_text() -> str:
    """@bw.number: the data of a Python number as the dtype; null if it is of another type or does not fit."""
    lines = ["define internal ptr @bw.number(ptr %object, i64 %kind, i64 %dtype, ptr %slot) nounwind {", "start:"]
    lines += [
        "  %overflow = alloca i32",
        f"  %type.at = getelementptr i8, ptr %object, i64 {abi.TYPE}",
        "  %type = load ptr, ptr %type.at",
        f"  %value.at = getelementptr i8, ptr %object, i64 {abi.NUMBER_VALUE}",
        "  %second.at = getelementptr i8, ptr %value.at, i64 8",
        switch("%kind", {kind: number for number, kind in enumerate(NUMBER_KINDS)}, "bad"),
    ]
    for kind in NUMBER_KINDS:
        lines += [f"{kind}:", *_number_value(kind)]
        lines.append(switch("%dtype", {f"{kind}.{name}": DTYPE_NUMBERS[name] for name in NUMBER_DTYPES[kind]}, "bad"))
        for name in NUMBER_DTYPES[kind]:
            lines += [f"{kind}.{name}:", *_number_store(kind, name)]
    return "\n".join([*lines, "bad:", "  ret ptr null", "}", ""])


def _number_value(kind: str) -> list[str]:
    """Check the type and read the value into %<kind>.value, a double or an i64."""
    if kind == "bool":
        return [
            "  %is.true = icmp eq ptr %object, @py._Py_TrueStruct",
            "  %is.false = icmp eq ptr %object, @py._Py_FalseStruct",
            "  %is.bool = or i1 %is.true, %is.false",
            "  %bool.value = zext i1 %is.true to i64",
            "  br i1 %is.bool, label %bool.read, label %bad",
            "bool.read:",
        ]
    check = [
        f"  %{kind}.exact = icmp eq ptr %type, @py.{_PYTHON_TYPES[kind]}",
        f"  br i1 %{kind}.exact, label %{kind}.read, label %bad",
        f"{kind}.read:",
    ]
    if kind != "int":
        return [*check, f"  %{kind}.value = load double, ptr %value.at"]
    return [
        *check,
        "  %int.value = call i64 @py.PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)",
        "  %overflowed = load i32, ptr %overflow",
        "  %in.range = icmp eq i32 %overflowed, 0",
        "  br i1 %in.range, label %int.in.range, label %bad",
        "int.in.range:",
    ]


def _number_store(kind: str, dtype: str) -> list[str]:
    """Store the value as `dtype`, with a check that an integer fits, and return its place."""
    place = f"{kind}.{dtype}"
    value = f"%{kind}.value"
    if (kind, dtype) in (("float", "f64"), ("complex", "c128")):
        return ["  ret ptr %value.at"]
    if dtype[0] not in "fc":
        integer = "i8" if dtype == "bool" else _INTEGERS[dtype[1:]]
        if integer == "i64":
            if dtype == "i64":
                return [f"  store i64 {value}, ptr %slot", "  ret ptr %slot"]
            narrow = [f"  %{place}.fits = icmp sge i64 {value}, 0", f"  %{place}.narrow = add i64 {value}, 0"]
        else:
            extend = "sext" if dtype[0] == "i" else "zext"
            narrow = [
                f"  %{place}.narrow = trunc i64 {value} to {integer}",
                f"  %{place}.again = {extend} {integer} %{place}.narrow to i64",
                f"  %{place}.fits = icmp eq i64 %{place}.again, {value}",
            ]
        branch = [f"  br i1 %{place}.fits, label %{place}.store, label %bad", f"{place}.store:"]
        return [*narrow, *branch, f"  store {integer} %{place}.narrow, ptr %slot", "  ret ptr %slot"]
    part = "float" if dtype in ("f32", "c64") else "double"
    size = 4 if part == "float" else 8
    lines = [_as_float(value, f"%{place}.value", kind, part), f"  store {part} %{place}.value, ptr %slot"]
    if dtype[0] == "c":
        lines.append(f"  %{place}.imaginary.at = getelementptr i8, ptr %slot, i64 {size}")
        if kind == "complex":
            lines.append("  %imaginary = load double, ptr %second.at")
            lines.append("  %imaginary.32 = fptrunc double %imaginary to float")
        imaginary = "%imaginary.32" if kind == "complex" else "0.0"
        lines.append(f"  store {part} {imaginary}, ptr %{place}.imaginary.at")
    return [*lines, "  ret ptr %slot"]


def _as_float(value: str, name: str, kind: str, part: str) -> str:
    if kind in ("int", "bool"):
        return f"  {name} = sitofp i64 {value} to {part}"
    if part == "float":
        return f"  {name} = fptrunc double {value} to float"
    return f"  {name} = bitcast double {value} to double"
