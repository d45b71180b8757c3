"""From a graph to LLVM text: the one pipeline, its options, and the native libraries it may call."""
