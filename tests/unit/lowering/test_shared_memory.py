"""Kernels that may write where they read: each element is read before it is written, in whatever pieces the loops are."""

from __future__ import annotations

import pytest

from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.lowering.loops.building.shared_memory import may_share, stores_behind_reads

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


TWICE = "  for i in 0..10 vector\n    let a = %x[i] * 2.0\n    store %y[i], a\n    let b = %x[i] + a\n    store %z[i], b\n"


@pytest.mark.parametrize(("body", "wanted"), [
    (TWICE, True),
    (TWICE.replace("store %y[i], a", "store %y[i], %x[i]"), False),
    (TWICE.replace("%x[i] + a", "%x[i] + %y[i]"), False),
    (TWICE.replace("let b = %x[i] + a", "let b = %x[0] + a"), False),
    ("  for i in 0..10\n    let a = %x[i] * 2.0\n    store %y[i], a\n    for j in 0..1 vector\n      store %z[i], %x[i]\n", False),
], ids=["element_read_again", "without_a_name", "target_read", "another_element", "loop_between"])
def test_stores_may_wait_for_reads(body: str, wanted: bool) -> None:
    """What is stored has been computed: it can be stored when its element has been read for the last time."""
    kernel = parse_kernel("kernel k0(%x: in f64[10], %y: out f64[10], %z: out f64[10])\n" + body)
    x, y, _ = kernel.buffers
    later = stores_behind_reads(kernel, x, y)
    assert may_share(later, x, y) is wanted
    if wanted:
        a, b, y_of_a, z_of_b = later.body[0].body
        assert (a.name, b.name, y_of_a.buffer, z_of_b.value.data) == ("a", "b", y, b) and not may_share(kernel, x, y)
