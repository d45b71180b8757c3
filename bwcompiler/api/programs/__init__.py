"""The objects that users hold and call, and their parts:

    JitFunction (functions.py)             what `jit` and all transforms return
      Specialisation (specialisation.py)   the function compiled for one kind of arguments (`arguments/`)
      Variants (variants.py)               the traces of a function, and which of them holds for a call; also for the programs of `vjp`
    Program (program.py)                   what `compile` returns: a function traced once (traced_program.py)
      Runners (runners.py)                 its compiled graphs, one per kind of request (`backward/`: which gradients, seeds, buffers)
      Pullbacks (pullbacks.py)             its derivative in two halves, for `vjp`
    BoundGraph (bound_graph.py)            a compiled graph with the arrays that it captures: what all of these run
      Compiled (executables.py)            its stages and its machine code, shared by equal graphs
        Executable, CallForm               loaded code, and one way of calling it (runtime/executable.py)

Begin with `functions.py`: a call goes to native code, or traces and compiles.  `kept.py` caches transformed functions.
"""
