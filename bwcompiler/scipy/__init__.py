"""Functions named as in scipy that work on traced and on plain arrays."""

from bwcompiler.scipy import special

__all__ = ["special"]
