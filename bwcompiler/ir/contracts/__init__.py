"""The data that one stage passes to the next: a fused program (`fusion.py`) and its memory plan (`memory.py`) from passes to lowering;
the status codes of programs (`program_interface.py`) and their call signatures (`call_signature.py`) from lowering to the runtime.
"""
