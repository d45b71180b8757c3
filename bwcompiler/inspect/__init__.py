"""Programs for people to look at: every stage as text, pages, drawings, costs, and `explain`.

Loaded on first use: running programs needs neither drawings nor pages nor exporters.
"""

from typing import TYPE_CHECKING

from bwcompiler.lazy import loader

if TYPE_CHECKING:
    from bwcompiler.inspect.costs import cost_of, memory_of
    from bwcompiler.inspect.dump import FORMATS, Compilation, render, write
    from bwcompiler.inspect.explanation import explain_program

__all__ = ["FORMATS", "Compilation", "cost_of", "explain_program", "memory_of", "render", "write"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = loader(__name__, {
        "costs": "cost_of memory_of",
        "dump": "FORMATS Compilation render write",
        "explanation": "explain_program",
    })
