"""Variables and attributes that are bound or not, depending on data: only one side of a branch binds them, or a loop that may have no
iterations.

Such a variable is a choice (`choices.py`) with "unbound" as one option.  Reading it records a check, which raises Python's exception if the
variable is unbound, and gives the rest of the choice.
"""

from __future__ import annotations

from typing import Any

from bwcompiler import ops, tree
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.source.effects.checks import check_once
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.source.undecided.kinds.choices import (
    VALUE,
    Choice,
    Options,
    becomes_choice,
    is_known,
    is_unsure,
    joined,
    number_in,
)
from bwcompiler.frontend.source.undecided.kinds.choices import whole as whole_of
from bwcompiler.frontend.source.variables import UNBOUND, open_policy
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.op import Value


def sure(x: Any, name: str = "") -> Any:
    """What a variable holds that is read; raises UnboundLocalError when the program runs, where that is nothing."""
    if type(x) is not Choice or not is_unsure(x):
        return x
    return _bound(x, UnboundLocalError(
        f"cannot access local variable '{name}' where it is not associated with a value" if name else
        "a variable of an enclosing function is read that has no value"))


def sure_attribute(found: Any, owner: Any, name: str) -> Any:
    """`found`, which owner.name has given; raises AttributeError when the program runs, where there is none."""
    if type(found) is not Choice or not is_unsure(found):
        return found
    return _bound(found, AttributeError(f"'{type(owner).__name__}' object has no attribute '{name}'", name=name, obj=None))


def has_attribute(owner: Any, name: str) -> Any:
    """hasattr(owner, name)."""
    found = getattr(owner, name, UNBOUND)
    if type(found) is not Choice or not is_unsure(found):
        return found is not UNBOUND
    return found.which != found.options.place(UNBOUND)


HANDLERS["has_attribute"] = has_attribute


def attributes_of(owner: Any) -> Any:
    """owner.__dict__."""
    found = owner.__dict__
    unsure = next((name for name, value in found.items() if type(value) is Choice and is_unsure(value)), None)
    if unsure is not None:
        raise TracerError(at(current_source(), f"all attributes of an object of which data say whether it has .{unsure}\n"
                                               f"  hint: set it before the branch, in __init__: self.{unsure} = 0.0"))
    return found


def _bound(x: Choice, error: Exception) -> Any:
    """The rest of a choice that may be nothing, behind a check."""
    for scope in getattr(open_policy(), "scopes", ()):
        scope.reads_unsure = True
    rest = Options([thing for thing in x.options.things if thing is not UNBOUND])
    check_once(x, lambda: x.which == x.options.place(UNBOUND), error)
    if not rest.things:
        return whole_of(x)
    return rest.things[0] if len(rest.things) == 1 and not x.has_value else joined(number_in(x, rest), x.value, rest, x.has_value)


HANDLERS["sure"] = sure


def require_value(x: Choice) -> None:
    """A choice is used as a number or array: Python raises where it is None, a string or an object."""
    if isinstance(x.which, Tracer) and x.options.things and not _is_behind_a_test(x):
        check_once(x, lambda: x.which != VALUE, TypeError(
            f"a number or array is needed here, but for these arguments there is {' or '.join(map(repr, x.options.things))}\n"
            "  hint: test it first, as in `if x is not None`"))


HANDLERS["require_value"] = require_value


def asked_for_value(x: Choice, test: Any, side: int = 1) -> Any:
    """`x is None`, or the truth of x, which is noted: in that side of a branch by it x is not None."""
    policy = open_policy()
    if policy is not None and isinstance(test, Tracer):
        policy.asked.append((x, value_of(test), side))
    return test


HANDLERS["asked_for_value"] = asked_for_value


def _is_behind_a_test(x: Choice) -> bool:
    """Whether a branch around has asked whether there is a value."""
    policy = open_policy()
    assert policy is not None
    return any(_side_of(asked, scope.test, scope.side) == side for of, asked, side in policy.asked if of is x for scope in policy.scopes
               if scope.test is not None)


def narrowed(x: Any) -> Any:
    """What x is in a branch whose test says that it is not None: its number or array; likewise the parts of a tuple."""
    if isinstance(x, tuple):
        parts = [narrowed(part) for part in x]
        is_same = all(part is one for part, one in zip(parts, x, strict=True))
        return x if is_same else type(x)(*parts) if hasattr(type(x), "_fields") else tuple(parts)
    return whole_of(x) if type(x) is Choice and x.has_value and _is_behind_a_test(x) else x


def _side_of(asked: Value, test: Value, side: int) -> int | None:
    """Which side of a branch by `asked` one by `test` is, which is the same or not that."""
    while test.op is ops.invert:
        test, side = test.operands[0], 1 - side
    return side if test is asked else None


def is_of_one_iteration(loop: Any, name: str) -> bool:
    """Whether a variable has no value before a loop, is not used after it, and was not read in an iteration without having been bound.

    Its text may say otherwise, where a loop inside binds it that has no iterations, as far as the text shows.
    """
    return bool(loop.entry[name] is UNBOUND and name not in (*loop.variables.results, *loop.carried) and not name.startswith(PREFIX)
                and not loop.names.is_place(name) and not loop.scope.reads_unsure)


def look_for_unsure(loop: Any, nothing_like: Any) -> set[str]:
    """Variables that a loop binds, perhaps not in its last iteration, or perhaps there is none: carried from now on."""
    found = set()
    for name in loop.variables.results:
        start, end = loop.entry[name], loop.ends[name]
        if start is not UNBOUND or end is UNBOUND or name in loop.variables.carried or name.startswith(PREFIX) or loop.names.is_place(name):
            continue
        has_value = type(end) is Choice or (not is_known(end) and bool(tree.leaves(end)) and not isinstance(end, list | dict))
        is_asked = (type(end) is Choice and is_unsure(end)) or (not loop.runs and has_value)
        if is_asked and becomes_choice(loop, name, start, end, nothing_like):
            found.add(name)
    if found:
        loop.variables = loop.variables._replace(carried=(*loop.variables.carried, *sorted(found)))
    return found
