"""Which array a variable refers to after a loop that rebinds it: names of one array must see what is written through any of them.

The loop carries copies, and its result is a separate array.  The variable refers to a new array if the last iteration
made one.  If this depends on data (there may be no iteration, or a branch binds the variable), the loop also carries a truth value: whether
the variable still refers to its old array.  If it is true afterwards, the two are one array (`tracing/control_flow/twins.py`).
Arrays for which this cannot be determined become read-only.  `loop` is a `capture.Traceable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import CellType
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.concrete.makers import note_shown, shown
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes
from bwcompiler.frontend.source.variables import Again, is_number, same
from bwcompiler.frontend.tracing.control_flow.shared_arrays import origins, possible, share
from bwcompiler.frontend.tracing.control_flow.twins import can_link, link
from bwcompiler.frontend.tracing.storages.memory_order import unknown
from bwcompiler.frontend.tracing.storages.region import Storage
from bwcompiler.frontend.tracing.storages.views import BroadcastView, moves
from bwcompiler.frontend.tracing.tracer import Tracer, handle

OWN = object()
MOST_WAYS = 256                # of links from one array to another that are followed
SAME = PREFIX + "same "       # before the name of a variable: whether it has the array that it had before the loop
_WHY_NOT = (": after the loop {0} is one of several arrays, which may have other names, too\n"
            "  hint: write to a copy made after the loop")


def add_ends(loop: Any) -> None:
    """At the end of an iteration: what the truth values are then.  Raises Again where one is missing."""
    missing = []
    loop.still = {}
    for name in _arrays(loop):
        still = loop.still[name] = _still(loop, name)
        flag = SAME + name
        if flag in loop.carried:
            before = loop.given[flag]
            loop.ends[flag] = before if still is True else False if still is None or still is False else np.logical_and(before, still)
        elif isinstance(still, Tracer) or (not loop.runs and still is False):
            missing.append(flag)
    if missing:
        _add(loop, missing)
        raise Again(loop)


def foresee(loop: Any, more: Iterable[str]) -> None:
    """The truth values of arrays that an iteration has bound anew and that will be carried: they need no attempt of their own.

    One is needed where a branch may have left the array from before; and where nothing else is possible but that there is no iteration.
    """
    found = []
    for name in more:
        entry, end = loop.entry[name], loop.ends[name]
        if name.startswith(PREFIX) or not isinstance(entry, Tracer) or not isinstance(end, Tracer) or end._chain or is_number(entry):
            continue
        if end._storage.region is loop.region and end._storage not in loop.region.arguments:
            others = [one.storage() for one in end._storage.links or ()]
            if entry._storage in others or not (others or loop.runs):
                found.append(SAME + name)
    _add(loop, [flag for flag in found if flag not in loop.carried])


def missing_flags(loop: Any, names: Iterable[str]) -> list[str]:
    """Of these variables the truth values that the loop does not carry yet; it will."""
    missing = [SAME + name for name in names if SAME + name not in loop.carried]
    _add(loop, missing)
    return missing


def flag_of(loop: Any, name: str) -> Any:
    """Whether a variable has, when an iteration begins, the array from before the loop."""
    return loop.given[SAME + name]


def _add(loop: Any, flags: Iterable[str]) -> None:
    for flag in flags:
        loop.names.add(flag, CellType(True))
        loop.add(flag, True)


def settle(loop: Any) -> dict[Storage, Tracer]:
    """After the loop: variables of one array have one.  The arrays that the last iteration made, where there surely was one."""
    made: dict[Storage, Tracer] = {}
    parts = []
    for name in _arrays(loop):
        found, entry, end = loop.names[name], loop.entry[name], loop.ends[name]
        still, flag = loop.still[name], loop.names[SAME + name] if SAME + name in loop.carried else not loop.runs
        if still is None:
            parts.append(name)
        elif still is True or flag is True:
            loop.names[name] = entry
        else:
            whole = made.setdefault(end._storage, found)
            if whole is not found and loop.runs and whole._type == found._type:
                loop.names[name] = whole
            if isinstance(flag, Tracer):
                _link_entry(found, entry, flag, name)
    for name in _arrays(loop):
        _note_others(loop, name)
    for name in loop.order():
        _settle_concrete(loop, name)
        _settle_two_shapes(loop, name)
    made = made if loop.runs else {}
    for name in parts:
        after = _after(loop, name, made)
        if after is not OWN:
            loop.names[name] = _one_of_many(loop, name) if after is None else after
    return made


def _settle_concrete(loop: Any, name: str) -> None:
    """A carried variable that an iteration binds to a concrete array is that array, and no copy, where there was an iteration."""
    end, entry, found = loop.ends[name], loop.entry[name], loop.names[name]
    if type(end) is not np.ndarray or name.startswith(PREFIX) or not isinstance(found, Tracer):
        return
    if loop.runs:
        loop.names[name] = end
        return
    found._chain = shown(end)._chain
    if isinstance(entry, np.ndarray):
        note_shown(entry)
    elif isinstance(entry, Tracer):
        share(found, origins(entry), name, _WHY_NOT.format(name), _site(loop))


def _settle_two_shapes(loop: Any, name: str) -> None:
    """A carried number or array may still be the array from before the loop: a write to that is refused, as the result has a copy."""
    entry, found = loop.entry[name], loop.names[name]
    if type(entry) is type(found) is TwoShapes and isinstance(entry.array, Tracer) and isinstance(found.array, Tracer):
        share(found.array, origins(entry.array), name, _WHY_NOT.format(name), _site(loop))


def _link_entry(found: Tracer, entry: Any, flag: Tracer, name: str) -> None:
    """The result of a loop is the array from before it where the flag holds."""
    if isinstance(entry, Tracer) and can_link(found, entry):
        link(found, entry, flag)
    elif isinstance(entry, np.ndarray) and entry.dtype == found.dtype:
        found._chain = shown(entry)._chain
    elif entry.dtype == found.dtype:
        _read_only(found, name)


def _note_others(loop: Any, name: str) -> None:
    """An array that a branch of the last iteration may have taken from another variable is not read once that one is written to."""
    if loop.still[name] is None or loop.still[name] is True:
        return
    end = loop.ends[name]
    taken = [one for one in possible(end._storage) if one is not end._storage]
    after = [loop.names[other]._storage for other in _arrays(loop) if other != name and isinstance(loop.names[other], Tracer)
             and loop.ends[other]._storage in taken and loop.ends[other]._storage.region is loop.region
             and loop.ends[other]._storage not in loop.region.arguments]
    entry = loop.entry[name]
    after += [one for one in _from_outside(loop, taken) if not isinstance(entry, Tracer) or one is not entry._storage]
    if after and not loop.names[name]._chain:
        share(loop.names[name], after, name, _WHY_NOT.format(name), _site(loop))


def _may_be_from_before(loop: Any, name: str) -> bool:
    """Whether a branch may have given a variable an array from before the iteration: not by what another variable holds at its end."""
    held = [loop.ends[other]._storage for other in _arrays(loop) if other != name]
    found = [loop.ends[name]._storage]
    for one in found:
        others = [link.storage() for link in one.links or ()]
        found += [other for other in others if other is not None and other not in found and other not in held]
    return any(one in loop.region.arguments or not loop.region.encloses(one.region) for one in found)


def _site(loop: Any) -> Any:
    """Of a loop that can be unrolled, where names are known."""
    return loop.site if isinstance(loop.count, int) else None


def _from_outside(loop: Any, storages: Iterable[Storage]) -> list[Storage]:
    """Those of arrays that the loop reads, and does not carry."""
    return [one for one in storages if not loop.region.encloses(one.region)]


def note_results(loop: Any) -> None:
    """An array that the last iteration has bound, and that a variable may have, too, as data decide: neither is read once the other one is
    written to."""
    names = [*_arrays(loop), *[one.name for one in loop.results if one.storage is not None]]
    held = {name: loop.ends[name]._storage for name in names if isinstance(loop.names[name], Tracer)}
    results = [result for result in loop.results if result.storage is not None and isinstance(loop.names[result.name], Tracer)]
    for name in _arrays(loop):                     # what is a copy of one of these
        sources = [one for origin in origins(loop.ends[name])[1:] for one in possible(origin)]
        bound = [loop.names[result.name]._storage for result in results if result.storage in sources]
        if bound and isinstance(loop.names[name], Tracer):
            share(loop.names[name], [*origins(loop.names[name])[1:], *bound], name, _WHY_NOT.format(name), _site(loop))
    for result in results:
        taken = possible(result.storage)[1:]
        others = [name for name, storage in held.items() if storage in taken and storage.region is loop.region
                  and storage not in loop.region.arguments]
        for other in others:
            if not loop.names[other]._chain:
                share(loop.names[other], [loop.names[result.name]._storage], other, _WHY_NOT.format(other), _site(loop))
        after = [*[loop.names[other]._storage for other in others], *_from_outside(loop, taken)]
        if after and not loop.names[result.name]._chain:
            share(loop.names[result.name], after, result.name, _WHY_NOT.format(result.name), _site(loop))


def _one_of_many(loop: Any, name: str) -> Tracer:
    """After the loop: an array of which nobody knows which one it is, read-only and to be read until one of them is written to."""
    found: Tracer = loop.names[name]
    found._storage.layout = unknown("what a loop carries")
    sources = [one for origin in origins(loop.ends[name]) for one in possible(origin)]
    after = [loop.names[other]._storage for other in _arrays(loop) if isinstance(loop.names[other], Tracer) and other != name
             and (loop.ends[other]._storage in sources or loop.given[other]._storage in sources)]
    entry = loop.entry[name]
    if isinstance(entry, Tracer):                  # which it still is, perhaps
        after += possible(entry._storage)
    share(found, [*sources, *after], name, _WHY_NOT.format(name), _site(loop))
    return found


def _read_only(found: Tracer, name: str) -> Tracer:
    found._storage.layout = unknown("what a loop carries")
    found._chain = (BroadcastView(found.shape, _WHY_NOT.format(name)),)
    return found


def _arrays(loop: Any) -> list[str]:
    """The variables that hold an array and are carried."""
    exchanged = {} if loop.exchange is None else loop.exchange.after
    return [name for name in loop.order() if not name.startswith(PREFIX) and name not in exchanged and not is_number(loop.entry[name])
            and not isinstance(loop.entry[name], tuple | list | dict) and isinstance(loop.ends[name], Tracer)
            and tree.structure(loop.entry[name]) == tree.structure(0)]


def _still(loop: Any, name: str) -> Any:
    """Where a variable has at the end of an iteration the array that it had at its beginning: True, False or traced; None: unknown."""
    end, given = loop.ends[name], loop.given[name]
    if same(end, given):
        return True
    if end._chain or not loop.region.encloses(end._storage.region):
        return None
    entry = loop.entry[name]
    before = possible(entry._storage) if isinstance(entry, Tracer) else None
    return _where(end._storage, given._storage, loop, before, [], iter(range(MOST_WAYS)))


def _where(storage: Storage, target: Storage, loop: Any, before: Sequence[Storage] | None, seen: list[Storage], most: Iterator[int]) -> Any:
    """Where one is the other, over all ways that links lead; None where that is not known, or there are too many ways.

    before  the arrays that the target may be in the first iteration: others from outside of the loop are none that it was then.  None:
            not known.
    """
    if storage is target:
        return True
    if not loop.region.encloses(storage.region):
        return None if before is None or storage in before else False
    if storage.region is not loop.region or storage in loop.region.arguments or next(most, None) is None:
        return None
    found: Any = False
    for one in storage.links or ():
        other = one.storage()
        if other is None or other in seen:
            continue
        further = None if one.chain or one.twin else _where(other, target, loop, before, [*seen, storage], most)
        if further is None:
            return None
        if further is not False:
            found = np.logical_or(found, np.logical_and(one.where, further))
    return found


def _after(loop: Any, name: str, made: dict[Storage, Tracer]) -> Any:
    """The array that a variable has after the last iteration: one from before the loop, part of one that was made, OWN; None: unknown."""
    left, steps = loop.count if isinstance(loop.count, int) and loop.runs else 0, 0
    visited: dict[str, int] = {}
    while left:
        end = loop.ends[name]
        if any(moves(step) for step in end._chain):
            return None
        if end._storage.region is not loop.region:
            return end
        if end._storage not in loop.region.arguments:
            whole = made.get(end._storage) if steps == 0 else None
            if whole is None:
                return None if end._chain or _may_be_from_before(loop, name) else OWN
            return handle(whole._storage, end._chain, end._type)
        source = next((other for other in _arrays(loop) if same(end, loop.given[other])), None)
        if source is None:
            return None
        left, steps, name = left - 1, steps + 1, source
        if name in visited:
            left %= steps - visited[name]
        visited[name] = steps
        if not left:
            return loop.entry[name]
    return None
