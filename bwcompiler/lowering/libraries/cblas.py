"""The enumerations of cblas as arguments of calls."""

from __future__ import annotations

ROW_MAJOR, PLAIN, TRANSPOSED, UPPER, LOWER, NON_UNIT, UNIT, LEFT_OPERAND, RIGHT_OPERAND = [
    f"i32 {number}" for number in (101, 111, 112, 121, 122, 131, 132, 141, 142)]
