"""What is done to the text of functions: `lookup` finds the syntax tree of one, `rewriting` takes its loops, branches and calls apart,
with jumps taken out (`jumps`), assignments taken out of tests (`named`), and with what is known of its variables (`liveness`);
`expressions` tells what expressions may do.
"""
