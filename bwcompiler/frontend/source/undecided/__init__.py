"""What data decides while the program runs: which elements a list has (`gaps`), which kind of thing a variable holds (`choices`)."""
