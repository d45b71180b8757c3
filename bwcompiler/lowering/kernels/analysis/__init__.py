"""What is known of loops before they are written: their bodies (`loop_bodies.py`), which of them are therefore vectors, and how wide ones
(`vector_loops.py`), and which set memory to zero (`zeros.py`)."""
