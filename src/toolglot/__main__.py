"""Run the ``toolglot`` command with ``python -m toolglot``."""

from __future__ import annotations

import sys

from toolglot.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
