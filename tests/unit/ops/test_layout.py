"""Layout ops and windows."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.op import REGISTRY, Record
from bwcompiler.ir.types import F32, F64, tensor
from bwcompiler.ops import layout
from tests.support.gradcheck import apply
from tests.support.opcases import case, op_tests

A = np.arange(24.0).reshape(2, 3, 4) / 7 - 1
X = np.array([[1.5, -2.0, np.nan], [np.inf, 0.25, -0.0]])
V = np.linspace(-1, 1, 12)
ROW = V[:5]
EMPTY = np.zeros((0, 3))
SCALAR = np.array(2.5)
BITS = np.array([[True, False, True], [False, False, True]])


def _slice(x, *slices):
    """A case of slice that selects what Python slices do."""
    ranges = [range(extent)[s] for extent, s in zip(x.shape, slices, strict=True)]
    return case("slice", x, starts=tuple(r.start for r in ranges), sizes=tuple(len(r) for r in ranges),
                steps=tuple(r.step for r in ranges)).gives(x[slices])


def _update(name, x, *slices):
    ranges = [range(extent)[s] for extent, s in zip(x.shape, slices, strict=True)]
    expected = x.copy()
    v = (np.arange(x[slices].size).reshape(x[slices].shape) * 0.5).astype(x.dtype)
    expected[slices] = v if name == "slice_update" else expected[slices] + v
    return case(name, x, v, starts=tuple(r.start for r in ranges), steps=tuple(r.step for r in ranges)).gives(expected)


def _windows(x, sizes, strides, low, high, dilations):
    return case("windows", x, sizes=sizes, strides=strides, low=low, high=high, dilations=dilations)


def _windows_add(ct, shape, sizes, strides, low, high, dilations):
    return case("windows_add", ct, shape=shape, sizes=sizes, strides=strides, low=low, high=high, dilations=dilations)


S = np.s_
CASES = [
    case("broadcast", ROW, shape=(2, 5, 3), axes=(1,)).gives(np.broadcast_to(ROW[None, :, None], (2, 5, 3))),
    case("broadcast", SCALAR, shape=(2, 2), axes=()),
    case("broadcast", A, shape=(2, 3, 4), axes=(0, 1, 2)),
    case("broadcast", EMPTY, shape=(2, 0, 3), axes=(1, 2)),
    case("broadcast", X, shape=(0, 2, 3), axes=(1, 2)).but(smooth=False),
    case("broadcast", BITS, shape=(2, 3, 2), axes=(0, 1)),
    case("broadcast", X[:1], shape=(1, 2, 3), axes=(0, 2)).but(smooth=False),
    case("transpose", A, axes=(2, 0, 1)).gives(A.transpose(2, 0, 1)),
    case("transpose", X, axes=(1, 0)).but(smooth=False),
    case("transpose", SCALAR, axes=()),
    case("transpose", EMPTY, axes=(1, 0)),
    case("reshape", A, shape=(2, 12)),
    case("reshape", A, shape=(2, 3, 2, 2)),
    case("reshape", A, shape=(1, 2, 3, 1, 4)),
    case("reshape", V, shape=(3, 1, 4)),
    case("reshape", SCALAR, shape=(1, 1)),
    case("reshape", V[:1], shape=()),
    case("reshape", EMPTY, shape=(3, 0, 2)),
    case("reshape", V[:4] + 1j, shape=(2, 2)),
    case("flip", A, axes=(0, 2)).gives(A[::-1, :, ::-1]),
    case("flip", SCALAR, axes=()),
    case("flip", EMPTY, axes=(0, 1)),
    case("flip", X, axes=(1,)).but(smooth=False),
    _slice(A, S[:], S[1:3], S[::2]),
    _slice(A, S[::-1], S[2:0:-1], S[3::-2]),
    _slice(V, S[11:0:-3]),
    _slice(V, S[4:4]),
    _slice(V, S[5:6]),
    _slice(X, S[1:], S[:2]).but(smooth=False),
    case("slice", SCALAR, starts=(), sizes=(), steps=()),
    *[_update(name, x, *slices) for name in ("slice_update", "slice_add") for x, *slices in (
        (A, S[:], S[1:3], S[1:2]), (A, S[::-1], S[2:0:-1], S[3::-2]), (V, S[1::3]), (V, S[10:1:-4]), (V, S[3:3]),
        (V, S[:]),
        (V[:1], S[::5]), (EMPTY, S[:], S[1:]), (np.arange(8), S[6::-2]))],
    case("slice_update", SCALAR, SCALAR + 1, starts=(), steps=()).gives(SCALAR + 1),
    _update("slice_update", X, S[:1], S[1:]).but(smooth=False),
    case("concatenate", A, A[:, :1], A[:, :2] * 2, axis=1).gives(np.concatenate([A, A[:, :1], A[:, :2] * 2], 1)),
    case("concatenate", EMPTY, A[0, :2, :3], EMPTY, axis=0),
    case("concatenate", EMPTY, EMPTY, axis=0),
    case("concatenate", V, axis=0).gives(V),
    case("concatenate", BITS, ~BITS, axis=0),
    case("barrier", A).gives(A),
    case("barrier", ROW, A, SCALAR).gives(ROW),
    case("barrier", EMPTY),
    case("pad", A, low=(0, 1, 2), high=(0, 0, 1), value=3.0).gives(
        np.pad(A, ((0, 0), (1, 0), (2, 1)), constant_values=3)),
    case("pad", SCALAR, low=(), high=(), value=0.0),
    case("pad", EMPTY, low=(2, 0), high=(0, 1), value=-1.0).gives(np.full((2, 4), -1.0)),
    case("pad", X, low=(1, 0), high=(1, 0), value=np.inf).but(smooth=False),
    case("pad", np.arange(3), low=(0,), high=(2,), value=7).gives([0, 1, 2, 7, 7]),
    case("pad", BITS, low=(0, 1), high=(0, 0), value=True),
    _windows(V, (3,), (1,), (0,), (0,), (1,)).gives(np.lib.stride_tricks.sliding_window_view(V, 3)),
    _windows(V, (3,), (2,), (1,), (2,), (2,)).gives(
        np.lib.stride_tricks.sliding_window_view(np.pad(V, (1, 2)), 5)[::2, ::2]),
    _windows(A, (2, 3), (1, 2), (1, 0), (0, 2), (1, 1)),
    _windows(A[0], (), (), (), (), ()).gives(A[0]),
    _windows(V[:2], (3,), (1,), (0,), (0,), (1,)).gives(np.zeros((0, 3))),
    _windows(V[:1], (1,), (3,), (0,), (0,), (1,)),
    _windows(X, (2,), (1,), (1,), (1,), (1,)).but(smooth=False),
    _windows_add(V.reshape(4, 3), (6,), (3,), (1,), (0,), (0,), (1,)),
    _windows_add(A[0, :2, :3], (5,), (3,), (2,), (0,), (0,), (1,)).gives(
        [A[0, 0, 0], A[0, 0, 1], A[0, 0, 2] + A[0, 1, 0], A[0, 1, 1], A[0, 1, 2]]),
    _windows_add(np.cos(np.arange(48.0)).reshape(2, 2, 2, 3, 2), (2, 3, 4), (3, 2), (2, 3), (1, 0), (1, 1), (1, 1)),
    _windows_add(np.zeros((0, 3)), (2,), (3,), (1,), (0,), (0,), (1,)),
]
test_op = op_tests(CASES)

F = tensor(F64, (2, 3))
BAD = [
    ("broadcast", (F,), {"shape": (2, 4), "axes": (0, 1)}),
    ("broadcast", (F,), {"shape": (3, 2), "axes": (1, 0)}),
    ("broadcast", (F,), {"shape": (2, 3), "axes": (1,)}),
    ("transpose", (F,), {"axes": (0, 0)}),
    ("reshape", (F,), {"shape": (4,)}),
    ("flip", (F,), {"axes": (2,)}),
    ("slice", (F,), {"starts": (0, 0), "sizes": (2, 4), "steps": (1, 1)}),
    ("slice", (F,), {"starts": (0, 1), "sizes": (2, 3), "steps": (1, -1)}),
    ("slice", (F,), {"starts": (0, 0), "sizes": (2, 1), "steps": (1, 0)}),
    ("slice", (F,), {"starts": (0, 0), "sizes": (2, -1), "steps": (1, 1)}),
    ("slice", (F,), {"starts": (0,), "sizes": (2,), "steps": (1,)}),
    ("slice_update", (F, F), {"starts": (1, 0), "steps": (1, 1)}),
    ("concatenate", (F, tensor(F64, (2, 4))), {"axis": 0}),
    ("concatenate", (F,), {"axis": 2}),
    ("concatenate", (), {"axis": 0}),
    ("pad", (F,), {"low": (0, -1), "high": (0, 0), "value": 0.0}),
    ("windows", (F,), {"sizes": (5,), "strides": (1,), "low": (0,), "high": (0,), "dilations": (1,)}),
    ("windows", (F,), {"sizes": (1,), "strides": (0,), "low": (0,), "high": (0,), "dilations": (1,)}),
    ("windows_add", (F,),
     {"shape": (3,), "sizes": (3,), "strides": (1,), "low": (0,), "high": (0,), "dilations": (1,)}),
]


@pytest.mark.parametrize(("name", "types", "attrs"), BAD)
def test_shape_error(name, types, attrs):
    with pytest.raises(ShapeError):
        REGISTRY[name].shape(*types, **attrs)


@pytest.mark.parametrize(("name", "attrs"), [
    ("concatenate", {"axis": 0}), ("slice_add", {"starts": (0,), "steps": (1,)}),
])
def test_dtypes_are_not_promoted(name, attrs):
    with pytest.raises(DTypeError):
        REGISTRY[name].shape(tensor(F64, (2,)), tensor(F32, (2,)), **attrs)


def test_slice_with_symbolic_extents():
    i = Index(0, 4).extent()
    type_ = tensor(F64, (6, 6))
    assert layout.slice_.shape(type_, starts=(i, 0), sizes=(1, i), steps=(1, 1)).shape == (1, i)
    assert layout.slice_.shape(type_, starts=(5 - i, i), sizes=(2, 6 - i), steps=(-1, 1)).shape == (2, 6 - i)
    with pytest.raises(ShapeError):
        layout.slice_.shape(type_, starts=(i + 6, 0), sizes=(1, 6), steps=(1, 1))
    row = tensor(F64, (1, i))
    assert layout.slice_add.shape(type_, row, starts=(i, 0), steps=(1, 1)) is type_
    assert layout.reshape.shape(row, shape=(i,)).shape == (i,)
    joined = layout.concatenate.shape(row, tensor(F64, (1, 6 - i)), axis=1)
    assert joined.shape == (1, 6)


def test_slice_accumulates_into_one_cotangent():
    program = apply(lambda x: x, [V])
    x = program.inputs[0]
    with Record() as record:
        part = layout.slice_(x, starts=(2,), sizes=(3,), steps=(1,))
        acc = layout.slice_.vjp[0].rule(x, part, part, x, **part.attrs)
    assert [value.op.name for value in record.values] == ["slice", "slice_add"]
    assert acc.operands == (x, part)
