"""`Target`: the CPU that machine code is for.  Nothing else decides which instructions and vector widths code may use.

    Target.host()                    this machine
    Target.level("x86-64-v3")        the instructions of a level of x86-64, on whatever CPU has them
    Target.parse("x86-64-v4@256")    what BW_TARGET and `bwc dump --target` say

Code is compiled for `current_target()`: the one that `compiling_for` names, else that of the environment variable BW_TARGET,
else this machine.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import llvmlite.binding as llvm

from bwcompiler.errors import TargetError
from bwcompiler.locks import held_at_fork, renewed_properties
from bwcompiler.uninterrupted import uninterrupted

_lock = held_at_fork()         # a child of a fork in the middle of a question to LLVM would wait for the answer for ever

WIDTHS = (128, 256, 512)

# What each level of the x86-64 psABI adds to the one before, in LLVM's spelling.
_LEVELS = {
    "x86-64": "cmov cx8 fxsr mmx sse sse2",
    "x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}
LEVELS = tuple(_LEVELS)

# CPUs whose names may be given.  LLVM only warns about a name that it does not know, and compiles for none.
TUNINGS = (
    "generic", "nehalem", "sandybridge", "haswell", "broadwell", "skylake", "skylake-avx512", "cascadelake", "icelake-server",
    "alderlake", "sapphirerapids", "znver1", "znver2", "znver3", "znver4", "znver5",
)


@renewed_properties
@dataclass(frozen=True)
class Target:
    """A CPU in LLVM's words: its name, its instructions as `+avx2,-avx512f`, and the width of the vectors to use, in bits.

    >>> Target.level("x86-64-v3")
    Target('x86-64-v3@256')
    >>> Target.level("x86-64-v2").has_fma
    False
    """

    cpu: str
    features: str
    vector_bits: int

    @classmethod
    def host(cls) -> Target:
        """This machine.  LLVM's name of the CPU may be wrong in a virtual machine; the features are asked of the CPU."""
        return cls.tuned(_host()[0])

    @classmethod
    def tuned(cls, cpu: str) -> Target:
        """The instructions of this machine, chosen and ordered as is best on CPUs of this name."""
        features = _host()[1]
        return cls(cpu, features, _widest(features))

    @classmethod
    def level(cls, name: str) -> Target:
        """One of LEVELS.  Raises TargetError for another name, or on a machine that is not x86-64."""
        if name not in _LEVELS:
            raise TargetError(f"there is no level {name!r} of x86-64; levels: {', '.join(LEVELS)}")
        if not _is_x86():
            raise TargetError(f"{name} is a level of x86-64 and this machine is {platform.machine()}; write host or generic")
        names = [feature for level in LEVELS[: LEVELS.index(name) + 1] for feature in _LEVELS[level].split()]
        features = ",".join(f"+{feature}" for feature in names)
        return cls(name, features, _widest(features))

    @classmethod
    def parse(cls, text: str) -> Target:
        """`host`, a level such as `x86-64-v3`, or the name of a CPU to tune for; and `@256` for the width of vectors.

        Raises TargetError where the text says none of these, or asks for vectors that the CPU does not have.
        """
        name, separator, width = text.strip().partition("@")
        if name in LEVELS:
            found = cls.level(name)
        elif name == "host":
            found = cls.host()
        elif name in TUNINGS:
            found = cls.tuned(name)
        else:
            raise TargetError(f"{text!r} is no target; write host, a level ({', '.join(LEVELS)}) or the CPU to tune for "
                             f"({', '.join(TUNINGS)}), and @256 behind it for the width of vectors in bits")
        if not separator:
            return found
        if width not in map(str, WIDTHS) or int(width) > found.vector_bits:
            possible = ", ".join(str(bits) for bits in WIDTHS if bits <= found.vector_bits)
            raise TargetError(f"{text!r}: {name} has vectors of {possible} bits, not of {width or 'none'}")
        return cls(found.cpu, found.features, int(width))

    @property
    def has_fma(self) -> bool:
        """Whether a multiplication and an addition with one rounding are an instruction."""
        return not _is_x86() or "+fma" in self.features.split(",")

    @functools.cached_property
    def has_half_casts(self) -> bool:
        """Whether there are instructions that convert half precision."""
        return not _is_x86() or "+f16c" in self.features.split(",")

    @functools.cached_property
    def has_masks(self) -> bool:
        """Whether vectors of all elements can be loaded and stored in part."""
        return {"+avx512bw", "+avx512vl"} <= set(self.features.split(","))

    @functools.cached_property
    def has_wide_masks(self) -> bool:
        """Whether vectors of elements of 4 and of 8 bytes can."""
        return self.has_masks or "+avx2" in self.features.split(",")

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 32 if not _is_x86() or "+avx512vl" in self.features.split(",") else 16

    @property
    def function_attributes(self) -> str:
        """LLVM attributes of every function with loops: no other registers than those of the width, where there are wider ones."""
        if self.vector_bits <= 128:
            return "nounwind"
        return f'nounwind "prefer-vector-width"="{self.vector_bits}" "min-legal-vector-width"="{self.vector_bits}"'

    @functools.cached_property
    def scalar_attributes(self) -> str:
        """Those of functions of single numbers: AVX-512 compares numbers into mask registers, from which it takes long to get back."""
        names = self.features.split(",")
        if "+avx512f" not in names:
            return self.function_attributes
        features = ",".join([name.replace("+avx512", "-avx512") for name in names])
        return f'{self.function_attributes} "target-cpu"="{self.cpu}" "target-features"="{features}"'

    def lanes(self, bits: int) -> int:
        """How many elements of this size a vector register holds."""
        return self.vector_bits // bits

    def missing(self) -> tuple[str, ...]:
        """Instructions of the target that this machine does not have."""
        here = set(Target.host().features.split(","))
        return tuple(name[1:] for name in self.features.split(",") if name.startswith("+") and name not in here)

    def __str__(self) -> str:
        return f"{self.cpu}@{self.vector_bits}"

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"


@functools.cache
@uninterrupted
def _host() -> tuple[str, str]:
    """Name and features of this machine's CPU."""
    with _lock:
        return str(llvm.get_host_cpu_name()), str(llvm.get_host_cpu_features().flatten())


def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


def _widest(features: str) -> int:
    names = features.split(",")
    return 512 if "+avx512f" in names else 256 if "+avx2" in names else 128


_compiling_for: ContextVar[Target | None] = ContextVar("compiling_for", default=None)


def current_target() -> Target:
    """What code is compiled for here and now."""
    return _compiling_for.get() or default_target()


@functools.cache
def default_target() -> Target:
    """That of BW_TARGET (read once), else this machine.  Raises TargetError for a target that this machine cannot run."""
    text = os.environ.get("BW_TARGET", "host")
    try:
        found = Target.parse(text)
    except TargetError as error:
        raise TargetError(f"BW_TARGET: {error}") from None
    missing = found.missing()
    if missing:
        raise TargetError(f"BW_TARGET={text}: this machine ({Target.host().cpu}) lacks {', '.join(missing)}")
    return found


@contextmanager
def compiling_for(target: Target) -> Iterator[None]:
    """What this thread compiles meanwhile is for `target`.  It may be looked at anywhere, and run where nothing is `missing`."""
    token = _compiling_for.set(target)
    try:
        yield
    finally:
        _compiling_for.reset(token)
