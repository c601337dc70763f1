"""Bodies that were packed to be smaller."""

from __future__ import annotations

import zlib
from typing import Final

PACKED: Final = ("gzip", "x-gzip", "deflate")
GZIP_START: Final = 0x1F
ZLIB_METHOD: Final = 8
BLOCK: Final = 1 << 14
"""How much is unpacked at once: what follows a member is copied whenever one ends."""
MOST_MEMBERS: Final = 1000
"""Members of one piece; each of them takes time, even if it is empty."""


class Decompressor:
    """A body that is unpacked as it comes."""

    __slots__ = ("_member",)

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None

    @property
    def over(self) -> bool:
        return self._member is None or self._member.eof

    def feed(self, packed: bytes, limit: int = 0) -> bytes:
        """What a piece holds. Raises ``zlib.error`` if it cannot be unpacked, or if that is more than a limit."""
        unpacked: list[bytes] = []
        size = members = 0
        for at in range(0, len(packed), BLOCK):
            block = packed[at : at + BLOCK]
            while block:
                if self._member is None or self._member.eof:
                    members += 1
                    if members > MOST_MEMBERS:
                        raise zlib.error("too many members")
                    # "deflate" should be zlib's format, but is sent bare as well
                    bare = block[0] != GZIP_START and block[0] & 15 != ZLIB_METHOD
                    self._member = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)
                unpacked.append(self._member.decompress(block, limit and limit + 1 - size))
                size += len(unpacked[-1])
                if limit and size > limit:
                    raise zlib.error("too large")
                block = self._member.unused_data
        return b"".join(unpacked)
