"""An index of marks matches like one mark with all the spellings, at every position and for every prefix."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolglot.dialects.patterns import MORE, Mark, MarkIndex

NAMES = st.lists(st.text("ab_1", min_size=1, max_size=6), min_size=1, max_size=12, unique=True)
FORMS = st.lists(st.sampled_from(["<{}>", "<{} />", "</ {}>", "{} (", "[{}"]), min_size=1, max_size=4, unique=True)
TEXTS = st.text("ab_1<>/ ([", max_size=14)


@given(NAMES, FORMS, st.lists(TEXTS, max_size=20), st.data())
def test_an_index_answers_like_one_mark(
    names: list[str], forms: list[str], texts: list[str], data: st.DataObject
) -> None:
    spelled = [form.format(name) for name in names for form in forms]
    index, mark = MarkIndex(*spelled), Mark(*spelled)
    near = [spelling + data.draw(TEXTS) for spelling in spelled]
    for text in (*texts, *near, *(spelling[:-1] for spelling in spelled)):
        for final in (False, True):
            expected, found = mark.at(text, 0, final), index.at(text, 0, final)
            assert (found is MORE) == (expected is MORE), (text, final)
            if expected is not MORE and found is not MORE:
                ends = {
                    answer.end()
                    for answer in (Mark(one).at(text, 0, True) for one in spelled)
                    if answer and answer is not MORE
                }
                assert (found is None) == (expected is None), (text, final)
                assert found is None or found.end() in ends, (text, final)


@given(st.integers(1, 300))
def test_many_looks_change_nothing(looks: int) -> None:
    index = MarkIndex(*(f"<tool_{number}{end}" for number in range(30) for end in (">", " />")))
    for _ in range(looks):
        found = index.at("<tool_12 />", 0, True)
        assert found is not None and found is not MORE and found.end() == 11
        assert index.at("<tool_1", 0, False) is MORE
        assert index.at("<tool_x>", 0, False) is None
