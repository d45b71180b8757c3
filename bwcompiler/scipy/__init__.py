"""Functions named as in scipy that work on traced and on plain arrays."""
