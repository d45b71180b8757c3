"""Where values come from: the user's line (`source.py`), and the user's names of values (`user_names.py`), for which files are parsed."""
