"""Products of matrices and vectors with axes that masks select: np.matmul, dot, inner, vdot, outer, einsum."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.lines import made, matched, parts_of
from bwcompiler.frontend.numpy.selected.lines import zeroed as zeroed_parts
from bwcompiler.frontend.numpy.selected.packing import aligned, merged, selected, with_all, zeroed
from bwcompiler.frontend.tracing.indexing.grids import Grid, Line
from bwcompiler.frontend.tracing.indexing.masked_selection import GRIDDED, Selection, SizedByData, refuse


@selected(np.matmul, np.dot)
def matmul(x: Any, y: Any, out: Any = None) -> Any:
    if out is not None or not 1 <= np.ndim(x) <= 2 or not 1 <= np.ndim(y) <= 2:
        refuse("a product of stacks of matrices, or with out=,")
    first, second = "ij"[2 - np.ndim(x):], "jk"[:np.ndim(y)]
    return einsum(f"{first},{second}->{''.join(sorted(set(first + second) - {'j'}))}", x, y)


@selected(np.inner, np.vdot)
def inner(x: Any, y: Any, /) -> Any:
    if np.ndim(x) != 1 or np.ndim(y) != 1 or (isinstance(x, SizedByData) and x.dtype.kind == "c"):
        refuse("np.inner or np.vdot of rows or complex numbers")
    return einsum("j,j->", x, y)


@selected(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None or np.ndim(a) != 1 or np.ndim(b) != 1:
        refuse("np.outer of rows, or with out=,")
    return einsum("i,j->ij", a, b)


@selected(np.einsum)
def einsum(subscripts: Any, *operands: Any, **options: Any) -> Any:
    if not isinstance(subscripts, str) or "." in subscripts or set(options) - {"optimize"}:
        refuse("np.einsum with such options")
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:
        output = "".join(sorted(letter for letter in set(inputs) - {","} if inputs.count(letter) == 1))
    if any(isinstance(x, Grid) for x in operands) or len({
            term[x.lead] for x, term in zip(operands, terms, strict=True) if isinstance(x, Selection)}) > 1:
        return _with_several_lines(inputs, output, operands)
    found = iter([merged(x) for x in aligned([x for x in operands if isinstance(x, Selection)])])
    operands = tuple([next(found) if isinstance(x, Selection) else x for x in operands])
    selections = [(x, term[x.lead]) for x, term in zip(operands, terms, strict=True) if isinstance(x, Selection)]
    letter = selections[0][1]
    for x, term in zip(operands, terms, strict=True):
        if letter in term and not (isinstance(x, Selection) and term.count(letter) == 1):
            refuse("a product with an array that has not been selected by the mask")
    first, _ = selections[0]
    if letter in output:                                       # what is nan in other rows, cotangents are guarded against (`autodiff`)
        result = np.einsum(f"{inputs}->{output}", *[x.array if isinstance(x, Selection) else x for x in operands])
        return with_all(first, result, output.index(letter))
    if terms == [letter] * len(operands):                      # numbers beside each other: one sum, in which `narrow_sums` sees the mask
        return np.sum(zeroed(with_all(first, functools.reduce(np.multiply, [x.array for x, _ in selections]))))
    return np.einsum(f"{inputs}->{output}", *[zeroed(x) if isinstance(x, Selection) else x for x in operands])


def _with_several_lines(inputs: str, output: str, operands: tuple[Any, ...]) -> Any:
    """np.einsum(f"{inputs}->{output}", *operands) with several letters of which data say how many numbers they are for."""
    terms, given = inputs.split(","), [parts_of(x) for x in operands]
    lines: dict[int, Line] = {}
    for letter in dict.fromkeys(inputs.replace(",", "")):
        holders = [place for place, (term, one) in enumerate(zip(terms, given, strict=True)) if letter in term and one.lines.keys() & {
            axis for axis, name in enumerate(term) if name == letter}]
        if not holders:
            continue
        if any(term.count(letter) > 1 for term in terms):
            refuse("a product along a diagonal of it")
        given, line = matched(given, [term.index(letter) if letter in term else None for term in terms])
        if line is not None and letter in output:
            lines[output.index(letter)] = line
    return made(np.einsum(f"{inputs}->{output}", *map(zeroed_parts, given)), lines)


GRIDDED.update({np.matmul: matmul, np.dot: matmul, np.inner: inner, np.vdot: inner, np.outer: outer, np.einsum: einsum})
