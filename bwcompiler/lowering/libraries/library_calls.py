"""Library ops as functions of a program: which of the files beside this one writes them."""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler.ir.access import ArrayView
from bwcompiler.ir.op import Value
from bwcompiler.ir.routine import Fourier, InnerLoop, Selection, Sort
from bwcompiler.lowering.libraries.call_texts import CallText, Libraries
from bwcompiler.lowering.libraries.factorization_calls import factorization_text, is_written_out
from bwcompiler.lowering.libraries.fourier_calls import fourier_text
from bwcompiler.lowering.libraries.inner_loops import inner_loop_text
from bwcompiler.lowering.libraries.selection_calls import selection_text
from bwcompiler.lowering.libraries.sort_calls import sort_text


def library_call_text(name: str, value: Value, views: Sequence[ArrayView], libraries: Libraries) -> CallText | None:
    """The function that computes a library op by its routine; None if this process has no address of one."""
    routine = value.op.library
    if isinstance(routine, InnerLoop) and not is_written_out(value):
        return inner_loop_text(name, value, views, libraries)
    if isinstance(routine, Sort):
        return sort_text(name, value, views, libraries)
    if isinstance(routine, Selection):
        return selection_text(name, value, views, libraries)
    if isinstance(routine, Fourier):
        return fourier_text(name, value, views[0], libraries)
    return None if routine is None else factorization_text(name, value, views, libraries)
