"""Graph to graph passes, one per file; their order, with the reasons, is in `compiler/pipeline.py`.

`adjoints` is reverse mode of what owns graphs (loops, branches, checkpoints), `fusion` decides what is one loop tree.
"""
