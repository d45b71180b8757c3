"""The options that all transforms have: which arguments are compile-time values, and whether control flow is captured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from bwcompiler.errors import SignatureError
from bwcompiler.frontend.tracing.boundary.arguments import declared, parameter_names, static_argument
from bwcompiler.spellings import keyword_hint


class TransformOptions(TypedDict, total=False):
    """Options of every transform (`bw.grad(f, static_argnums=1)`), with the meaning that they have for `bw.jit`.

    static_argnums   positions of hashable arguments that are compile-time values as a whole.
    static_argnames  names of such arguments.
    autoloop         False traces the function as it runs: loops are unrolled, and branches must not depend on traced values.
    """

    static_argnums: int | Iterable[int]
    static_argnames: str | Iterable[str]
    autoloop: bool


class Options(NamedTuple):
    """The options of one transform."""

    static_argnums: int | tuple[int, ...] = ()
    static_argnames: str | tuple[str, ...] = ()
    autoloop: bool = True

    @staticmethod
    def of(transform: str, given: Mapping[str, Any]) -> Options:
        """The options from keywords; raises SignatureError for unknown ones."""
        unknown = [name for name in given if name not in Options._fields]
        if unknown:
            hint = keyword_hint(transform, unknown[0]) or f"\n  hint: all transforms have {', '.join(Options._fields)}"
            raise SignatureError(f"{transform} has no option {unknown[0]!r}{hint}")
        settled: Any = {name: value if isinstance(value, int | str) else tuple(value) for name, value in given.items()}
        return Options(**settled)

    def given(self) -> TransformOptions:
        """The options as keywords of a transform."""
        return {"static_argnums": self.static_argnums, "static_argnames": self.static_argnames, "autoloop": self.autoloop}

    @property
    def statics(self) -> dict[str, Any]:
        """The static arguments as keywords of `take_apart` and `JitFunction`."""
        return {"static_argnums": self.static_argnums, "static_argnames": self.static_argnames}

    def by_position(self, fun: Any, more: int = 0) -> Options:
        """The options for a function without parameter names that takes `more` positional arguments after those of fun."""
        names = parameter_names(fun)
        numbers, chosen = _as_set(self.static_argnums), _as_set(self.static_argnames)
        chosen |= {names[k] for k in numbers if -len(names) <= k < len(names)}
        numbers = {k if k >= 0 else k - more for k in numbers} | {k for k, name in enumerate(names) if name in chosen}
        return self._replace(static_argnums=tuple(sorted(numbers)), static_argnames=tuple(sorted(chosen)))

    def declare(self, fun: Any, primals: Sequence[Any]) -> tuple[Any, ...]:
        """The positional arguments of fun, with static ones marked as compile-time values."""
        if not any(map(_as_set, self.statics.values())):
            return tuple(primals)
        own = self.by_position(fun)
        positions = {k % len(primals) if -len(primals) <= k < 0 else k for k in _as_set(own.static_argnums)}
        names = parameter_names(fun)
        return tuple([declared(value, static_argument(names, k)) if k in positions else value for k, value in enumerate(primals)])


def _as_set(given: Any) -> set[Any]:
    return {given} if isinstance(given, int | str) else set(given)
