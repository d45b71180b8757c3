"""`Variants`: the traces of one function, and which of them holds for a call.

`JitFunction` keeps its `Specialisation`s in one, and `vjp` and `linearize` the `Program`s of the function that they are given.  A call is
looked up in two steps: by the kind of its arguments (`specialisation_key`), then by what the traces of this kind assumed (`Assumptions`).
If none holds, the function is traced again, and what changed since the last trace becomes an operand, if it can (`ChangingNumbers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from bwcompiler.api.programs.arguments.assumptions import Assumptions
from bwcompiler.api.programs.arguments.changing_numbers import ChangingNumbers
from bwcompiler.api.programs.arguments.specialisation_keys import specialisation_key
from bwcompiler.frontend.tracing.boundary.arguments import Arguments
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead

VARIANTS = 8                   # most traces per kind of arguments


class Variant(Protocol):
    """A trace and what is compiled from it."""

    traced: TraceResult
    assumptions: Assumptions


V = TypeVar("V", bound=Variant)


class Retrace(NamedTuple):
    """What is known of values outside when a function is traced for arguments that no variant takes.

    changed  those that differ from the last trace for such arguments, if there was one; varying, rebound: see `TraceOptions`.
    """

    changed: Sequence[OutsideRead] = ()
    varying: Sequence[OutsideRead] = ()
    rebound: Sequence[OutsideRead] = ()


class Variants(Generic[V]):
    """kinds: per kind of arguments its variants, the newest first."""

    def __init__(self) -> None:
        self.kinds: dict[Any, list[V]] = {}
        self._demanded: dict[Any, set[int]] = {}       # structure of a call -> leaves whose values tracing needed: static
        self._outside = ChangingNumbers()

    def __len__(self) -> int:
        return sum(map(len, self.kinds.values()))

    def make_static(self, arguments: Arguments) -> None:
        """Make the leaves compile-time values whose values earlier traces of such calls needed; the other methods expect that."""
        if self._demanded:
            arguments.also_static(self._demanded.get(_structure(arguments), ()))

    def find(self, arguments: Arguments) -> V | None:
        """The variant that holds for these arguments and the present values outside."""
        for candidate in self.kinds.get(specialisation_key(arguments), ()):
            if candidate.assumptions.hold_for(arguments):
                return candidate
        return None

    def others(self, one: V, arguments: Arguments) -> list[V]:
        """The other variants that hold, perhaps."""
        return [other for other in self.kinds.get(specialisation_key(arguments), ())
                if other is not one and other.assumptions.hold_for(arguments)]

    def prefer(self, one: V, arguments: Arguments) -> None:
        """Find this variant first from now on."""
        variants = self.kinds.get(specialisation_key(arguments), [])
        if one in variants[1:]:
            self.kinds[specialisation_key(arguments)] = [one, *[other for other in variants if other is not one]]

    def add(self, arguments: Arguments, make: Callable[[Retrace], V]) -> tuple[V, list[V]]:
        """A new variant for these arguments, and those that are dropped for it; `make` traces the function."""
        structure = _structure(arguments)
        before = self.kinds.get(specialisation_key(arguments), [])
        changed = before[0].assumptions.changed() if before else []
        varying = self._outside.varying(changed, before[0].traced.outside.fixed if before else ())
        made = make(Retrace(changed, varying, tuple(self._outside.rebound.values())))
        if made.traced.demanded:
            self._demanded.setdefault(structure, set()).update(made.traced.demanded)
        self._outside.settle(varying, [*made.traced.outside.varying, *made.traced.outside.live])
        variants = self.kinds.setdefault(specialisation_key(arguments), [])        # tracing may have made more leaves static
        variants.insert(0, made)
        dropped = variants[VARIANTS:]
        del variants[VARIANTS:]
        return made, dropped

    def drop(self, is_dropped: Callable[[V], bool]) -> None:
        for key, variants in self.kinds.items():
            self.kinds[key] = [one for one in variants if not is_dropped(one)]

    def clear(self) -> None:
        """Forget all traces; not which values outside change between calls."""
        self.kinds.clear()
        self._demanded.clear()


def _structure(arguments: Arguments) -> Any:
    return (arguments.treedef, tuple([type(leaf) for leaf in arguments.leaves]))
