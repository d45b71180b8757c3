"""Fused graph -> loop IR -> LLVM text."""
