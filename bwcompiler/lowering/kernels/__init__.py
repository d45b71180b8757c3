"""Loop trees -> LLVM text."""
