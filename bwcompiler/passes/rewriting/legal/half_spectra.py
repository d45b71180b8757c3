"""Fourier transforms of real numbers, and those of which only the real part is read: `use_half_spectra`, half of the frequencies for each.

    fft(x), x real       y_(-k) = conj(y_k), in all axes of the transform at once: rfft along the last one, the others on half of the
                         columns, and the other half is mirrored.  With the other sign of the exponent it is the conjugate.
    real(ifft(z))        the transform of w_k = (z_k + conj(z_(-k))) / 2, whose other half is its mirror image: irfft of the first half.
                         real(fft(z)) is real(ifft(conj(z))).

(Any text on the discrete Fourier transform has these symmetries.)  `real(ifft2(fft2(f) / k))` and its gradient, a Poisson solver, are
eight half transforms.  A chain of transforms becomes one only if nothing else reads the values inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value, constant
from bwcompiler.ir.types import TensorType, component_of
from bwcompiler.passes.rewriting.rewriter import Replacement, with_replaced
from bwcompiler.passes.rewriting.simplify_rules import RULES


class _Chain(NamedTuple):
    """Transforms in one direction, one after the other along axes of their own; scales: per axis."""

    source: Value
    scales: dict[int, float]
    inverse: bool

    @property
    def last(self) -> int:
        """The axis of which half is left out."""
        return max(self.scales)

    @property
    def others(self) -> list[int]:
        return sorted(self.scales.keys() - {self.last})


def use_half_spectra(graph: Graph) -> Graph:
    """The graph with half as many frequencies where that is enough; the same graph where it never is."""
    if not any(value.op is ops.fft for value in graph.body):
        return graph
    once = graph.read_once()
    made: dict[Value, Replacement] = {}
    inside: set[Value] = set()
    for value in reversed(graph.body):
        if value.op is ops.fft and value not in inside:
            chain = _chain(value, once, inside)
            x = _real_source(chain.source)
            if x is not None:
                made[value] = Replacement((x,), _of_real(chain))
        elif _takes_real_part(value) and value.operands[0].op is ops.fft and value.operands[0] in once:
            own: set[Value] = {value.operands[0]}
            chain = _chain(value.operands[0], once, own)
            if _real_source(chain.source) is None:
                inside |= own
                made[value] = Replacement((chain.source,), _real_part(chain))
    return with_replaced(graph, RULES, made) if made else graph


def _chain(value: Value, once: Set[Value], inside: set[Value]) -> _Chain:
    """The chain that ends with a transform; those before it are put into `inside`."""
    inverse, scales = value.attrs["inverse"], {value.attrs["axis"]: value.attrs["scale"]}
    source = value.operands[0]
    while source.op is ops.fft and source.attrs["inverse"] == inverse and source.attrs["axis"] not in scales and source in once:
        inside.add(source)
        scales[source.attrs["axis"]] = source.attrs["scale"]
        source = source.operands[0]
    return _Chain(source, scales, inverse)


def _real_source(z: Value) -> Value | None:
    """x where z is x + 0i."""
    if z.op is ops.cast and z.operands[0].dtype is component_of(z.dtype):
        return z.operands[0]
    if z.op is ops.make_complex and z.operands[1].op is ops.full and z.operands[1].attrs["value"] == 0:
        return z.operands[0]
    return None


def _takes_real_part(value: Value) -> bool:
    operand = value.operands[0] if value.operands else None
    if operand is None or not isinstance(operand.type, TensorType) or not operand.dtype.is_complex:
        return False
    return value.op is ops.real or (value.op is ops.cast and value.dtype is component_of(operand.dtype))


def _of_real(chain: _Chain) -> Callable[[Value], Value]:
    def made(x: Value) -> Value:
        half = ops.rfft(x, axis=chain.last, scale=chain.scales[chain.last])
        for axis in chain.others:
            half = ops.fft(half, axis=axis, inverse=False, scale=chain.scales[axis])
        points = x.shape[chain.last]
        missing = (points - 1) // 2
        first = _with_sign(half, chain.inverse)
        if not missing:
            return first
        mirrored = _reversed(ops.slice_axis(half, chain.last, missing, missing, -1), chain.others)
        return ops.concatenate(first, _with_sign(mirrored, not chain.inverse), axis=chain.last)
    return made


def _with_sign(x: Value, negative: bool) -> Value:
    """x or conj(x); an imaginary part of 0 is 0, as where complex numbers are summed up, and not -0, which turns angles."""
    im = ops.imag(x)
    zero = constant(0.0, im.type)
    return ops.make_complex(ops.real(x), ops.subtract(zero, im) if negative else ops.add(im, zero))


def _real_part(chain: _Chain) -> Callable[[Value], Value]:
    def made(z: Value) -> Value:
        last, points = chain.last, z.shape[chain.last]
        half = ops.slice_axis(z, last, 0, points // 2 + 1, 1)
        mirrored = ops.slice_axis(z, last, 0, 1, 1)
        if points > 1:
            mirrored = ops.concatenate(mirrored, ops.slice_axis(z, last, points - 1, points // 2, -1), axis=last)
        mirrored = _reversed(mirrored, chain.others)
        half = ops.add(half, ops.conjugate(mirrored)) if chain.inverse else ops.add(ops.conjugate(half), mirrored)
        for axis in chain.others:
            half = ops.fft(half, axis=axis, inverse=True, scale=chain.scales[axis])
        return ops.irfft(half, axis=last, points=points, scale=0.5 * chain.scales[last])
    return made


def _reversed(x: Value, axes: Iterable[int]) -> Value:
    """Element -k, modulo the extent, in the place of k."""
    for axis in axes:
        extent = x.shape[axis]
        if extent > 2:
            x = ops.concatenate(ops.slice_axis(x, axis, 0, 1), ops.slice_axis(x, axis, extent - 1, extent - 1, -1), axis=axis)
    return x
