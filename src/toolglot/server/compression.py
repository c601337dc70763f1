"""Decompression of gzip and deflate bodies, in steps of a limited size.

A few hundred compressed bytes can become a megabyte, so the output is limited, not the input: ``take`` returns at most
so many bytes and leaves the rest compressed.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import Final

ENCODINGS: Final = ("gzip", "x-gzip", "deflate")
GZIP_START: Final = 0x1F
ZLIB_METHOD: Final = 8
BLOCK_SIZE: Final = 1 << 14
"""Bytes decompressed at once: the rest of the block is copied whenever a gzip member or a step ends."""
MAX_MEMBERS: Final = 1000
"""Gzip members in one chunk; each takes time, even if it is empty."""


class Decompressor:
    """Decompresses a body chunk by chunk. ``has_more``: ``take`` has bytes left of what was added."""

    __slots__ = ("_blocks", "_member", "_members", "has_more")

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None
        self._members = 0
        self._blocks: deque[bytes] = deque()
        self.has_more = False

    @property
    def is_complete(self) -> bool:
        return not self.has_more and (self._member is None or self._member.eof)

    def add(self, compressed: bytes) -> None:
        """Add a chunk, which is decompressed by ``take``."""
        self._members = 0
        self._blocks.extend(compressed[at : at + BLOCK_SIZE] for at in range(0, len(compressed), BLOCK_SIZE))
        self.has_more = self.has_more or bool(compressed)

    def take(self, most: int) -> bytes:
        """The next ``most`` bytes, fewer if the chunks that were added have no more. Raises: zlib.error if these are
        malformed."""
        taken: list[bytes] = []
        blocks, left = self._blocks, most
        while self.has_more and left:
            block = blocks.popleft() if blocks else b""
            member = self._member if self._member is not None and not self._member.eof else self._begin_member(block)
            piece = member.decompress(block, left)
            taken.append(piece)
            left -= len(piece)
            if rest := member.unconsumed_tail or member.unused_data:
                blocks.appendleft(rest)
            # a member that filled the step may have more output of the same input
            self.has_more = bool(blocks) or not (left or member.eof)
        return b"".join(taken)

    def feed(self, compressed: bytes, limit: int) -> bytes:
        """Decompress a chunk. Raises: zlib.error if it is malformed, or exceeds ``limit`` bytes."""
        self.add(compressed)
        taken = self.take(limit + 1)
        if len(taken) > limit:
            raise zlib.error("too large")
        return taken

    def _begin_member(self, block: bytes) -> zlib._Decompress:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise zlib.error("too many members")
        # "deflate" should be the zlib format, but some send raw deflate
        raw = block[0] != GZIP_START and block[0] & 15 != ZLIB_METHOD
        self._member = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
        return self._member
