"""One written form for what was said and what was heard, so that only real mishearings count as errors.

A recogniser is free to write "3:30" or "three thirty", "Dr." or "doctor". Both sides of the comparison go through
`words`. It knows the forms that occur in the sentences of this test; it is no general normaliser and no part of Legato.
"""

import re

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = ((1_000_000_000, "billion"), (1_000_000, "million"), (1_000, "thousand"), (100, "hundred"))
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_SAME = {"dr": "doctor", "mr": "mister", "mrs": "missus", "ok": "okay", "vs": "versus"}
_SPARE = {("hundred", "and"), ("thousand", "and")}
_MONTH = "(january|february|march|april|may|june|july|august|september|october|november|december)"
_DAY = (
    "((?:twenty |thirty )?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)|"
    "(?:ten|eleven|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)th|twelfth|twentieth|thirtieth)"
)


def words(text: str) -> list[str]:
    """The words of `text`: lower case, no punctuation, numbers spelled out as they are spoken."""
    text = text.lower().replace("\u2019", "'")
    text = re.sub(r"\b([ap])\.m\b\.?", r"\1m", text)
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"\$(\d+)(?:\.(\d\d))?(?!\d)", _dollars, text)
    text = re.sub(r"\b(\d{1,2}):(\d\d)\b", _clock, text)
    text = re.sub(r"(?<=\bat )(\d{1,2})\.([0-5]\d)\b", _clock, text)
    text = re.sub(rf"\b(\d{{1,2}}) {_MONTH}\b", lambda m: f"{ordinal(int(m[1]))} {m[2]}", text)
    text = re.sub(rf"\b{_MONTH} (\d{{1,2}})\b(?![:.]\d)", lambda m: f"{m[1]} {ordinal(int(m[2]))}", text)
    text = re.sub(r"\b(\d+)(?:st|nd|rd|th)\b", lambda m: ordinal(int(m[1])), text)
    text = re.sub(r"(?<![\d.])(\d{4})(?![\d.]*\d)", lambda m: year(int(m[1])), text)
    text = re.sub(r"\d+(?:\.\d+)?", _decimal, text)
    text = text.replace("per cent", "percent").replace("%", " percent").replace("&", " and ").replace("'", "")
    said = [_SAME.get(word, word) for word in re.findall(r"[a-z]+", text)]
    # "14 March", "the 14th of March" and "March 14" are one date.
    said = re.sub(rf"\b(?:the )?{_DAY} (?:of )?{_MONTH}\b", r"\2 \1", " ".join(said)).split()
    # "two hundred and forty" and "two hundred forty" are both said.
    return [word for before, word in zip(["", *said], said, strict=False) if (before, word) not in _SPARE]


def cardinal(number: int) -> str:
    """3 -> "three"; 240 -> "two hundred forty". `number` >= 0."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f" {_ONES[number % 10]}" if number % 10 else "")
    scale, name = next((scale, name) for scale, name in _SCALES if number >= scale)
    rest = number % scale
    return f"{cardinal(number // scale)} {name}" + (f" {cardinal(rest)}" if rest else "")


def ordinal(number: int) -> str:
    """5 -> "fifth"; 21 -> "twenty first"."""
    *front, last = cardinal(number).split()
    last = _ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return " ".join([*front, last])


def year(number: int) -> str:
    """1987 -> "nineteen eighty seven"; 1905 -> "nineteen oh five"; a plain number where no year is likely."""
    century, rest = divmod(number, 100)
    if not 11 <= century <= 20 or number // 10 == 200:
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def _dollars(match: re.Match[str]) -> str:
    dollars, cents = int(match[1]), int(match[2] or 0)
    said = f"{cardinal(dollars)} dollar{'' if dollars == 1 else 's'}"
    return f"{said} and {cardinal(cents)} cent{'' if cents == 1 else 's'}" if cents else said


def _clock(match: re.Match[str]) -> str:
    hour, minute = int(match[1]), int(match[2])
    if minute == 0:
        return cardinal(hour)
    return f"{cardinal(hour)} {'oh ' if minute < 10 else ''}{cardinal(minute)}"


def _decimal(match: re.Match[str]) -> str:
    whole, _, fraction = match[0].partition(".")
    said = cardinal(int(whole))
    return f"{said} point {' '.join(_ONES[int(digit)] for digit in fraction)}" if fraction else said
