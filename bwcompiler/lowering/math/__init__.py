"""The elementary and special functions as LLVM text, accurate to a few ulp, written over vector types."""
