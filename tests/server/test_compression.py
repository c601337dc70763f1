"""Compressed bodies: in members, in blocks, and bombs of empty members."""

from __future__ import annotations

import gzip
import random
import time
import zlib
from itertools import pairwise

import pytest

from toolglot.core.errors import RequestError
from toolglot.server.compression import BLOCK_SIZE, MAX_MEMBERS, Decompressor
from toolglot.server.http_request import decompress

EMPTY = gzip.compress(b"", mtime=0)
NOISE = random.Random(1).randbytes(3 * BLOCK_SIZE + 7)


@pytest.mark.parametrize("members", [1, 2, 50, MAX_MEMBERS])
def test_members_may_end_anywhere_in_a_block(members: int) -> None:
    cuts = [len(NOISE) * at // members for at in range(members + 1)]
    packed = b"".join(gzip.compress(NOISE[a:b], mtime=0) for a, b in pairwise(cuts))
    assert decompress(packed, "gzip", len(NOISE)) == NOISE
    with pytest.raises(RequestError):
        decompress(packed, "gzip", len(NOISE) - 1)
    with pytest.raises(RequestError):
        decompress(packed[:-1], "gzip", len(NOISE))


def test_a_row_of_empty_members_takes_no_time() -> None:
    packed = EMPTY * 200_000 + gzip.compress(b"{}", mtime=0)
    begun = time.process_time()
    with pytest.raises(zlib.error):
        Decompressor().feed(packed, 1 << 20)
    with pytest.raises(RequestError):
        decompress(packed, "gzip", 1 << 20)
    assert time.process_time() - begun < 0.5


def test_members_that_come_one_by_one_are_not_counted_together() -> None:
    unpacking = Decompressor()
    events = [unpacking.feed(gzip.compress(b"x", mtime=0), 1) for _ in range(MAX_MEMBERS + 5)]
    assert b"".join(events) == b"x" * len(events) and unpacking.is_complete
