"""Handles: a storage and a chain of view steps, which together represent an array that can be read and written (`views`)."""

from __future__ import annotations

from bwcompiler.frontend.tracing.promotion import Kind, strong
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import Region, Storage, _state, follow, open_region
from bwcompiler.frontend.tracing.storages.undecided_views import decide_views
from bwcompiler.frontend.tracing.storages.views import Chain
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TensorType


class Handle:
    """A view of a storage.

    _kind    what promotion sees: a DType, or int/float for a Python number that is traced (weak).
    _value   the last value read, valid for `_version` of the storage in `_region`.
    """

    __slots__ = ("__weakref__", "_chain", "_kind", "_region", "_storage", "_type", "_value", "_version")

    def __init__(self, storage: Storage, chain: Chain, type: TensorType, kind: Kind) -> None:
        self._storage = storage
        self._chain = chain
        self._type = type
        self._kind = kind
        self._value: Value | None = None
        self._version: float = -1
        self._region: Region | None = None


def value_of(handle: Handle) -> Value:
    """What the handle holds now, in the thread's innermost region."""
    region = _state.region
    storage = handle._storage
    if region is None:
        region = open_region(storage)
    base = storage.value if storage.region is region else region.read(storage)
    chain = handle._chain
    if not chain:
        return base
    if handle._version == storage.version and handle._region is region:
        assert handle._value is not None
        return handle._value
    found = follow(storage, chain, base, region)
    handle._value, handle._version, handle._region = found, storage.version, region
    return found


def assign(handle: Handle, value: Value) -> None:
    """Write a value of the handle's type through its views into the storage."""
    if handle._storage.undecided is not None:
        decide_views(handle._storage)
    storage = handle._storage
    if not storage.writable:
        raise TypeError(f"'{handle._type.dtype.numpy}' scalars are immutable: they do not support item assignment")
    region = open_region(storage)
    bases = [region.read(storage)]
    for step in handle._chain[:-1]:
        bases.append(step.read(bases[-1]))
    new = value
    for step, base in zip(reversed(handle._chain), reversed(bases), strict=False):
        new = step.write(base, new)
    region.write(storage, new)
    if storage.links:
        HANDLERS["write_twins"](storage)
    if handle._chain:
        handle._value, handle._version, handle._region = value, storage.version, region


def is_weak(handle: Handle) -> bool:
    """Whether it stands for a Python number."""
    return strong(handle._kind) is not handle._kind
