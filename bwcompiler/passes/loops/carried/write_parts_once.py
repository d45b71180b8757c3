"""The updates of an array in an iteration become one for each part, those of elements last.

    B = B with 0 at e1;  B = B with u added at s;  B = B with 0 at e2;  B = B with v added at s
                              ->
    B = B with (B[s] + u) + v at s;  B = B with 0 at e1;  B = B with 0 at e2

Parts that are apart may be written in any order.  What is written along the same elements is then one loop, and what is added to a part
several times is loaded and stored once.  All elements get the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Section, element_count
from bwcompiler.ir.op import Value
from bwcompiler.passes.loops.array_parts import versions_of


def written_once(entry: Value, last: Value, readers: Mapping[Value, Sequence[Value | None]]) -> Value:
    """The last version of an array, made from the first one by other updates, in the current record.

    The same version where the order of updates matters, or something else reads a version in between.  readers: of all versions.
    """
    versions = versions_of(last, entry)
    if versions is None or len(versions) < 3 or any(version.op not in ops.UPDATES for version in versions[1:]):
        return last
    if any(len(readers.get(version, ())) != 1 for version in versions[1:-1]):
        return last
    parts: dict[Section, list[Value]] = {}
    for version in versions[1:]:
        section = section_of(version)
        if any(not section.is_apart(other) for other in parts if other != section):
            return last
        parts.setdefault(section, []).append(version)
    found = entry
    for section in sorted(parts, key=lambda section: element_count(section.sizes) == 1):
        found = _written(found, entry, section, parts[section])
    return found


def _written(array: Value, entry: Value, section: Section, updates: Sequence[Value]) -> Value:
    """An array with what several updates leave in a part of it; entry: as it was before all updates."""
    places = {"starts": section.starts, "steps": section.steps}
    if len(updates) == 1:
        return updates[0].op(array, updates[0].operands[1], **places)
    part = None
    for update in updates:
        value = update.operands[1]
        if update.op is ops.slice_add:
            value = ops.add(ops.slice(entry, sizes=section.sizes, **places) if part is None else part, value)
        part = value
    assert part is not None
    return ops.slice_update(array, part, **places)
