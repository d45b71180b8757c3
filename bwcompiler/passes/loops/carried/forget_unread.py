"""Writes of a loop to a carried array that nothing reads afterwards are removed.

    loop i: v = c[i + 1];  c = c with 0 at i + 1;  c = c with f(v) added at i         ->         the same without the zeros

(i goes down.)  This is the cotangent of `y[i + 1] = g(y[i])`: the overwritten element has no cotangent, and no iteration on the way back
reads it.  The rest of an iteration then reads and adds in different rows, which is one kernel.  Parts read later are distinguished by
bounds of affine positions (`passes/loops/dependence.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Index, Section
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value
from bwcompiler.passes.loops.dependence import are_apart, are_apart_later
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten

Users = Mapping[Value, Sequence[Value]]


def forget_unread(graph: Graph) -> Rewritten:
    """The graph whose loops leave out such updates; the same graph where there are none."""
    if not any(value.op.regions for value in graph.body):
        return Rewritten(graph, {})
    users = _users(graph)
    regions = iter([value for value in graph.body if value.op.regions])

    def replacement(copy: Value) -> list[Value] | None:
        value = next(regions)
        return _sparing(copy, _read_behind(value, users, graph.outputs)) if copy.op is ops.loop else None

    return with_regions_replaced(graph, forget_unread, replacement)


def _users(graph: Graph) -> dict[Value, list[Value]]:
    users: dict[Value, list[Value]] = {}
    for value in graph.body:
        for operand in dict.fromkeys(value.operands):
            users.setdefault(operand, []).append(value)
    return users


def _read_behind(loop: Value, users: Users, outputs: Sequence[Value]) -> dict[int, list[Section]]:
    """Per number of a result of which parts are read, if anything, these parts."""
    found: dict[int, list[Section]] = {}
    whole = set()
    for item in users.get(loop, ()):
        number, readers = item.attrs["index"], users.get(item, ())
        if item in outputs or any(reader.op is not ops.slice for reader in readers):
            whole.add(number)
            continue
        found.setdefault(number, []).extend([section_of(reader) for reader in readers])
    return {number: found.get(number, []) for number in range(loop.attrs.get("carried", 0)) if number not in whole}


def _sparing(loop: Value, behind: Mapping[int, Sequence[Section]]) -> list[Value] | None:
    """The results of the loop without updates that nobody reads, in the current record; None where it has none."""
    body, carried = loop.attrs["body"], loop.attrs["carried"]
    if body.index is None or not any(value.op in ops.UPDATES for value in body.body):
        return None
    users = _users(body)
    unread = [update for number, parts in behind.items() for update in _unread(body, number, parts, users, loop.attrs["step"])]
    if not unread:
        return None
    dropped, mapping, values = set(unread), dict[Value, Value](), []
    for value in body.body:
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if value in dropped:
            mapping[value] = copy.operands[0]
            continue
        if copy is not value:
            mapping[value] = copy
        values.append(copy)
    outputs = [mapping.get(output, output) for output in body.outputs]
    made = ops.loop(*loop.operands, **{**loop.attrs, "body": body.replace(body=live_values(values, outputs), outputs=outputs)})
    made.name = loop.name
    return [ops.item(made, index=number) for number in range(carried)]


def _unread(body: Graph, number: int, behind: Sequence[Section], users: Users, step: int) -> list[Value]:
    """The updates of what is carried under a number whose parts are read neither later in an iteration, nor in later ones, nor behind
    the loop."""
    versions = _versions(body, number)
    if len(versions) < 2:
        return []
    reads: list[list[Section]] = []                            # per version
    for version, following in zip(versions, [*versions[1:], None], strict=True):
        others = [user for user in users.get(version, ()) if user is not following]
        if any(user.op is not ops.slice for user in others) or body.outputs.count(version) != (following is None):
            return []
        if following is not None and following.operands.count(version) != 1:
            return []
        reads.append([section_of(user) for user in others])
        if following is not None and following.op is ops.slice_add:
            reads[-1].append(section_of(following))
    assert body.index is not None
    return [update for place, update in enumerate(versions[1:], 1)
            if _is_unread(section_of(update), _flat(reads[place:]), _flat(reads), behind, body.index, step)]


def _versions(body: Graph, number: int) -> list[Value]:
    """From what is carried to what is handed on; none where something else than updates is on the way."""
    entry, value = body.inputs[number], body.outputs[number]
    versions = [value]
    while value is not entry:
        if value.op not in ops.UPDATES:
            return []
        value = value.operands[0]
        versions.append(value)
    return versions[::-1]


def _flat(parts: Iterable[Sequence[Section]]) -> list[Section]:
    return [part for some in parts for part in some]


def _is_unread(written: Section, now: Sequence[Section], later: Sequence[Section], behind: Sequence[Section], index: Index,
               step: int) -> bool:
    return (all(are_apart(written, read, frozenset(), frozenset()) for read in now)
            and all(are_apart_later(written, read, index, step, frozenset()) for read in later)
            and all(are_apart(written, read, frozenset([index]), frozenset()) for read in behind))
