"""`python -m legato` is the command `legato`."""

import sys

from legato.cli.main import main

sys.exit(main())
