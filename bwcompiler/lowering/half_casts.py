"""Conversions between half precision (its bits as i16) and single or double precision, by CPU instructions or integer arithmetic.

Both give the same bits (except payloads of nan), rounded to nearest, ties to even, like NumPy's conversions.
"""

from __future__ import annotations

from typing import Protocol

from bwcompiler.ir.types import F32, F64, I16, I32, I64, DType
from bwcompiler.target import Target

_LOST = (1 << 29) - 1                # the bits of a double's fraction that single precision does not have
_HIDDEN = "0x3FE0000000000000"       # 0.5, whose last bit in single precision is the smallest half


class Instructions(Protocol):
    """The interface of `ScalarEmitter` that is used here."""

    target: Target

    @property
    def flags(self) -> str: ...
    def type_of(self, dtype: DType) -> str: ...
    def same(self, text: str, dtype: DType) -> str: ...
    def put(self, text: str) -> str: ...
    def select(self, dtype: DType, condition: str, x: str, y: str) -> str: ...


def to_single(emit: Instructions, bits: str) -> str:
    """The float that has the value of a half."""
    integers, floats, halves = emit.type_of(I32), emit.type_of(F32), emit.type_of(I16)
    if emit.target.has_half_casts:
        half = emit.put(f"bitcast {halves} {bits} to {halves.replace('i16', 'half')}")
        return emit.put(f"fpext {halves.replace('i16', 'half')} {half} to {floats}")

    def put(operation: str, x: str, number: int) -> str:
        return emit.put(f"{operation} {integers} {x}, {emit.same(str(number), I32)}")

    wide = emit.put(f"zext {halves} {bits} to {integers}")
    magnitude = put("shl", put("and", wide, 0x7FFF), 13)                                   # its exponent is 112 too small
    scaled = emit.put(f"fmul {floats} {emit.put(f'bitcast {integers} {magnitude} to {floats}')}, {emit.same('0x46F0000000000000', F32)}")
    finite = emit.put(f"bitcast {floats} {scaled} to {integers}")
    special = emit.put(f"icmp uge {integers} {magnitude}, {emit.same(str(0x1F << 23), I32)}")
    chosen = emit.select(I32, special, put("or", magnitude, 0xFF << 23), finite)
    sign = put("shl", put("and", wide, 0x8000), 16)
    return emit.put(f"bitcast {integers} {emit.put(f'or {integers} {chosen}, {sign}')} to {floats}")


def from_float(emit: Instructions, value: str, source: DType) -> str:
    """The bits of the half nearest to a float or a double, which is rounded once."""
    return _from_single(emit, _rounded_to_odd(emit, value) if source is F64 else value)


def _rounded_to_odd(emit: Instructions, value: str) -> str:
    """A double rounded to odd as a float (the last bit records inexactness), so that a second rounding gives the correctly rounded half
    (Boldo and Melquiond, "When double rounding is odd", 2005).  Doubles too small for this are zero in half precision anyway.
    """
    integers, doubles = emit.type_of(I64), emit.type_of(F64)
    nothing, shift = emit.same("0", I64), emit.same("29", I64)
    bits = emit.put(f"bitcast {doubles} {value} to {integers}")
    lost = emit.put(f"and {integers} {bits}, {emit.same(str(_LOST), I64)}")
    inexact = emit.put(f"zext {emit.flags} {emit.put(f'icmp ne {integers} {lost}, {nothing}')} to {integers}")
    kept = emit.put(f"and {integers} {bits}, {emit.same(str(~_LOST), I64)}")
    odd = emit.put(f"or {integers} {kept}, {emit.put(f'shl {integers} {inexact}, {shift}')}")
    return emit.put(f"fptrunc {doubles} {emit.put(f'bitcast {integers} {odd} to {doubles}')} to {emit.type_of(F32)}")


def _from_single(emit: Instructions, value: str) -> str:
    integers, floats, halves = emit.type_of(I32), emit.type_of(F32), emit.type_of(I16)
    if emit.target.has_half_casts:
        half = halves.replace("i16", "half")
        return emit.put(f"bitcast {half} {emit.put(f'fptrunc {floats} {value} to {half}')} to {halves}")

    def put(operation: str, x: str, number: int) -> str:
        return emit.put(f"{operation} {integers} {x}, {emit.same(str(number), I32)}")

    def below(x: str, number: int) -> str:
        return emit.put(f"icmp ult {integers} {x}, {emit.same(str(number), I32)}")

    bits = emit.put(f"bitcast {floats} {value} to {integers}")
    size = put("and", bits, 0x7FFFFFFF)
    odd = put("and", put("lshr", size, 13), 1)
    normal = put("lshr", emit.put(f"add {integers} {put('add', size, 0xFFF - (112 << 23))}, {odd}"), 13)
    shifted = emit.put(f"fadd {floats} {emit.put(f'bitcast {integers} {size} to {floats}')}, {emit.same(_HIDDEN, F32)}")
    small = put("sub", emit.put(f"bitcast {floats} {shifted} to {integers}"), 126 << 23)
    number = emit.select(I32, below(size, 113 << 23), small, normal)
    beyond = emit.select(I32, below(size, (0xFF << 23) + 1), emit.same(str(0x7C00), I32), emit.same(str(0x7E00), I32))
    found = emit.select(I32, below(size, 143 << 23), number, beyond)                       # from 65536 on: infinity or nan
    sign = put("and", put("lshr", bits, 16), 0x8000)
    return emit.put(f"trunc {integers} {emit.put(f'or {integers} {found}, {sign}')} to {halves}")
