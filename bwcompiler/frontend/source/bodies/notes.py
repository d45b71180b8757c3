"""Texts of `explain` about captured loops."""

from __future__ import annotations

from bwcompiler.frontend.source.bodies.capture import Traceable
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.tracing.control_flow.bodies import Traced
from bwcompiler.frontend.tracing.policy import Policy


def note_captured(traceable: Traceable, traced: Traced, what: str, policy: Policy) -> None:
    """Note what became of a loop: it carries variables, and assigns to arrays."""
    carried = [name for name in traceable.order() if not name.startswith(PREFIX)]
    rows = {one._storage for one in traceable.rows}
    assigned = [storage for number in traced.result.assigned if (storage := traced.result.lifted[number]._storage) not in rows]
    arrays = [traceable.names.name_of(storage) or "an array" for storage in assigned]
    lists = len([growth for growth, elements in traceable.elements if elements])
    parts = [f"carries {', '.join(carried)}"] if carried else []
    parts += [f"assigns to {', '.join(dict.fromkeys(arrays))}"] if arrays else []
    parts += [f"appends to {lists} list{'s' if lists > 1 else ''}"] if lists else []
    policy.captured[traceable.site] = f"{what}{': it ' if parts else ''}{', '.join(parts)}"
