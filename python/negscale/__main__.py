"""`python -m negscale` is the command `negscale`."""

import sys

from negscale._command import main

sys.exit(main())
