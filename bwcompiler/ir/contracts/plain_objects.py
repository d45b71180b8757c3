"""Objects that consist of their attributes, such as dataclasses: what code that looks at their memory may rely on."""

from __future__ import annotations

from collections.abc import Iterable
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

HEAP_TYPE = 1 << 9            # a flag of classes that statements make, and of some that C code makes


def class_attribute(cls: type, name: str) -> Any:
    """What the class or a base has under that name, as it is stored there; None if there is nothing."""
    for base in cls.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return None


def in_slot(cls: type, name: str) -> bool:
    return type(class_attribute(cls, name)) is MemberDescriptorType


def has_dict(cls: type) -> bool:
    """Whether its objects have a dict of attributes."""
    return class_attribute(cls, "__dict__") is not None


def is_plain_class(cls: type, names: Iterable[str]) -> bool:
    """Whether reading these attributes of its objects runs no code of the user's, and only finds what stands in a slot or in their dict."""
    return (all(base is object or base.__flags__ & HEAP_TYPE for base in cls.__mro__)
            and class_attribute(cls, "__getattribute__") is object.__dict__["__getattribute__"]
            and class_attribute(cls, "__getattr__") is None
            and isinstance(class_attribute(cls, "__dict__"), GetSetDescriptorType | None)
            and all(in_slot(cls, name) or not _is_data_descriptor(class_attribute(cls, name)) for name in names))


def _is_data_descriptor(found: Any) -> bool:
    return hasattr(type(found), "__set__") or hasattr(type(found), "__delete__")
