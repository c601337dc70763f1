"""Exit codes of all commands, and their help text."""

from __future__ import annotations

import argparse
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

OK, FINDINGS, USAGE_ERROR, ONLY_REJECTED = 0, 1, 2, 3

EXIT_CODES = """\
exit codes:
  0  the text was read, with or without calls
  1  setup: the test call failed; doctor: there are warnings
  2  usage error: an invalid option, file, tools array or dialect
  3  the text contains calls, but all of them were rejected
"""
