"""What a traced function gives where data decide its kind: choices and lists with gaps become values, or are decided when it has run."""

from __future__ import annotations

from typing import Any

from bwcompiler.frontend.source.effects.checks import raise_where
from bwcompiler.frontend.source.undecided.kinds.choices import VALUE, Choice, is_unsure, refuse, whole
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes
from bwcompiler.frontend.source.undecided.kinds.two_shapes import refuse as refuse_two_shapes
from bwcompiler.frontend.source.undecided.lists.gaps import Maybe, handed_out, has_gaps
from bwcompiler.frontend.source.undecided.lists.gaps import refuse as refuse_maybe
from bwcompiler.frontend.source.variables import is_bounded
from bwcompiler.frontend.tracing.boundary import results
from bwcompiler.frontend.tracing.registry import HANDLERS


def returned(result: Any) -> Any:
    """What the traced function returns, with values in the places of choices: the program raises where there is none."""
    if type(result) is Choice:
        return returned(HANDLERS["sure"](result)) if is_unsure(result) else _returned(result)
    if type(result) is TwoShapes:
        refuse_two_shapes(result, "a function of which the shape of the result must be known returns it")
    if type(result) is Maybe:
        refuse_maybe("the result holds elements")
    if type(result) in (list, tuple):
        return type(result)([returned(part) for part in result])
    return {key: returned(part) for key, part in result.items()} if type(result) is dict else result


def _returned(choice: Choice) -> Any:
    if not choice.has_value:
        refuse(choice)
    raise_where(choice.which != VALUE, TypeError(f"the function returns {choice.options} for these arguments, which a compiled function "
                                                 "cannot\n  hint: return numbers in all cases, such as np.nan"))
    return whole(choice)


def opened(result: Any) -> Any:
    """What `bw.jit` returns: choices and lists with gaps are decided when the program has run."""
    if type(result) is Choice:
        return opened(HANDLERS["sure"](result)) if is_unsure(result) else results.chosen(result.which, whole(result), result.options)
    if type(result) is TwoShapes:
        return results.one_of_two(result.is_array, result.array, result.number)
    if is_bounded(result):
        return results.container(result.made_as(), opened(result.elements()))
    if type(result) is dict:
        return {key: opened(part) for key, part in result.items()}
    if not isinstance(result, list | tuple):
        return result
    if has_gaps(result):
        return results.gapped([results.element(one.present, opened(handed_out(one.value))) if type(one) is Maybe else opened(one)
                               for one in result])
    parts = [opened(part) for part in result]
    if all(one is other for one, other in zip(parts, result, strict=True)):
        return result
    return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)


HANDLERS.update(returned_choices=returned, opened_result=opened)
