"""Python objects that depend on data: the elements of a list (`gaps`), the kind of thing that a variable holds (`choices`)."""
