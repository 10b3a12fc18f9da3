"""python -m millpond: the same as the command."""

import sys

from millpond._command import main

sys.exit(main())
