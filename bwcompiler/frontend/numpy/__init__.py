"""NumPy's functions on traced arrays, one file per subject."""
