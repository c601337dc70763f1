"""Decompression of gzip and deflate bodies."""

from __future__ import annotations

import zlib
from typing import Final

ENCODINGS: Final = ("gzip", "x-gzip", "deflate")
GZIP_START: Final = 0x1F
ZLIB_METHOD: Final = 8
BLOCK_SIZE: Final = 1 << 14
"""Bytes decompressed at once: the rest of the block is copied whenever a gzip member ends."""
MAX_MEMBERS: Final = 1000
"""Gzip members in one chunk; each takes time, even if it is empty."""


class Decompressor:
    """Decompresses a body chunk by chunk."""

    __slots__ = ("_member",)

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None

    @property
    def is_complete(self) -> bool:
        return self._member is None or self._member.eof

    def feed(self, compressed: bytes, limit: int = 0) -> bytes:
        """Decompress a chunk. Raises: zlib.error if it is malformed, or exceeds ``limit`` bytes (0: no limit)."""
        chunks: list[bytes] = []
        size = members = 0
        for at in range(0, len(compressed), BLOCK_SIZE):
            block = compressed[at : at + BLOCK_SIZE]
            while block:
                if self._member is None or self._member.eof:
                    members += 1
                    if members > MAX_MEMBERS:
                        raise zlib.error("too many members")
                    # "deflate" should be the zlib format, but some send raw deflate
                    raw = block[0] != GZIP_START and block[0] & 15 != ZLIB_METHOD
                    self._member = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
                chunks.append(self._member.decompress(block, limit and limit + 1 - size))
                size += len(chunks[-1])
                if limit and size > limit:
                    raise zlib.error("too large")
                block = self._member.unused_data
        return b"".join(chunks)
