"""`python -m negscale` is the command `negscale`."""

import sys

from negscale._command import main

if __name__ == "__main__":
    sys.exit(main())
