"""`ShapeDtypeStruct` and `eval_shape`."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import ShapeError


def test_struct_holds_a_tuple_and_a_dtype() -> None:
    struct = bw.ShapeDtypeStruct([2, np.int64(3)], "f4")  # type: ignore[arg-type]
    assert struct.shape == (2, 3) and struct.dtype == np.float32 and (struct.ndim, struct.size) == (2, 6)
    assert struct == bw.ShapeDtypeStruct((2, 3), np.float32) and len({struct, struct}) == 1


def test_shapes_of_results() -> None:
    found = bw.eval_shape(lambda x, n: {"a": x[:, None] * n, "b": [np.argmax(x), x > 0]}, bw.ShapeDtypeStruct((4,), np.float32), 2)
    assert found == {"a": bw.ShapeDtypeStruct((4, 1), np.float32),
                     "b": [bw.ShapeDtypeStruct((), np.int64), bw.ShapeDtypeStruct((4,), bool)]}


def test_errors_are_those_of_tracing() -> None:
    with pytest.raises(ShapeError, match=r"\(2,\)"):
        bw.eval_shape(lambda x: x + np.ones(3), bw.ShapeDtypeStruct((2,), float))


def test_program_compiled_without_data() -> None:
    program = bw.compile(lambda p: np.sum(p["w"] * p["x"]), {"w": bw.ShapeDtypeStruct((3,), float), "x": np.ones(3)})
    assert program.backward({"w": np.full(3, 2.0), "x": np.ones(3)})[0]["x"].tolist() == [2.0, 2.0, 2.0]
