"""Functions that bind variables of the functions around them (`nonlocal`): these are variables of the bodies that call them."""

from __future__ import annotations

import types
from typing import Any

from bwcompiler.frontend.source.effects.places import Place, note_place, own_variables
from bwcompiler.frontend.source.syntax.functions import form as form_of


def defined(function: Any) -> None:
    """A function was defined that may bind variables of functions around it."""
    if isinstance(function, types.FunctionType):
        own_variables(function, form_of(function).binds)


def bind(function: types.FunctionType) -> None:
    """A function is called in a body: what it binds of the functions around it are variables of the body."""
    names = form_of(function).binds
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)) if names else {}
    for name in names:
        note_place(Place(cells[name], "variable", name))
