"""`bw.scipy.spatial.transform`: rotations in space, `Rotation`, and `Slerp` between them, of traced and of plain arrays.

A rotation is kept as unit quaternions (x, y, z, w) along the last axis.  Formulas that lose digits near the identity, or divide by zero
there, have series in their places, so that they have all derivatives.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.operands import is_traced, real_value
from bwcompiler.frontend.tracing.tracer import fresh

__all__ = ["Rotation", "Slerp"]
AXES = {"x": 0, "y": 1, "z": 2}


@graph_function
def _floats(x: Any) -> Any:
    return fresh(real_value(x))


def _require(x: Any, last: tuple[int, ...], what: str) -> Any:
    found = _floats(x)
    if found.shape[-len(last):] != last:
        raise ShapeError(f"{what}: expected shape {('...', *last)}, got {found.shape}".replace("'", ""))
    return found


@graph_function
def _unit(quaternion: Any) -> Any:
    return quaternion / np.sqrt((quaternion * quaternion).sum(-1, keepdims=True))


@graph_function
def _product(p: Any, q: Any) -> Any:
    """First q, then p."""
    vector = p[..., 3:] * q[..., :3] + q[..., 3:] * p[..., :3] + np.cross(p[..., :3], q[..., :3])
    scalar = p[..., 3:] * q[..., 3:] - (p[..., :3] * q[..., :3]).sum(-1, keepdims=True)
    return np.concatenate([vector, scalar], -1)


@graph_function
def _from_vector(vector: Any) -> Any:
    """sin(θ/2) / θ and cos(θ/2) of θ²."""
    square = (vector * vector).sum(-1, keepdims=True)
    near = square < 1e-6
    angle = np.sqrt(np.where(near, 1.0, square))
    small = np.where(near, square, 0.0)
    scale = np.where(near, 0.5 - small / 48 + small**2 / 3840, np.sin(angle / 2) / angle)
    return np.concatenate([vector * scale, np.where(near, 1.0 - small / 8 + small**2 / 384, np.cos(angle / 2))], -1)


@graph_function
def _vector(quaternion: Any) -> Any:
    """The rotation vector: θ / sin(θ/2) times the vector part, for cos(θ/2) >= 0."""
    q = np.where(quaternion[..., 3:] < 0, -quaternion, quaternion)
    square = (q[..., :3] * q[..., :3]).sum(-1, keepdims=True)
    near = square < 1e-6
    small = np.where(near, square, 0.0)                        # sin²(θ/2): 2 arcsin(s) / s
    size = np.sqrt(np.where(near, 1.0, square))
    return q[..., :3] * np.where(near, 2.0 + small / 3 + small**2 * 0.15, 2.0 * np.arctan2(size, q[..., 3:]) / size)


@graph_function
def _angle(quaternion: Any) -> Any:
    square = (quaternion[..., :3] ** 2).sum(-1)
    zero = square == 0
    size = np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, square)))
    return 2.0 * np.arctan2(size, np.abs(quaternion[..., 3]))


@graph_function
def _matrix(quaternion: Any) -> Any:
    x, y, z, w = (quaternion[..., k] for k in range(4))
    rows = [[x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w]]
    return np.stack([np.stack(row, -1) for row in rows], -2)


@graph_function
def _from_matrix(matrix: Any) -> Any:
    """Of the nearest orthogonal matrix, by Newton's method (Higham, 1986); the largest component is found first (Shepperd, 1978)."""
    m = matrix
    for _ in range(6):
        a, b, c = m[..., 0, :], m[..., 1, :], m[..., 2, :]
        cofactors = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], -2)
        m = 0.5 * (m + cofactors / (a * cofactors[..., 0, :]).sum(-1)[..., None, None])
    x, y, z = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    sizes = [1 + x - y - z, 1 - x + y - z, 1 - x - y + z, 1 + x + y + z]
    off = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]]
    on = [m[..., 1, 0] + m[..., 0, 1], m[..., 2, 0] + m[..., 0, 2], m[..., 2, 1] + m[..., 1, 2]]
    choices = [[sizes[0], on[0], on[1], off[0]], [on[0], sizes[1], on[2], off[1]], [on[1], on[2], sizes[2], off[2]], [*off, sizes[3]]]
    largest = np.argmax(np.stack([x, y, z, x + y + z], -1), -1)
    found = np.stack(choices[3], -1)
    for k in range(3):
        found = np.where((largest == k)[..., None], np.stack(choices[k], -1), found)
    return _unit(found)


@graph_function
def _euler(quaternion: Any, seq: str, extrinsic: bool) -> Any:
    """E. Bernardes and S. Viollet, "Quaternion to Euler angles conversion", 2022."""
    i, j, k = (AXES[one] for one in (seq if extrinsic else seq[::-1]))
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    q = [quaternion[..., n] for n in range(4)]
    if symmetric:
        a, b, c, d = q[3], q[i], q[j], q[k] * sign
    else:
        a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
    middle = 2.0 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
    at_zero, at_half = np.abs(middle) <= 1e-7, np.abs(middle - math.pi) <= 1e-7
    total, apart = np.arctan2(b, a), np.arctan2(d, c)
    locked = at_zero | at_half
    one = np.where(locked, np.where(at_zero, 2.0 * total, 2.0 * apart * (-1.0 if extrinsic else 1.0)), total - apart)
    other = np.where(locked, 0.0, total + apart)
    if not extrinsic:                                           # the first and the last one change places
        one = np.where(locked, one, total + apart)
        other = np.where(locked, 0.0, total - apart)
    third, first = (other, one) if extrinsic else (one, other)
    if not symmetric:
        middle = middle - math.pi / 2
        third = third * sign
    first, third = (first, third) if extrinsic else (third, first)
    wrapped = [np.where(x < -math.pi, x + 2 * math.pi, np.where(x > math.pi, x - 2 * math.pi, x)) for x in (first, middle, third)]
    return np.stack(wrapped, -1)


def _sequence(seq: str) -> tuple[str, bool]:
    """The axes in lower case, and whether they stay where they are."""
    if not 1 <= len(seq) <= 3 or not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ValueError(f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}")
    if any(one == other for one, other in itertools.pairwise(seq)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return seq.lower(), seq.islower()


class Rotation:
    """Rotations as scipy.spatial.transform.Rotation, made by `from_quat`, `from_matrix`, `from_rotvec`, `from_mrp`, `from_euler`.

    as_quat, as_matrix, as_rotvec, as_mrp, as_euler; r.apply(vectors), r * s (first s, then r), r.inv(), r ** n, r.magnitude(), r.mean(),
    r[k], len(r), Rotation.concatenate, Rotation.identity.  All are differentiated, at the identity too.  They are containers: arguments and
    results of transformed functions.  Of matrices that are not orthogonal the nearest ones that are are taken, as SciPy does.

    >>> import numpy as np, bwcompiler as bw
    >>> Rotation = bw.scipy.spatial.transform.Rotation
    >>> turned = lambda angle: Rotation.from_rotvec(angle * np.array([0.0, 0.0, 1.0])).apply(np.array([1.0, 0.0, 0.0]))
    >>> bw.jacobian(turned)(0.0).tolist()
    [0.0, 1.0, 0.0]
    """

    def __init__(self, quat: Any, normalize: bool = True, copy: bool = True, scalar_first: bool = False) -> None:
        found = _require(quat, (4,), "Rotation")
        if scalar_first:
            found = np.roll(found, -1, -1)
        self._quat: Any = _unit(found) if normalize else found
        _known_as_a_container()

    # ----- made of
    @classmethod
    def from_quat(cls, quat: Any, *, scalar_first: bool = False) -> Rotation:
        """Of quaternions (x, y, z, w), or (w, x, y, z), of any length but 0."""
        return cls(quat, scalar_first=scalar_first)

    @classmethod
    def from_matrix(cls, matrix: Any, *, assume_valid: bool = False) -> Rotation:
        """Of matrices (..., 3, 3) whose determinant is positive."""
        return cls(_from_matrix(_require(matrix, (3, 3), "Rotation.from_matrix")), normalize=False)

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Of vectors along the axis, as long as the angle."""
        vector = _require(rotvec, (3,), "Rotation.from_rotvec")
        return cls(_from_vector(vector * (math.pi / 180) if degrees else vector), normalize=False)

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Of modified Rodrigues parameters, tan(θ/4) along the axis."""
        vector = _require(mrp, (3,), "Rotation.from_mrp")
        square = (vector * vector).sum(-1, keepdims=True)
        return cls(np.concatenate([2 * vector, 1 - square], -1) / (1 + square), normalize=False)

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Of angles about axes one after the other: "xyz" about fixed axes, "XYZ" about those of the body."""
        names, fixed = _sequence(seq)
        given: Any = np.stack(list(angles), -1) if isinstance(angles, list | tuple) and is_traced(angles) else _floats(angles)
        if len(names) == 1 and (given.ndim == 0 or given.shape[-1] != 1 or (given.ndim == 1 and not isinstance(angles, list | tuple))):
            given = given[..., None]
        if given.shape[-1] != len(names):
            raise ShapeError(f"Rotation.from_euler: expected {len(names)} angles for {seq!r}, got shape {given.shape}")
        half = given * (math.pi / 360 if degrees else 0.5)
        found = None
        for place, name in enumerate(names):
            parts = [np.sin(half[..., place]) if axis == AXES[name] else 0.0 * half[..., place] for axis in range(3)]
            one = np.stack([*parts, np.cos(half[..., place])], -1)
            found = one if found is None else _product(one, found) if fixed else _product(found, one)
        return cls(found, normalize=False)

    @classmethod
    def identity(cls, num: int | None = None) -> Rotation:
        """The rotation by 0, or so many of them."""
        return cls(np.array([0.0, 0.0, 0.0, 1.0]) if num is None else np.tile(np.array([0.0, 0.0, 0.0, 1.0]), (num, 1)), normalize=False)

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Several of them as one."""
        return cls(np.concatenate([np.atleast_2d(one._quat) for one in rotations]), normalize=False)

    @classmethod
    def random(cls, *_: Any, **__: Any) -> Rotation:
        """Refused with UnsupportedError."""
        raise UnsupportedError("Rotation.random: random numbers come from keys here\n"
                               "  hint: Rotation.from_quat(bw.random.normal(key, (4,)))")

    # ----- as
    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Any:
        """Unit quaternions (x, y, z, w), or (w, x, y, z); canonical: w >= 0.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.as_quat().round(4).tolist()
        [0.0, 0.0, 0.7071, 0.7071]
        """
        found = np.where(self._quat[..., 3:] < 0, -self._quat, self._quat) if canonical else self._quat
        return np.roll(found, 1, -1) if scalar_first else found

    def as_matrix(self) -> Any:
        """Matrices of shape (..., 3, 3).

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> (turn.as_matrix().round(4) + 0.0).tolist()
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
        """
        return _matrix(self._quat)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Vectors along the axis, as long as the angle, which is π at most.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.as_rotvec(degrees=True).round(4).tolist()
        [0.0, 0.0, 90.0]
        """
        return _vector(self._quat) * (180 / math.pi if degrees else 1.0)

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.as_mrp().round(4).tolist()
        [0.0, 0.0, 0.4142]
        """
        sign = np.where(self._quat[..., 3:] < 0, -1.0, 1.0)
        return sign * self._quat[..., :3] / (1.0 + sign * self._quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """Three angles about the axes; where the middle one makes the other two one rotation, the third is 0.  Raises ValueError for
        another number of axes.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.as_euler("xyz", degrees=True).round(4).tolist()
        [0.0, 0.0, 90.0]
        """
        names, fixed = _sequence(seq)
        if len(names) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        return _euler(self._quat, seq=names, extrinsic=fixed) * (180 / math.pi if degrees else 1.0)

    # ----- with
    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """The vectors (..., 3) turned, or turned back.  Raises ShapeError for others.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> (turn.apply(np.array([1.0, 0.0, 2.0])).round(4) + 0.0).tolist()
        [0.0, 1.0, 2.0]
        """
        given, matrix = _require(vectors, (3,), "Rotation.apply"), self.as_matrix()
        turn = np.swapaxes(matrix, -1, -2) if inverse else matrix
        return (turn * given[..., None, :]).sum(-1)

    def inv(self) -> Rotation:
        """The rotation back.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.inv().as_rotvec(degrees=True).round(4).tolist()
        [-0.0, -0.0, -90.0]
        """
        return Rotation(self._quat * np.array([-1.0, -1.0, -1.0, 1.0]), normalize=False)

    def __mul__(self, other: Any) -> Rotation:
        second = other if isinstance(other, Rotation) else converted(other)
        if second is None:
            return NotImplemented
        return Rotation(_product(*np.broadcast_arrays(self._quat, second._quat)), normalize=True)

    def __rmul__(self, other: Any) -> Rotation:
        first: Rotation | None = converted(other)
        return NotImplemented if first is None else first * self

    def __pow__(self, n: Any, modulus: None = None) -> Rotation:
        return Rotation.from_rotvec(self.as_rotvec() * n)

    def magnitude(self) -> Any:
        """The angle, of 0 to π; an array for several rotations.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> float(turn.magnitude().round(4))
        1.5708
        """
        return _angle(self._quat)

    def approx_equal(self, other: Rotation, atol: float | None = None, degrees: bool = False) -> Any:
        """Whether the angle between them is smaller than atol.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> bool(turn.approx_equal(turn))
        True
        """
        least = 1e-8 if atol is None else math.radians(atol) if degrees else atol
        return (other * self.inv()).magnitude() < least

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation whose squared distances from them are least, by the largest eigenvector of Σ w q qᵀ.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.mean().as_rotvec(degrees=True).round(4).tolist()
        [0.0, 0.0, 90.0]
        """
        quaternions = self._quat.reshape(-1, 4)
        share = np.ones(quaternions.shape[0]) if weights is None else _floats(weights)
        return Rotation(np.linalg.eigh((quaternions.T * share) @ quaternions)[1][:, -1], normalize=False)

    # ----- as a container
    @property
    def single(self) -> bool:
        """Whether it is one rotation, not an array of them.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.single
        True
        """
        return bool(self._quat.ndim == 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array of rotations; () for one.

        >>> import numpy as np, bwcompiler as bw
        >>> turn = bw.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
        >>> turn.shape
        ()
        """
        return tuple(self._quat.shape[:-1])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return int(self._quat.shape[0])

    def __getitem__(self, index: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self._quat[index], normalize=False)


class Slerp:
    """Rotations between those at given times, turning about one axis in each interval, as scipy.spatial.transform.Slerp(times, rotations).

    >>> import numpy as np, bwcompiler as bw
    >>> Rotation, Slerp = bw.scipy.spatial.transform.Rotation, bw.scipy.spatial.transform.Slerp
    >>> between = Slerp(np.array([0.0, 1.0]), Rotation.from_euler("z", np.array([0.0, 90.0]), degrees=True))
    >>> between(np.array([0.5])).as_euler("xyz", degrees=True).round(6).tolist()
    [[0.0, 0.0, 45.0]]
    """

    def __init__(self, times: Any, rotations: Rotation) -> None:
        if rotations.single or len(rotations) <= 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        self.times = _floats(times)
        if self.times.shape != (len(rotations),):
            raise ValueError(f"Expected number of rotations to be equal to number of timestamps given, got {len(rotations)} rotations and "
                             f"{self.times.shape} timestamps.")
        self.rotations = rotations
        self.vectors = (rotations[:-1].inv() * rotations[1:]).as_rotvec()

    def __call__(self, times: Any) -> Rotation:
        at = _floats(times)
        number = np.clip(np.searchsorted(self.times, at, side="left") - 1, 0, len(self.rotations) - 2)
        share = (at - self.times[number]) / (self.times[number + 1] - self.times[number])
        return self.rotations[number] * Rotation.from_rotvec(self.vectors[number] * share[..., None])


def _restored(_: Any, parts: Any) -> Rotation:
    """A rotation of whatever is in its place: arrays, and what transforms put there."""
    found = object.__new__(Rotation)
    found._quat = parts[0]
    return found


def converted(of: Any) -> Rotation | None:
    """A rotation of SciPy's as one of these; None for anything else."""
    known = type(of).__name__ == "Rotation" and str(type(of).__module__).startswith("scipy.spatial")
    return Rotation(of.as_quat(), normalize=False) if known else None


def _known_as_a_container() -> None:
    """When the first rotation is made: what holds trees is loaded by then."""
    tree.register_once(Rotation, lambda one: ((one._quat,), None), _restored)
