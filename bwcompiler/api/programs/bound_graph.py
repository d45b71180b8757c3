"""`BoundGraph`: a compiled graph with the arrays it captures, and the ways of calling it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bwcompiler.api.programs.arguments.forms import argument_kinds, flat_tree
from bwcompiler.api.programs.executables import Compiled
from bwcompiler.api.programs.finite import check_finite
from bwcompiler.compiler.options import checks_finite
from bwcompiler.ir.contracts.call_signature import ArgumentKind, CallSignature, Contents, Layout, Leaf, Read, ResultKind, Tree
from bwcompiler.runtime.entry.table import takes_numbers
from bwcompiler.runtime.executable import CallForm, RaiseError, chain


class BoundGraph:
    """A compiled graph over captured arrays.

    layouts   the memory layout required of each leaf; None if any layout is accepted.  Empty: any layout for all leaves.
    alone     leaves that must not share memory with another leaf or with a captured array.
    kinds     of the first results: "array" or "scalar" (0-d results may be either, as NumPy returns them).
    """

    def __init__(self, compiled: Compiled, captured: Sequence[Any], layouts: Sequence[Layout] = (), alone: Sequence[int] = (),
                 kinds: Sequence[ResultKind] = ()) -> None:
        self.compiled = compiled
        self.kinds = tuple(kinds)
        self._signature = replace(compiled.signature, result_kinds=self.kinds + compiled.signature.result_kinds[len(self.kinds):])
        self.captured = tuple(captured)
        self.layouts = tuple(layouts) or (None,) * len(compiled.signature.argument_types)
        self.alone = tuple(alone)
        self.is_native = all(type(array) is np.ndarray and array.dtype.isnative for array in self.captured)
        self._flat: dict[tuple[ArgumentKind, ...], CallForm | None] = {}

    def over(self, captured: Sequence[Any]) -> BoundGraph:
        """The same graph with other captured arrays."""
        other = BoundGraph(self.compiled, captured, self.layouts, self.alone, self.kinds)
        if other.is_native:
            other._flat = {kinds: form.over(other.captured) for kinds, form in self._flat.items() if form is not None}
        return other

    def signature(self, arguments: tuple[Tree, ...], kinds: tuple[ArgumentKind, ...], result: Tree,
                  keywords: Sequence[str] = ()) -> CallSignature:
        """The signature of calls with arguments of this structure."""
        return replace(
            self._signature, arguments=arguments, keywords=tuple(keywords), argument_kinds=kinds, result=result,
            layouts=tuple([layout if kind == "array" else None for layout, kind in zip(self.layouts, kinds, strict=True)]),
            alone=tuple([leaf for leaf in self.alone if kinds[leaf] == "array"]))

    def form(self, signature: CallSignature, statics: Sequence[object] = (), reads: Sequence[Read] = (),
             raise_error: RaiseError | None = None) -> CallForm | None:
        """The call form for the native entry; None if it cannot take arrays (captured or compiled in) or Python numbers of these kinds.

        raise_error: replaces the error handler of the compiled program.
        """
        if checks_finite():                        # results are checked in Python (`run`)
            return None
        resized = any(array.shape != type_.shape for array, type_ in zip(self.captured, signature.captured_types, strict=True))
        if not self.is_native or resized or not takes_numbers(signature):
            return None
        if not all(Contents.can_hold(value) for value in statics if type(value) is np.ndarray):
            return None                            # arrays that are compiled in: what they hold is compared at each call
        statics = [Contents(value) if type(value) is np.ndarray else value for value in statics]
        return self.compiled.executable.form(raise_error or self.compiled.raise_error, self.captured, statics, reads, signature)

    def call(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The results for leaves of any kind, converted and copied as needed; results written into arguments are left out."""
        kinds = argument_kinds(leaves)
        if kinds is None:
            return self.run(leaves)
        if kinds not in self._flat:
            self._flat[kinds] = self.form(self.signature(tuple([Leaf(k) for k in range(len(leaves))]), kinds, self._results()))
        form = self._flat[kinds]
        if form is None:
            return self.run(leaves)
        return chain([form], lambda *_: self.run(leaves))(*leaves)  # type: ignore[no-any-return]

    def run(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Like `call`, without the native entry."""
        signature = replace(self._signature, result=self._results())
        checks = checks_finite()
        arguments = [np.array(array) for array in (*leaves, *self.captured)] if checks else []      # a program may write to them
        results = self.compiled.executable.run(leaves, self.compiled.raise_error, self.captured, signature)
        if checks:
            types = [value.type for value in self.compiled.graph.inputs]
            arguments = [array.astype(type_.dtype.numpy) for array, type_ in zip(arguments, types, strict=True)]
            check_finite(self.compiled.graph, arguments, results)
        return results  # type: ignore[no-any-return]

    def _results(self) -> Tree:
        into = self.compiled.signature.result_into
        return flat_tree(next((k for k, leaf in enumerate(into) if leaf is not None), len(into)))
