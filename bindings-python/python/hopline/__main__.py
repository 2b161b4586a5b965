"""The command `hopline`; `hopline --help` lists what it can do."""

import sys

from ._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
