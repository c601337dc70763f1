"""What every command shares: its exit codes, and the words for them."""

from __future__ import annotations

import argparse
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

OK, USAGE_ERROR, ONLY_REJECTED = 0, 2, 3

EXIT_CODES = """\
exit codes:
  0  the text was read (with calls or without any)
  2  wrong use: an option, the file, the tools or the dialect
  3  the text holds calls, but every one of them was rejected
"""
