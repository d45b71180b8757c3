"""Splits a large module into several that are compiled in parallel; each function is in one of them.

Functions that are always inlined, and tables, are copied to every part that needs them.  Apart from inlining, LLVM optimises each
function alone here, so the parts give the same code as the module.  The split depends only on the text, not on the number of CPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from bwcompiler.errors import InternalError

MOST = 4                       # parts
LEAST = 40_000                 # least characters of a part, which LLVM compiles in about 40 ms
_SYMBOL = re.compile(r"@([\w.]+)")
_INLINED = re.compile(r"^attributes (#\d+) = \{[^}]*\balwaysinline\b", re.MULTILINE)


class _Item(NamedTuple):
    """A function or table.  is_copied: part of every module that names it."""

    name: str
    text: str
    is_copied: bool
    names: frozenset[str]


def module_parts(text: str) -> tuple[str, ...]:
    """The parts of a module; a small module is its only part."""
    if len(text) < 2 * LEAST:
        return (text,)
    items, rest = _items(text)
    own = [item for item in items.values() if not item.is_copied]
    count = min(MOST, sum([len(item.text) for item in own]) // LEAST)
    if count < 2 or len(own) < 2:
        return (text,)
    shares = _shares(own, items, count)
    home = {item.name: number for number, share in enumerate(shares) for item in share}
    shown = {name for item in items.values() for name in item.names
             if name in home and (item.is_copied or home[name] != home[item.name])}
    return tuple([_part(share, items, rest, shown) for share in shares])


def _items(text: str) -> tuple[dict[str, _Item], dict[str, str]]:
    """Functions and tables by name; other lines: declarations by name, attributes by their text."""
    items: dict[str, _Item] = {}
    rest: dict[str, str] = {}
    inlined = (*[f" {group} {{" for group in _INLINED.findall(text)],)
    inside: list[str] = []
    for line in text.splitlines():
        if inside or line.startswith("define "):
            inside.append(line)
            if line == "}":
                _add(items, "\n".join(inside), " alwaysinline " in inside[0] or inside[0].endswith(inlined))
                inside = []
        elif line.startswith("@"):
            _add(items, line, True)
        elif line.startswith("declare "):
            rest[_SYMBOL.findall(line)[0]] = line
        elif line:
            rest[line] = line
    return items, rest


def _add(items: dict[str, _Item], text: str, is_copied: bool) -> None:
    name, *names = _SYMBOL.findall(text)
    if name in items:
        raise InternalError(f"two functions are called {name}")
    items[name] = _Item(name, text, is_copied, frozenset(names))


def _shares(own: Iterable[_Item], items: dict[str, _Item], count: int) -> list[list[_Item]]:
    """The functions in parts of about the same size, in their order.  Inlined functions count in every part."""
    order = {item.name: number for number, item in enumerate(own)}
    written = {name: _written_into(items[name], items) for name in order}
    shares: list[list[_Item]] = [[] for _ in range(count)]
    sizes = [0] * count
    copied: list[set[str]] = [set() for _ in range(count)]

    def size(item: _Item, apart_from: set[str]) -> int:
        return len(item.text) + sum([len(items[name].text) for name in written[item.name] if name not in apart_from])

    for item in sorted(own, key=lambda item: -size(item, set())):
        with_it = [size(item, copied[number]) + sizes[number] for number in range(count)]
        smallest = with_it.index(min(with_it))
        shares[smallest].append(item)
        sizes[smallest] = with_it[smallest]
        copied[smallest].update(written[item.name])
    return [sorted(share, key=lambda item: order[item.name]) for share in shares]


def _written_into(item: _Item, items: dict[str, _Item]) -> list[str]:
    """The copied functions and tables that a part with this item needs."""
    found: dict[str, None] = {}
    pending = [*item.names]
    while pending:
        name = pending.pop()
        if name not in found and name in items and items[name].is_copied:
            found[name] = None
            pending += items[name].names
    return list(found)


def _part(share: Iterable[_Item], items: dict[str, _Item], rest: dict[str, str], shown: set[str]) -> str:
    """A module of these functions; those in `shown` are visible to the other parts."""
    mine = {item.name: item for item in share}
    copied: dict[str, _Item] = {}
    declared: dict[str, str] = {}
    pending = [name for item in mine.values() for name in sorted(item.names)]
    while pending:
        name = pending.pop()
        item = items.get(name)
        if name in mine or name in copied or name in declared:
            continue
        if item is None:                           # an external symbol, or a word in a comment
            declared.update({name: rest[name]} if name in rest else {})
        elif item.is_copied:
            copied[name] = item
            pending += sorted(item.names)
        else:
            head = item.text.partition("\n")[0]
            declared[name] = head.replace("define internal", "declare", 1).replace("define", "declare", 1).rstrip(" {")
    lines = [item.text.replace("define internal", "define", 1) if item.name in shown else item.text for item in mine.values()]
    lines += [copied[name].text for name in items if name in copied]
    return "\n".join([*lines, *[declared[name] for name in sorted(declared)], *[line for key, line in rest.items() if key == line], ""])
