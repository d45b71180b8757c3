"""`python -m bwcompiler` is `bwc`."""

import sys

from bwcompiler.cli import main

if __name__ == "__main__":
    sys.exit(main())
