"""What one stage hands to the next: passes a fused program (`fusion.py`) and its memory plan (`memory.py`) to lowering, and lowering a
program to the runtime, which knows its statuses (`program_interface.py`) and how it is called (`call_signature.py`).
"""
