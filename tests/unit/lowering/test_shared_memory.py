"""Kernels that may write where they read: each element is read before it is written, in whatever pieces the loops are."""

from __future__ import annotations

import pytest

from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.lowering.loops.shared_memory import may_share

HEAD = "kernel k0(%x: in f64[10], %y: out f64[10])\n"


def shares(body: str) -> bool:
    kernel = parse_kernel(HEAD + body)
    return may_share(kernel, *kernel.buffers)


@pytest.mark.parametrize(("body", "wanted"), [
    ("  for i in 0..10 vector\n    store %y[i], %x[i] * 2.0\n", True),
    ("  for i in 0..4 vector\n    store %y[i], %x[i] * 2.0\n  for i in 0..6 vector\n    store %y[i + 4], -%x[i + 4]\n", True),
    ("  for b in 0..2\n    for i in 0..5 vector\n      store %y[5*b + i], %x[5*b + i] * 2.0\n", True),
    ("  for i in 0..4 vector\n    store %y[i], %x[i] * 2.0\n  for i in 0..6 vector\n    store %y[i + 4], %x[i]\n", False),
    ("  for i in 0..10 vector\n    store %y[i], %x[0] * 2.0\n", False),
    ("  for i in 0..9 vector\n    store %y[i], %x[i + 1]\n  store %y[9], 0.0\n", False),
    ("  for i in 0..10 vector\n    store %y[i], %x[i] * 2.0\n  for i in 0..10 vector\n    store %y[i], %x[i] * 3.0\n", False),
], ids=["loop", "two_loops", "blocks", "others_written_before", "one_element", "next_element", "twice"])
def test_which_may_share(body: str, wanted: bool) -> None:
    assert shares(body) is wanted
