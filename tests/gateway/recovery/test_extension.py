"""Arguments that continue what was sent."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from support.rows import in_one_test

from toolglot.gateway.recovery.extension import extend_arguments

WHOLE: dict[str, Any] = {
    "path": 'a"b\\n\n',
    "n": 12,
    "o": {"x": [1, 2.5, True]},
    "content": "h\u00e9llo\u2028 <x> \U0001f600",
    "z": None,
    "e": "",
}


@in_one_test("seed", range(20))
def test_every_beginning_is_continued_or_refused(seed: int) -> None:
    random = Random(seed)
    keys = list(WHOLE)
    random.shuffle(keys)
    corrected = json.dumps({key: WHOLE[key] for key in keys}, ensure_ascii=False, separators=(",", ":"))
    sent = json.dumps(WHOLE, ensure_ascii=False, separators=(",", ":"))
    for end in range(len(sent) + 1):
        rest = extend_arguments(sent[:end], corrected)
        assert rest is not None and json.loads(sent[:end] + rest) == WHOLE, sent[:end]


@in_one_test("seed", range(20))
def test_another_spelling_never_gives_another_value(seed: int) -> None:
    random = Random(seed)
    corrected = json.dumps(WHOLE, ensure_ascii=random.random() < 0.5, indent=random.choice((None, 1)))
    sent = json.dumps(WHOLE, ensure_ascii=random.random() < 0.5, indent=random.choice((None, 2)))
    for end in range(len(sent) + 1):
        rest = extend_arguments(sent[:end], corrected)
        assert rest is None or json.loads(sent[:end] + rest) == WHOLE


@in_one_test("seed", range(20))
def test_other_values_never_give_anything_but_the_corrected_call(seed: int) -> None:
    random = Random(seed)
    values = ["", "a", "ab", 'a"', "a\\", "\u00e9", "{}", 1, 12, -1, None, True, [], [1], {"a": "b"}]
    sent = json.dumps({key: random.choice(values) for key in "xyz"})
    for _ in range(30):
        meant = {key: random.choice(values) for key in "xyz"}
        for end in range(2 * len(sent) + 1):
            part = (sent + sent)[:end]
            rest = extend_arguments(part, json.dumps(meant))
            assert rest is None or json.loads(part + rest) == meant, part


@in_one_test(
    ("sent", "corrected"),
    [
        ('{"path":"b"', '{"path":"a"}'),
        ('{"path":"ab', '{"path":"a"}'),
        ('{"path":""', '{"path":"a"}'),
        ('{"path":"a"', '{"path":"ab"}'),
        ('{"path":"a","n":1', '{"n":1,"path":"ab"}'),
        ('{"path":"a"}{"path":"a"}', '{"path":"ab"}'),
        ('{"other":1', '{"path":"a"}'),
        ('{"n":1,', '{"n":1}'),
        ('{"n":1', '{"n":2}'),
        ('{"n":true', '{"n":1}'),
        ('{"n":9007199254740993,', '{"n":9007199254740992,"m":1}'),
        ('{"n":1e400,', '{"n":null,"m":1}'),
        ('{"n":1}', '{"n":1,"m":2}'),
        ("{}", '{"a":1}'),
        ('{"a":1}{"b":2', '{"a":1}'),
        ('{"a" 1', '{"a":1}'),
        ("[1", '{"a":1}'),
        ('{"a":1', "[1]"),
        ('{"a":1', '{"a":1'),
    ],
)
def test_a_contradiction_is_refused(sent: str, corrected: str) -> None:
    assert extend_arguments(sent, corrected) is None


def test_numbers_keep_their_spelling() -> None:
    assert extend_arguments('{"a":1e5', '{"a":1e5,"b":-2.50}') == ',"b":-2.50}'
