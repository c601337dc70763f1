"""Compile a regular expression without a copy in the cache of ``re``.

``re.compile`` keeps up to 512 expressions, whatever their size. Expressions made of the names in a request have caches
of their own, with bounds that fit their size; ``re`` would keep them after those have dropped them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

compile_uncached: Final[Callable[..., re.Pattern[str]]] = getattr(getattr(re, "_compiler", None), "compile", re.compile)
"""``re.compile`` without its cache. Takes the expression, and flags. On an interpreter that does not have this, it is
``re.compile`` itself: the result is the same."""
