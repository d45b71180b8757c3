"""Functions of a module, by their texts: what they define and name, and how many go into one part.

Each function is in one part.  Those that are always inlined, and tables, are copied to every part that names them.  Apart from inlining,
LLVM optimises each function alone here, so the parts give the same code as the module.  Which functions are in one part depends only on
their texts, not on the number of CPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

Call = TypeVar("Call")

LEAST = 30_000                 # least characters of a part, which LLVM compiles in about 30 ms
_SYMBOL = re.compile(r"@([\w.]+)")
_SYMBOL_OR_COMMENT = re.compile(r";.*|@([\w.]+)")


def symbols_in(text: str) -> list[str]:
    """The symbols that a text names, but for those in comments: these have the user's lines."""
    return [found for found in _SYMBOL_OR_COMMENT.findall(text) if found]


def defined_in(text: str) -> list[str]:
    """The functions, or the table, that a text defines."""
    return [_SYMBOL.findall(line)[0] for line in text.splitlines() if line.startswith(("define ", "@"))]


def is_copied(text: str) -> bool:
    """Whether a text is a table, or a function that is always inlined."""
    head = text.partition("\n")[0]
    return head.startswith("@") or head.endswith(" #2 {") or " alwaysinline " in head


def shown(text: str) -> str:
    """Functions, visible to other modules."""
    return text.replace("define internal", "define")


def declarations(text: str) -> list[str]:
    """What a module says of these functions that calls them, and has them from another one."""
    heads = [line for line in text.splitlines() if line.startswith("define ")]
    return [head.replace("define internal", "declare", 1).replace("define", "declare", 1).rstrip(" {") for head in heads]


def is_enough(texts: Sequence[str]) -> bool:
    """Whether they are enough for a part."""
    return sum(map(len, texts)) >= LEAST


def shares(texts: Sequence[str]) -> list[list[str]]:
    """The texts in parts of about the same size, in their order."""
    count = max(sum(map(len, texts)) // LEAST, 1)
    found: list[list[int]] = [[] for _ in range(count)]
    sizes = [0] * count
    for number in _by_size(texts):
        smallest = sizes.index(min(sizes))
        found[smallest].append(number)
        sizes[smallest] += len(texts[number])
    return [[texts[number] for number in sorted(share)] for share in found if share]


def consecutive_shares(calls: Sequence[Call], sizes: Sequence[int]) -> list[Sequence[Call]]:
    """Calls in their order as parts of about the same size, for so much text that is written into their caller that it takes long."""
    total = sum(sizes)
    count = total // LEAST
    if count < 2:
        return [calls]
    found: list[list[Call]] = [[] for _ in range(count)]
    before = 0
    for call, size in zip(calls, sizes, strict=True):
        found[min(before * count // total, count - 1)].append(call)
        before += size
    return [part for part in found if part]


def _by_size(texts: Sequence[str]) -> Iterable[int]:
    return sorted(range(len(texts)), key=lambda number: -len(texts[number]))
