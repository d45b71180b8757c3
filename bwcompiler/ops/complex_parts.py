"""Parts of complex numbers: real, imag, conjugate, modulus, make_complex.

Cotangents are those of JAX: a rule is the transpose of the derivative as a real-linear map for the pairing Re(ct * t), and
has no further conjugates.  For a holomorphic function that is ct * f'(z), the formula of real numbers;
the ops of this module are not holomorphic, and each has its own JVP.  For a real function f of z = x + iy the gradient is
df/dx - i df/dy, the conjugate of the direction in which f grows (docs/complex.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.ir import scalar as s
from bwcompiler.ir.declaration import LINEAR
from bwcompiler.ir.op import Op, Value
from bwcompiler.ir.types import component_of
from bwcompiler.ops.elementwise import cast, elementwise, equal, full_like, select


def make_complex_reference(x: Any, y: Any) -> Any:
    """x + iy."""
    z = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), np.result_type(x, y, np.complex64))
    z.real, z.imag = x, y
    return z


make_complex: Op = elementwise(
    "make_complex", make_complex_reference, (lambda ct, out, x, y: real(ct), lambda ct, out, x, y: -imag(ct)), kinds="f", result="complex",
    jvp=LINEAR, doc="x + iy.", scalar=s.make_complex, keeps_zero=True)
real: Op = elementwise(
    "real", np.real, (lambda ct, out, z: make_complex(ct, full_like(ct, 0.0)),), kinds="c", result="part", jvp=LINEAR,
    doc="The real part.", scalar=s.real, keeps_zero=True)
imag: Op = elementwise(
    "imag", np.imag, (lambda ct, out, z: make_complex(full_like(ct, 0.0), -ct),), kinds="c", result="part", jvp=LINEAR,
    doc="The imaginary part.", scalar=s.imag, keeps_zero=True)
conjugate: Op = elementwise(
    "conjugate", np.conjugate, (lambda ct, out, z: conjugate(ct),), kinds="c", jvp=LINEAR, ufuncs=(),
    doc="x - iy of z = x + iy.", scalar=s.conjugate, keeps_zero=True)


reciprocal: Op = elementwise(
    "reciprocal", np.reciprocal, (lambda ct, out, z: -(ct * out * out),), kinds="c", ufuncs=(), doc="1 / z.",
    scalar=lambda z: s.Scalar("reciprocal", (z,), z.dtype))


def conj(x: Value) -> Value:
    """The conjugate; of a real value itself."""
    return conjugate(x) if x.dtype.is_complex else x


def real_part(x: Value) -> Value:
    """x without its imaginary part, of the same dtype."""
    return cast(cast(x, dtype=component_of(x.dtype)), dtype=x.dtype) if x.dtype.is_complex else x


def _per_modulus(out: Value, z: Value) -> Value:
    """conj(z) / |z|; 0 at 0, where the modulus has no derivative."""
    origin = equal(out, full_like(out, 0.0))
    length = select(origin, full_like(out, 1.0), out)
    return conjugate(z) / make_complex(length, full_like(length, 0.0))


def _modulus_vjp(ct: Value, out: Value, z: Value) -> Value:
    return make_complex(ct, full_like(ct, 0.0)) * _per_modulus(out, z)


def _modulus_jvp(tangents: Sequence[Value | None], out: Value, z: Value) -> Value | None:
    return None if tangents[0] is None else real(tangents[0] * _per_modulus(out, z))


modulus: Op = elementwise(
    "modulus", np.absolute, (_modulus_vjp,), kinds="c", result="part", jvp=_modulus_jvp, ufuncs=(), cheap=False,
    doc="|z|, without overflow; the derivative at 0 is 0.", scalar=s.modulus, numpy="np.abs({0})")
