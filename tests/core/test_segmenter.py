"""The plain segmenter: where segments end, when they are certain, and that cutting the input changes nothing."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from legato.core.events import Boundary, Segment
from legato.core.segmenter import PlainSegmenter, Segmenter

PHRASE, CLAUSE, SENTENCE, PARAGRAPH, END = Boundary


def run(text: str, **options: float) -> list[Segment]:
    segmenter = PlainSegmenter(**options)
    return segmenter.push(text, 0.0) + segmenter.flush(0.0)


def texts(text: str, **options: float) -> list[str]:
    return [segment.text for segment in run(text, **options)]


ONE_SENTENCE = [
    "Dr. Smith met Mrs. Jones and St. Nicholas.",
    "We saw J. K. Rowling there.",
    "It was J.K. Rowling there.",
    "George W. Bush came.",
    "It costs 3.14 or 1.000,50 euros.",
    "Ping 10.0.0.1 at example.co.uk now.",
    "Open notes.txt in version 1.2.3 today.",
    "The U.S. is big.",
    "We met at 5 p.m. near the door.",
    "We met at 5 p.m. 3 of us.",
    "Fruit, e.g. Apples.",
    "Food vs. Drinks, i.e. Both.",
    "Apples etc. are fine.",
    "It took approx. 20 days.",
    "See Fig. 3 and No. 5 there.",
    "That is z.b. klein.",
    "Well... yes.",
    "Well… yes.",
    '"Stop!" he said.',
    "(Really?) he asked.",
    "你好，世界。",
    "Nothing at all",
]


@pytest.mark.parametrize("text", ONE_SENTENCE)
def test_no_split_inside(text: str) -> None:
    assert texts(text) == [text]


SPLITS = {
    "Hello there. How are you? Fine!": ["Hello there.", "How are you?", "Fine!"],
    "It is 5. Then 6.": ["It is 5.", "Then 6."],
    "So do I. Then we left.": ["So do I.", "Then we left."],
    "I. M. Pei built it. Good.": ["I. M. Pei built it.", "Good."],
    "No. I do not.": ["No.", "I do not."],
    "At 5 p.m. We left.": ["At 5 p.m.", "We left."],
    "Apples etc. Then more.": ["Apples etc.", "Then more."],
    "Wait... What?": ["Wait...", "What?"],
    'He said "stop." She ran.': ['He said "stop."', "She ran."],
    "all is small. so is this? yes! ok": ["all is small.", "so is this?", "yes!", "ok"],
    "你好。我是谁？「好！」他说": ["你好。", "我是谁？", "「好！」", "他说"],
    "什么？!是": ["什么？!", "是"],
    "你好！Hello": ["你好！", "Hello"],
    "**Bold.** Next one.": ["**Bold.**", "Next one."],
    "1. Foo bar.\n2. Baz\n 10. Qux": ["1. Foo bar.", "2. Baz", "10. Qux"],
    "Title\nText goes on": ["Title", "Text goes on"],
    "... and so? !!! Go.": ["... and so?", "!!! Go."],
    "---\n* * *\nHello\n***": ["Hello"],
    "Hello.\n\n```": ["Hello."],
    "Apples etc.\nThen": ["Apples etc.", "Then"],
    "Hello etc. \n": ["Hello etc."],
}


@pytest.mark.parametrize("text", SPLITS)
def test_split(text: str) -> None:
    assert texts(text) == SPLITS[text]


@pytest.mark.parametrize("text", ["", "  \n\t ", "...", "?!", "🙂", "— \n\n —", "。。。", "." * 1000])
def test_nothing_to_speak(text: str) -> None:
    assert run(text) == []


def test_boundaries_and_offsets() -> None:
    text = "  One.  Two\nThree\r\n\r\nFour.\n\n Five. Six"
    assert [(s.index, s.text, s.boundary) for s in run(text)] == [
        (0, "One.", SENTENCE),
        (1, "Two", SENTENCE),
        (2, "Three", PARAGRAPH),
        (3, "Four.", PARAGRAPH),
        (4, "Five.", SENTENCE),
        (5, "Six", END),
    ]
    assert [(s.start, s.end) for s in run(text)] == [(2, 6), (8, 11), (12, 17), (21, 26), (29, 34), (35, 38)]


def test_the_first_segment_may_end_at_a_clause() -> None:
    text = "Well, this is long enough by now, so speak. Then, this and that, no more"
    assert [(s.text, s.boundary) for s in run(text)] == [
        ("Well, this is long enough by now,", CLAUSE),
        ("so speak.", SENTENCE),
        ("Then, this and that, no more", END),
    ]
    assert texts("好的，我们走吧", first_min=2) == ["好的，", "我们走吧"]
    assert texts("3,14 is, well", first_min=2) == ["3,14 is,", "well"]


def test_too_long() -> None:
    assert [(s.text, s.boundary) for s in run("aaa bbb, ccc ddd eee", first_min=99, hard_max=14)] == [
        ("aaa bbb,", CLAUSE),
        ("ccc ddd eee", END),
    ]
    assert [(s.text, s.boundary) for s in run("aaa bbb ccc ddd", hard_max=9)] == [("aaa bbb", PHRASE), ("ccc ddd", END)]
    assert texts("x" * 25, hard_max=10) == ["x" * 10, "x" * 10, "x" * 5]
    assert texts("aaa bbb.", hard_max=7) == ["aaa", "bbb."]  # the full stop is one too many
    assert texts("aaa bbb. c", hard_max=8) == ["aaa bbb.", "c"]
    assert texts("aaaa\nb", hard_max=4) == ["aaaa", "b"]
    assert texts("— aaaa", hard_max=4) == ["aaaa"]
    assert texts("x" * 5000)[0] == "x" * 240


def test_a_desert_of_white_space_is_an_end() -> None:
    segmenter = PlainSegmenter(hard_max=5)
    assert [s.text for s in segmenter.push("a.m. " + " " * 9, 0)] == ["a.m."]
    assert [s.text for s in segmenter.push("b\n" + "\t" * 9, 0)] == ["b"]
    assert [s.text for s in segmenter.push("c" + " " * 9, 0)] == ["c"]


def test_odd_characters_do_no_harm() -> None:
    assert texts("a\ud800b\x00c.\x07 Next\u2028line.") == ["a\ud800b\x00c.\x07 Next\u2028line."]


def test_first_words_do_not_wait_for_the_end() -> None:
    segmenter: Segmenter = PlainSegmenter()
    assert segmenter.push("Hello there.", 0.0) == []
    assert segmenter.push(" ", 0.1) == [Segment(0, "Hello there.", 0, 12, SENTENCE)]


@pytest.mark.parametrize(
    ("text", "spoken", "boundary"),
    [
        ("Hello there.", "Hello there.", SENTENCE),
        ("Hello there! ", None, None),  # was certain already
        ("你好。", "你好。", SENTENCE),
        ("We met at 5 p.m. ", "We met at 5 p.m.", SENTENCE),
        ("We met at 5 p.m.", "We met at 5 p.m.", SENTENCE),
        ("Take vitamin C.", "Take vitamin C.", SENTENCE),
        ("Main St.", "Main St.", SENTENCE),
        ("42.", "42.", SENTENCE),
        ("A line\n", "A line", SENTENCE),
        ("This is a clause of some length,", "This is a clause of some length,", CLAUSE),
        ("Too short,", None, None),
        ("I met Dr.", None, None),
        ("I met Dr. ", None, None),
        ("Fruit, e.g.", None, None),
        ("In the middle of a wor", None, None),
        ("A whole word ", None, None),
        ("...", None, None),
        ("---\n", None, None),
        ("", None, None),
    ],
)
def test_pause_of_the_writer(text: str, spoken: str | None, boundary: Boundary | None) -> None:
    segmenter = PlainSegmenter(patience=0.25)
    segmenter.push(text, 10.0)
    if spoken is None:
        assert segmenter.timer() is None
        assert segmenter.tick(99.0) == []
        return
    assert segmenter.timer() == 10.25
    assert segmenter.tick(10.2) == []
    assert segmenter.timer() == 10.25
    assert segmenter.tick(10.25) == [Segment(0, spoken, 0, len(spoken), boundary)]
    assert segmenter.timer() is None
    assert segmenter.tick(11.0) == []
    assert segmenter.push(" More, as it comes along,", 12.0) == []
    assert segmenter.timer() is None  # only the first may end at a clause
    assert [s.text for s in segmenter.flush(12.0)] == ["More, as it comes along,"]


def test_list_goes_on_after_a_pause() -> None:
    segmenter = PlainSegmenter()
    segmenter.push("A line\n", 0.0)
    assert len(segmenter.tick(1.0)) == 1
    assert [s.text for s in segmenter.push("2. Two. Three", 1.0)] == ["2. Two."]


def test_after_the_end() -> None:
    segmenter = PlainSegmenter()
    segmenter.push("Hello", 0.0)
    assert [s.boundary for s in segmenter.flush(0.0)] == [END]
    assert segmenter.flush(0.0) == []
    assert segmenter.timer() is None
    with pytest.raises(ValueError, match="push after flush"):
        segmenter.push("x", 0.0)


@pytest.mark.parametrize(
    "options", [{"hard_max": 0}, {"first_min": -1}, {"patience": -0.1}, {"patience": float("nan")}]
)
def test_impossible_options(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="hard_max"):
        PlainSegmenter(**options)


PIECES = st.sampled_from(
    [*"aB1 .,!?:\"')…—\n\r\t。，”🙂\ud800", "Dr.", "p.m.", "No.", "  ", "\n\n", "...", "word", "一"]
)
TEXTS = st.lists(PIECES, max_size=60).map("".join)


@given(TEXTS, st.lists(st.integers(0, 120), max_size=8), st.integers(1, 40), st.integers(0, 12))
@example("a.m. " + " " * 9 + "b", [4, 5, 9], 5, 0)
@settings(deadline=None, max_examples=300)
def test_any_cutting_gives_the_same(text: str, cuts: list[int], hard_max: int, first_min: int) -> None:
    whole = run(text, hard_max=hard_max, first_min=first_min)
    for edges in (sorted(cuts), range(len(text))):
        segmenter = PlainSegmenter(hard_max=hard_max, first_min=first_min)
        parts = [text[a:b] for a, b in zip([0, *edges], [*edges, len(text)], strict=True)]
        assert [s for part in parts for s in segmenter.push(part, 0.0)] + segmenter.flush(0.0) == whole
    end = 0
    for index, segment in enumerate(whole):
        assert segment.index == index
        assert segment.text == text[segment.start : segment.end] == segment.text.strip()
        assert any(char.isalnum() for char in segment.text)
        assert len(segment.text) <= hard_max
        assert not any(char.isalnum() for char in text[end : segment.start])  # nothing lost
        end = segment.end
    assert not any(char.isalnum() for char in text[end:])


@given(TEXTS, st.data())
@settings(deadline=None)
def test_pauses_lose_nothing_and_end_no_word(text: str, data: st.DataObject) -> None:
    segmenter, at, now, out = PlainSegmenter(hard_max=30, first_min=5), 0, 0.0, []
    while at < len(text):
        size = data.draw(st.integers(1, 20))
        out += segmenter.push(text[at : at + size], now)
        at += size
        timer = segmenter.timer()
        now += 1.0
        late = segmenter.tick(now)
        assert bool(late) == (timer is not None)
        for segment in late:
            rest = text[segment.end : at]
            assert not segment.text[-1].isalnum() or "\n" in rest or "\r" in rest
        out += late
    out += segmenter.flush(now)
    assert "".join(filter(str.isalnum, text)) == "".join(c for s in out for c in s.text if c.isalnum())
    assert all(segment.text == text[segment.start : segment.end] for segment in out)


@given(st.text(max_size=80))
@settings(deadline=None)
def test_any_text_is_taken(text: str) -> None:
    assert "".join(filter(str.isalnum, text)) == "".join(filter(str.isalnum, "".join(texts(text))))


def test_work_is_linear() -> None:
    class Counting(PlainSegmenter):
        reads = 0

        def _read(self, char: str, out: list[Segment]) -> None:
            self.reads += 1
            super()._read(char, out)

    text = "a, b " * 50 + "x" * 1000 + " etc. " * 300 + "." * 500 + " " * 500 + "，" * 500
    segmenter = Counting()
    for char in text:
        segmenter.push(char, 0.0)
    assert segmenter.reads < 8 * len(text)
    assert len(segmenter._text) <= 2 * 240
