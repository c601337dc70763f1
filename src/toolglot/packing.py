"""Bodies that were packed to be smaller."""

from __future__ import annotations

import zlib
from typing import Final

PACKED: Final = ("gzip", "x-gzip", "deflate")
GZIP_START: Final = 0x1F
ZLIB_METHOD: Final = 8


class Unpacking:
    """A body that is unpacked as it comes."""

    __slots__ = ("_member",)

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None

    @property
    def over(self) -> bool:
        return self._member is None or self._member.eof

    def feed(self, packed: bytes, limit: int = 0) -> bytes:
        """What a piece holds. Raises ``zlib.error`` if it cannot be unpacked, or if that is more than a limit."""
        unpacked = b""
        while packed:
            if self._member is None or self._member.eof:
                # "deflate" should be zlib's format, but is sent bare as well
                bare = packed[0] != GZIP_START and packed[0] & 15 != ZLIB_METHOD
                self._member = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)
            unpacked += self._member.decompress(packed, limit and limit + 1 - len(unpacked))
            if limit and len(unpacked) > limit:
                raise zlib.error("too large")
            packed = self._member.unused_data
        return unpacked
