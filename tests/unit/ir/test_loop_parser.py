"""parse(print(k)) is k, and what is wrong in a text is said with its place."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from bwcompiler import ops  # noqa: F401  (registers the ops: special functions)
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.ir.texts.token_reader import ParseError
from tests.support.kernels import copies, difference, random_kernel
from tests.unit.ir.test_loop_verifier import BAD, GOOD

EVERYTHING = """\
kernel everything(%x: in f64[4,5], %v: in i64[3], %h: in f32[4], %s: scratch f64[2], %y: inout f64[4,5], %z: out i64[], %w: out bool[2])
  fill %s, -0.0
  fill %w, true
  reduce best: f64 = argmax
  for i in 0..4
    best argmax= %x[i, 0] at i
  store %z[], position(best)
  for i in 0..4
    let position = i
    reduce sum: f64 = add
    reduce any: bool = bitwise_or
    for j in 0..i + 1 vector
      let a = (%x[i, j] + 1.0) * -2.0
      sum add= exp(a) - (-%x[i, j] / 0.5 if in_range(j - 1, 0, 3) else nan)
      any bitwise_or= (%x[i, j] < 0.0) | (%x[i, j] > 1.0)
    let single = %h[i] * 0.5
    let wide = f64(single + 2.0) + f64(1.0:f32) + -(3.0)
    let ordinal = index(2*i + 1) * i - position
    store %y[i, 4], select(any, sum, wide)
    %y[3 - i, %v[2]] add= erf(sum)
    store %y[+ 3*%v[0] + (i) + 1], inf
    store %w[0], ~(ordinal == 3) ^ (1.0:f32 < 2.0:f32)
    store %s[(%v[0] + 1) - 1], %y[i, 2]
  for k in 0..0
    store %s[k], %s[1 - k]
"""


def test_every_form():
    kernel = parse_kernel(EVERYTHING)
    assert kernel_to_text(kernel) == EVERYTHING
    assert difference(parse_kernel(kernel_to_text(kernel)), kernel) is None


@pytest.mark.parametrize("name", GOOD)
def test_what_is_printed_is_read(name):
    kernel = parse_kernel(kernel_to_text(GOOD[name]))
    assert difference(kernel, GOOD[name]) is None
    verify_kernel(kernel)


@pytest.mark.parametrize("start", range(0, 120, 40))
def test_random_kernels(start):
    for seed in range(start, start + 40):
        kernel, arrays = random_kernel(seed)
        text = kernel_to_text(kernel)
        parsed = parse_kernel(text)
        assert difference(parsed, kernel) is None, text
        assert kernel_to_text(parsed) == text
        verify_kernel(parsed)
        if seed % 4 == 0:
            expected, found = copies(arrays), copies(arrays)
            run_kernel(kernel, expected)
            run_kernel(parsed, found)
            for x, y in zip(found, expected, strict=True):
                np.testing.assert_array_equal(x, y, text)


def test_the_kernel_of_the_documentation():
    page = (Path(__file__).resolve().parents[3] / "docs" / "ir.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```\n(kernel k0.*?)^```$", page, re.MULTILINE | re.DOTALL)
    kernel = parse_kernel(text)
    verify_kernel(kernel)
    assert kernel_to_text(kernel) == text
    x = np.random.default_rng(0).standard_normal((32, 8))
    found = np.zeros((32, 8))
    run_kernel(kernel, [x, np.zeros(8), found])
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    np.testing.assert_allclose(found, e / np.sum(e, axis=1, keepdims=True), rtol=1e-14)


def test_names_end_with_their_body():
    text = """\
kernel k0(%y: out f64[2])
  for i in 0..2
    let a = 1.0
    store %y[i], a
  for i in 0..2
    let a = 2.0
    store %y[i], a
"""
    first, second = parse_kernel(text).body
    assert first.index is not second.index
    assert first.body[1].value.data is first.body[0]
    assert second.body[1].value.data is second.body[0]


HEAD = "kernel k0(%x: in f64[4,5], %v: in i64[3], %y: out f64[4])\n  for i in 0..4\n    "


@pytest.mark.parametrize("statement, message, line", [
    ("store %y[j], 1.0", "'j' is not defined here", 3),
    ("store %y[i, i], 1.0", "y has 1 axes, the index has 2", 3),
    ("store %z[i], 1.0", "%z is not declared", 3),
    ("let i = 1.0", "'i' is defined already", 3),
    ("let for = 1.0", "'for' is a word of the grammar", 3),
    ("let a = gamma(%x[i, 0])", "unknown operation 'gamma'", 3),
    ("let a = matmul(%x[i, 0], %x[i, 0])", "unknown operation 'matmul'", 3),
    ("let a = exp(%x[i, 0], 1.0)", "exp takes 1 operands, not 2", 3),
    ("let a = erf(%x[i, 0], %x[i, 0])", "erf takes 1 operands, not 2", 3),
    ("let a = %x[i, 0] + %v[0]", "the operands of add have one dtype, found f64, i64", 3),
    ("let a = select(true, 1.0, 2)", "the operands of select have one dtype, found f64, i64", 3),
    ("let a = select(true, 1.0)", "select takes a condition and two values", 3),
    ("let a = %v[0] + 1.5", "1.5 is not of dtype i64", 3),
    ("let a = %x[i, 0] + true", "true is not of dtype f64", 3),
    ("let a = %x[i, 0] < 1.0 < 2.0", "a comparison of a comparison needs parentheses", 3),
    ("let a = f64(1.0, 2.0)", "a cast to f64 takes one operand, not 2", 3),
    ("let a = in_range(i, 0)", "in_range takes a position and two bounds", 3),
    ("let a = position(i)", "'i' is not an accumulator", 3),
    ("let a = (%x[i, 0]", "expected ')', found 'the end of the text'", 3),
    ("let a = 1.0 2.0", "expected the end of the line, found '2.0'", 3),
    ("let a = ?", "unexpected character '?'", 3),
    ("let a =", "expected an expression, found 'the end of the text'", 3),
    ("let a = %y", "expected '['", 3),
    ("let a = y", "'y' is not defined here", 3),
    ("fill %a, 1.0", "%a is not declared", 3),
    ("fill i, 1.0", "expected a buffer, found 'i'", 3),
    ("reduce a: f64 = subtract", "elements are not combined by 'subtract'; known: add, multiply", 3),
    ("reduce a: float = add", "unknown dtype 'float'; known: bool", 3),
    ("%y[i] = 1.0", "expected how elements are combined, found '='", 3),
    ("for j in 1..4", "loops start at 0", 3),
    ("for j in 0..k", "no loop index 'k' in scope here", 3),
    ("for j in 0..4 parallel", "expected 'vector', 'product' or the end of the line, found 'parallel'", 3),
    ("fill %y, 1.0\n     fill %y, 1.0", "the statements of a body are indented alike, by 4 here", 4),
    ("let a = 1.0\n  store %y[0], a", "'a' is not defined here", 4),
    ("fill %y, 1.0\nfill %y, 1.0", "expected a statement or the end of the text, found 'fill'", 4),
])
def test_errors(statement, message, line):
    with pytest.raises(ParseError) as error:
        parse_kernel(HEAD + statement)
    assert message in str(error.value)
    assert error.value.line == line


@pytest.mark.parametrize("head, message", [
    ("kernel (", "expected the name of the kernel"),
    ("graph k0()", "expected 'kernel', found 'graph'"),
    ("kernel k0(%x: out f64[2], %x: in f64[2])", "%x is declared already"),
    ("kernel k0(%x: local f64[2])", "unknown role 'local'; known: in, out, inout, scratch"),
    ("kernel k0(%x: in f64[n])", "expected an integer, found 'n'"),
    ("kernel k0(%x: in f64[1.5])", "expected an integer, found '1.5'"),
])
def test_errors_of_heads(head, message):
    with pytest.raises(ParseError, match=message.replace("(", r"\(")):
        parse_kernel(head)


def test_invalid_kernels_are_read_and_left_to_the_verifier():
    text = kernel_to_text(BAD["input x is written"])
    assert kernel_to_text(parse_kernel(text)) == text
