"""Several kernels in one loop: which may be joined (`sweep.py`), when it pays (`profit.py`), what it gives (`kernel.py`)."""
