"""Forms of loops with much text of their own, as functions of the object that writes a kernel: loops that reduce into lanes
(`strips.py`), that search (`searches.py`), that keep sums in registers (`kept_sums.py`), and matrix products (`product_calls.py`)."""
