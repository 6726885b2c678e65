"""English text to the IPA that a Piper voice was trained on, without espeak-ng (no GPL code).

    text ─► hibari's G2P (misaki's alphabet) ─► word rules ─► phrase rules ─► IPA as espeak-ng's en-us writes it

The dictionary, the tagger and the net for unknown words are hibari's. The rules below rewrite the result: another
alphabet (A is eɪ), length marks, r-coloured vowels, the colour of a schwa by the letter it stands for, which syllables
carry a stress mark, and how little words sound between others. They were found by comparing the two outputs; how far
they agree is in docs/reference/piper-phonemes.md.
"""

import re
from dataclasses import dataclass

from hibari.g2p import G2P
from hibari.g2p.normalize import normalize

SYMBOLS = frozenset(" .,!?;:abdefhijklmnopstuvwzæðŋɐɑɔəɚɛɜɡɪɹɾʃʊʌʒʔˈˌːθᵻ\u0329")
"""Every character of the IPA that comes out."""

_VOWEL = "AIOWYiuɑɔɛæʌʊɪəᵊᵻɜɐ"  # misaki's; a diphthong is one character
_OTHER = re.compile(f"[^{_VOWEL}bdfhjklmnpstvwzðŋɡɹɾʃʒʔθʤʧTˈˌ.,!?;:…—]+")  # what the G2P should not say
_SOUND = re.compile(r"[^\s.,!?;:…—]+|[.,!?;:…—]")
_IPA_VOWEL = "[aeiouæɐɑɔəɚɛɜɪʊʌᵻ]"
_PAUSES = {**dict(zip(".,!?;:", ".,!?;:", strict=True)), "…": ".", "—": ";"}

# What the G2P cannot take, see legato.models.hibari.phonemes.
_LONG_NUMBER = re.compile(r"(?:\d,?){36,}\d")
_LONG_WORD = re.compile(r"(?:[^\W_]+[^\w\s]+){16}(?=\w)")

# Little words as they sound inside a sentence: without stress, or with a secondary one.
_WEAK = {
    "a": "ɐ", "about": "ɐbˌaʊt", "am": "æm", "an": "ɐn", "and": "ænd", "any": "ˌɛni", "are": "ɑːɹ", "as": "æz",
    "at": "æt", "be": "biː", "been": "bˌɪn", "before": "bᵻfˌoːɹ", "being": "bˌiːɪŋ", "but": "bˌʌt", "by": "baɪ",
    "can": "kæn", "could": "kʊd", "down": "dˌaʊn", "for": "fɔːɹ", "from": "fɹʌm", "get": "ɡɛt", "go": "ɡˌoʊ",
    "goes": "ɡoʊz", "going": "ɡˌoʊɪŋ", "got": "ɡɑːt", "had": "hæd", "has": "hɐz", "have": "hæv", "having": "hˌævɪŋ",
    "he": "hiː", "he'd": "hiːd", "he'll": "hiːl", "he's": "hiːz", "her": "hɜː", "him": "hˌɪm", "his": "hɪz",
    "how": "hˌaʊ", "i": "aɪ", "i'd": "aɪd", "i'll": "aɪl", "i'm": "aɪm", "i've": "aɪv", "if": "ɪf", "in": "ɪn",
    "into": "ˌɪntʊ", "is": "ɪz", "it": "ɪt", "it's": "ɪts", "its": "ɪts", "make": "mˌeɪk", "made": "mˌeɪd",
    "makes": "mˌeɪks", "me": "mˌiː", "might": "mˌaɪt", "my": "maɪ", "near": "nˌɪɹ", "not": "nˌɑːt", "of": "ʌv",
    "on": "ˌɔn", "or": "ɔːɹ", "our": "ˌaʊɚ", "over": "ˌoʊvɚ", "per": "pɜː", "put": "pˌʊt", "shall": "ʃˌæl",
    "she": "ʃiː", "she's": "ʃiːz", "should": "ʃˌʊd", "so": "sˌoʊ", "some": "sˌʌm", "than": "ðɐn", "that": "ðæt",
    "that's": "ðæts", "their": "ðɛɹ", "them": "ðˌɛm", "there": "ðɛɹ", "there's": "ðɛɹz", "these": "ðiːz",
    "they": "ðeɪ", "they're": "ðɛɹ", "they've": "ðeɪv", "this": "ðɪs", "those": "ðoʊz", "though": "ðˌoʊ",
    "through": "θɹuː", "under": "ˌʌndɚ", "up": "ˌʌp", "upon": "əpˌɑːn", "us": "ˌʌs", "was": "wʌz", "we": "wiː",
    "we'll": "wiːl", "we're": "wɪɹ", "went": "wɛnt", "were": "wɜː", "what": "wʌt", "what's": "wʌts", "when": "wɛn",
    "where": "wˌɛɹ", "which": "wˌɪtʃ", "while": "wˌaɪl", "who": "hˌuː", "who's": "hˌuːz", "why": "wˌaɪ",
    "will": "wɪl", "with": "wɪð", "without": "wɪðˌaʊt", "would": "wʊd", "you": "juː", "you're": "jʊɹ",
    "you've": "juːv", "your": "jʊɹ",
}  # fmt: skip

# Those that carry the sentence when it ends with them ("yes, I will").
_STRONG_AT_THE_END = frozenset(
    "about am are be before can could down get go had has have is not on over should so that there this up was were "
    "will with without would".split()
)

_NEVER_ALONE = frozenset("he her him i it me she the them they to us we you".split())

# Two little words that are run together before a third.
_BEFORE_THE = {
    "for": "fɚ", "from": "fɹʌm", "in": "ɪn", "of": "ʌv", "on": "ɔn", "that": "ðæt", "was": "wʌz", "with": "wɪð",
}  # fmt: skip
_TOGETHER = {
    ("at", "a"): "æɾə", ("for", "a"): "fɚɹə", ("for", "an"): "fɚɹən", ("had", "been"): "hɐdbɪn",
    ("has", "been"): "hˈæzbiːn", ("have", "been"): "hɐvbɪn", ("i", "am"): "aɪɐm", ("not", "a"): "nˌɑːɾə",
    ("of", "a"): "əvə", ("of", "an"): "əvən", ("out", "of"): "ˌaʊɾəv", ("should", "have"): "ʃˌʊdəv",
    ("that", "a"): "ðˌæɾə", ("that", "it"): "ðˌɐɾɪt", ("there", "are"): "ðɛɹˌɑːɹ", ("to", "be"): "təbi",
    ("was", "a"): "wʌzɐ", ("would", "have"): "wʊdhɐv",
}  # fmt: skip


# Words that no rule gets right, by their sounds in the dictionary.
_WHOLE = {
    "dˈɪdᵊnt": "dˈɪdnt", "hˈʌndɹəd": "hˈʌndɹɪd", "wˈɑnt": "wˈɔnt", "wˈɑnts": "wˈɔnts", "wˈɑntᵻd": "wˈɔntᵻd",
    "sˈɔɹi": "sˈɑːɹi", "ˈɛvəɹi": "ˈɛvɹi", "sˈɛvəɹəl": "sˈɛvɹəl", "dˈɪfəɹənt": "dˈɪfɹənt", "ˈævəɹɪʤ": "ˈævɹɪdʒ",
    "əkɹˈɔs": "əkɹˈɑːs", "jˈust": "jˈuːzd", "zˈɪɹO": "zˈiəɹoʊ", "hˈɪɹO": "hˈiəɹoʊ", "ˈɔɹᵊnʤ": "ˈɔɹɪndʒ",
    "fˈæmᵊli": "fˈæmɪli", "bəkˈʌz": "bɪkˈʌz", "disˈɛmbəɹ": "dᵻsˈɛmbɚ", "fˈɔɹ": "fˈoːɹ", "fˌɔɹtˈin": "fˈoːɹtiːn",
    "fˌɔɹtˈinθ": "fˈoːɹtiːnθ", "ˌɔlɹˈɛdi": "ɔːlɹˌɛdi", "tˈɔɹd": "təwˈɔːɹd", "dətˈAl": "diːtˈeɪl",
    "mˈɪnət": "mˈɪnɪt", "mˈɪnəts": "mˈɪnɪts", "bjˈuTəfəl": "bjˈuːɾifəl", "tˈɛmpɹəʧəɹ": "tˈɛmpɹɪtʃɚ",
    "pɹˈɛzədˌɛnt": "pɹˈɛzɪdənt", "sˈʌmbədi": "sˈʌmbɑːdi", "ˈApɹəl": "ˈeɪpɹəl", "wOnt": "wˈoʊnt",
}  # fmt: skip
_LETTERS = (
    re.compile(r"[aeiouy]+"),
    re.compile(r"i(?=[aou])|[aeiouy]+"),
)
_NASAL = re.compile(f"[mn][^{_VOWEL}ˈˌ]|[mn]ˈ[^{_VOWEL}]")
_BEFORE_THE_STRESS = re.compile(f"[^{_VOWEL}ʃ]*ˈ")
_ABLE = re.compile("b[əᵊ]?l")
_PORT = re.compile("p[ˈˌ]?$")
_CARRY = re.compile(r"arr|ar[aoi](?![aou])")
_STORE = re.compile(r"oar|oor|our|ore(?!s?t)|ory")
_MUTE = re.compile(r"(?<=[^aeiouy])e(?=s?$|d$|ly$|ment|ful|less)")
_PLAIN = str.maketrans(
    {"A": "eɪ", "I": "aɪ", "O": "oʊ", "W": "aʊ", "Y": "ɔɪ", "i": "iː", "y": "i", "u": "uː", "ɑ": "ɑː"}
    | {"ᵊ": "ə", "T": "ɾ", "ʤ": "dʒ", "ʧ": "tʃ"}
)


def _rules(*rules: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Compiled; V is a vowel, C anything else but a stress mark."""
    vowel, other = f"[{_VOWEL}]", f"[^{_VOWEL}ˈˌ]"
    return tuple((re.compile(rule.replace("V", vowel).replace("C", other)), result) for rule, result in rules)


_STRESS = _rules(
    (r"ˌ(VC*)tˈin(?=$|θ)", r"ˈ\1tin"),  # fourteen
    (r"ˌ(?=VC*ˈ)", ""),  # no secondary stress beside the primary one
    (r"(?<=ˈ)(VC*)ˌ", r"\1"),
)
_SOUNDS = _rules(
    (r"hw", "w"),
    (r"^ɪ(?=k[sp]|ɡz)", "ɛ"),  # explain, exam
    (r"^(ˌ?)ɪnk", r"\1ɪŋk"),
    (r"^b[əɪi](?=[kɡ])", "bɪ"),  # begin
    (r"^([bdɹ])[əɪi](?=zˈ)", r"\1ɪ"),  # result
    (r"^(?!b.[kɡ]|..zˈ)([bdɹ])[əɪi](?=C+ˈ)", r"\1ᵻ"),  # before, degree, repair
    (r"(?<=[^sˈ])[ɪə]Ti$", "ᵻTi"),  # reality
    (r"ᵻst$", "ɪst"),
    (r"tᵊ?n$", "ʔn̩"),  # button
    (r"([jʃʒʧʤ])[əᵊ]w(?=[ˈˌ]?V)", r"\1u"),  # January, sensual
    (r"([bk])[əᵊ]li$", r"\1li"),  # basically
    (r"j[əᵊ]l", "jʊl"),  # regular
    (r"([ln])j(?=[əᵊ])", r"\1y"),  # million
    (r"ˈiə(?!l)", "ˈyə"),
    (r"ɜɹ(?=[ˈˌ]?V)", "ɜːɹ"),
    (r"ɜɹ", "ɜː"),
    (r"[əᵊ]ɹ(?=[ˈˌ]?V)", "ɚɹ"),
    (r"[əᵊ]ɹ", "ɚ"),
    (r"ʊɹ(?=[ˈˌ]?V)", "ʊɹɹ"),
    (r"ɔ(?=[nfsθŋ])(?!n[stʧ])", "o"),  # long: kept short
    (r"ɔ(?=ɡ)", "ɑ"),
    (r"ɔ", "ɔː"),
    (r"o(?!ː)", "ɔ"),
    (r"(?<![ˈˌ])i(?=[ˈˌ]V)", "ɪ"),  # reality
    (r"(?<![ˈˌ])i(?=V|z?$|ɚ)", "y"),  # happy, serious
    (r"(?<![ˈˌ])i(?=C+[ˈˌ]?V)", "ɪ"),
)


@dataclass(frozen=True)
class _Word:
    spelling: str
    """Lower case; empty where it is not known which letters the sounds stand for."""

    sounds: str
    """In misaki's alphabet."""


_LINK = re.compile(f"(?:(?<=ɚ)|(?<=ɜː))(?= [ˈˌ]?{_IPA_VOWEL})")
_FLAP = re.compile(f"(?<![^ ])(ɪ|æ)t(?= [ˈˌ]?{_IPA_VOWEL})")  # it is
_END = _Word("", "")


def _promoted(ipa: str) -> str:
    """With a primary stress, where there was none: on the vowel that has the secondary one, else on the first."""
    return ipa.replace("ˌ", "ˈ", 1) if "ˌ" in ipa else re.sub(f"(?={_IPA_VOWEL})", "ˈ", ipa, count=1)


def _letters(spelling: str, count: int) -> list[str]:
    """The letters of each of `count` vowels; empty strings where spelling and sound do not match."""
    spelling = re.sub(r"sm(?=s?$)", "sem", spelling.replace("qu", "q"))
    for attempt in (spelling, _MUTE.sub("", spelling)):
        for pattern in _LETTERS:
            if len(letters := pattern.findall(attempt)) == count:
                return letters
    return [*letters[:1], *[""] * count][:count]


def _vowel(sound: str, letters: str, before: str, after: str, spelling: str) -> str:
    """How espeak-ng writes a vowel that stands for these letters between these sounds."""
    if sound in "ɪə" and letters == "e" and not before and _NASAL.match(after):
        return "ɛ"  # embarrassed
    if sound == "ə" and not after.startswith("ɹ"):
        return _schwa(letters, before, after)
    if sound == "ɛ" and letters == "a" and after.startswith("ɹ") and _CARRY.search(spelling):
        return "æ"
    if sound == "ɔ" and after.startswith("ɹ") and (_PORT.search(before) or _STORE.search(spelling)):
        return "oː"
    return sound


def _schwa(letters: str, before: str, after: str) -> str:
    if letters == "a" and (not before or _BEFORE_THE_STRESS.match(after)):
        return "ɐ"  # about, banana
    if letters in ("i", "y"):
        return "ᵻ" if _ABLE.match(after) else "ɪ"  # possible, visit
    if letters == "e" and after[:1] not in ("", *"nlmɹs"):
        return "ɪ"  # market
    return "ə"


def _word(spelling: str, sounds: str) -> str:
    """One word, its letters where they are known, in espeak-ng's IPA."""
    if sounds in _WHOLE:
        return _WHOLE[sounds]
    for pattern, replacement in _STRESS:
        sounds = pattern.sub(replacement, sounds)
    vowels = [match.start() for match in re.finditer(f"[{_VOWEL}]", sounds)]
    out = list(sounds)
    for at, letters in zip(vowels, _letters(spelling, len(vowels)), strict=True):
        out[at] = _vowel(sounds[at], letters, sounds[:at], sounds[at + 1 :], spelling)
    sounds = "".join(out)
    for pattern, replacement in _SOUNDS:
        sounds = pattern.sub(replacement, sounds)
    return sounds.translate(_PLAIN)


class EnglishPhonemizer:
    """Reads English text in American English. Holds no state between calls."""

    def __init__(self) -> None:
        self._g2p = G2P()

    def phonemes(self, text: str) -> str:
        """IPA of the text, words between spaces, a pause mark at the end of a clause; "" when nothing can be spoken.

        What English has no sound for is left out. A number of more than 36 digits is read digit by digit.
        """
        text = _LONG_NUMBER.sub(lambda number: " ".join(number[0].replace(",", "")), text)
        tokens = self._g2p.phonemize_tokens(self._g2p.tokenize(normalize(_LONG_WORD.sub(r"\g<0> ", text))))
        out: list[str] = []
        clause: list[_Word] = []
        for token in tokens:
            sounds = _SOUND.findall(_OTHER.sub(" ", token.phonemes or ""))
            spelling = token.text.lower().replace("’", "'") if len(sounds) == 1 else ""
            for sound in sounds:
                if sound not in _PAUSES:
                    clause.append(_Word(spelling, sound))
                elif clause:
                    out.append(_clause(clause) + _PAUSES[sound])
                    clause = []
        if clause:
            out.append(_clause(clause))
        return " ".join(out)


def _clause(words: list[_Word]) -> str:
    """The words between two pauses: little words are weak, some are run together, r links, and one word is stressed."""
    out: list[str] = []
    weak: list[bool] = []
    ahead = [*words[1:], _END, _END]
    at = 0
    while at < len(words):
        word, following = words[at], ahead[at]
        together = None if ahead[at + 1] is _END else _together(word, following)
        out.append(together or _in_clause(word, following))
        weak.append(word.spelling in _NEVER_ALONE)
        at += 2 if together else 1
    if not any("ˈ" in ipa for ipa in out):
        strongest = max((at for at, is_weak in enumerate(weak) if not is_weak), default=-1)
        out[strongest] = _promoted(out[strongest])
    return _FLAP.sub(r"\1ɾ", _LINK.sub("ɹ", " ".join(out)))


def _together(word: _Word, following: _Word) -> str | None:
    if following.spelling == "the" and word.spelling in _BEFORE_THE:
        return _BEFORE_THE[word.spelling] + _the(following)
    return _TOGETHER.get((word.spelling, following.spelling))


def _in_clause(word: _Word, following: _Word) -> str:
    if word.spelling == "the":
        return _the(word)
    if word.spelling == "what" and following.spelling not in _NEVER_ALONE:
        return "wˌʌt"
    if ipa := _WEAK.get(word.spelling):
        return _promoted(ipa) if following is _END and word.spelling in _STRONG_AT_THE_END else ipa
    return _word(word.spelling, word.sounds)


def _the(word: _Word) -> str:
    return "ðɪ" if word.sounds == "ði" else "ðə"
