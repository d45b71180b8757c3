"""The public functions, composed of the compiler's stages.  What users hold, and what that is made of:

    JitFunction (functions.py)        what `jit` and all transforms return: a Specialisation per kind of arguments
    Program (program.py)              what `compile` returns: a Runner per kind of request (which gradients, seeds, buffers)
      BoundGraph (bound_graph.py)     a compiled graph with the arrays that it captures
        Compiled (executables.py)     its stages and its machine code, shared by equal graphs
          Executable, CallForm        loaded code, and one way of calling it (runtime/executable.py)

Transforms (`transforms.py`, `forward.py`, `jacobians.py`, `vmap.py` ...) are functions of handles, in terms of `transformed.py`.
"""
