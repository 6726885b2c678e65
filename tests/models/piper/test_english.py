"""English IPA as espeak-ng writes it, from hibari's dictionary."""

import difflib
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.errors import LegatoError
from legato.models.piper.english import SYMBOLS, EnglishPhonemizer
from legato.models.piper.espeak import EspeakPhonemizer

WORDS = """
    the of and to in a is that for it as was with be by on not he I this are or his from at which but have an
    had they you were their one all we can her has there been if more when will would who so no said what up its
    about into than them only other new some could time these two may then do first any my now such like our
    over man me even most made after also did many before must through back years where much your way well down
    should because each just those people how too little state good very make world still own see men work long
    get here between both life being under never day same another know while last might us great old year off
    come since against go came right used take three states himself few house use during without again place
    American around however home small found Mrs thought went say part once general high upon school every don't
    does got united left number course war until always away something fact though water less public put think
    almost hand enough far took head yet government system better set told nothing night end why called didn't
    eyes find going look asked later knew point next city business days week give group toward young country let
    room side social present given several order national second possible rather per face among form important
    often things looked early white case large big need child children become felt best money question family
    power name morning church light open kind began door thing across word hello please thanks sorry yes friend
    mother father brother sister tomorrow today yesterday table chair kitchen window street letter paper book
    read write listen speak voice music
""".split()


@pytest.fixture(scope="module")
def english() -> EnglishPhonemizer:
    return EnglishPhonemizer()


@pytest.mark.parametrize(
    ("text", "ipa"),
    [
        ("Hello world.", "həlˈoʊ wˈɜːld."),
        ("fourteen", "fˈoːɹtiːn"),
        ("nineteenth", "nˈaɪntiːnθ"),
        ("something", "sˈʌmθɪŋ"),  # no secondary stress beside the primary one
        ("anything", "ˈɛnɪθˌɪŋ"),
        ("explain", "ɛksplˈeɪn"),
        ("embarrassed", "ɛmbˈæɹəst"),
        ("begin", "bɪɡˈɪn"),
        ("before", "bᵻfˈoːɹ"),
        ("results", "ɹɪzˈʌlts"),
        ("reality city", "ɹɪˈælᵻɾi sˈɪɾi"),
        ("button", "bˈʌʔn̩"),
        ("million", "mˈɪliən"),
        ("regular", "ɹˈɛɡjʊlɚ"),
        ("battery arrived", "bˈæɾɚɹi ɚɹˈaɪvd"),
        ("during", "dˈʊɹɹɪŋ"),
        ("carry", "kˈæɹi"),
        ("coffee all dog", "kˈɔfi ˈɔːl dˈɑːɡ"),
        ("store order report", "stˈoːɹ ˈɔːɹdɚ ɹᵻpˈoːɹt"),
        ("banana", "bɐnˈænə"),
        ("possible visit", "pˈɑːsᵻbəl vˈɪzɪt"),
        ("market business", "mˈɑːɹkɪt bˈɪznəs"),
        ("idea", "aɪdˈiə"),
        ("happy", "hˈæpi"),
    ],
)
def test_words(english: EnglishPhonemizer, text: str, ipa: str) -> None:
    assert english.phonemes(text) == ipa


@pytest.mark.parametrize(
    ("text", "ipa"),
    [
        ("In the end", "ɪnðɪ ˈɛnd"),
        ("on the table", "ɔnðə tˈeɪbəl"),
        ("the apple", "ðɪ ˈæpəl"),
        ("I am happy", "aɪɐm hˈæpi"),
        ("a lot of it", "ɐ lˈɑːt ʌv ɪt"),
        ("the weather is nice", "ðə wˈɛðɚɹ ɪz nˈaɪs"),  # a linking r
        ("it is a dog", "ɪɾ ɪz ɐ dˈɑːɡ"),  # a flap
        ("Yes, I will.", "jˈɛs, aɪ wˈɪl."),  # strong at the end
        ("it's up to you", "ɪts ˈʌp tə juː"),  # one word is stressed
        ("it", "ˈɪt"),
        ("the", "ðˈə"),
        ("under", "ˈʌndɚ"),
        ("what she said", "wʌt ʃiː sˈɛd"),
        ("what time", "wˌʌt tˈaɪm"),
        ("don’t, it’s", "dˈoʊnt, ˈɪts"),
    ],
)
def test_phrases(english: EnglishPhonemizer, text: str, ipa: str) -> None:
    assert english.phonemes(text) == ipa


@pytest.mark.parametrize(
    ("text", "ipa"),
    [
        ("Yes, no; yes: no? Yes! No.", "jˈɛs, nˈoʊ; jˈɛs: nˈoʊ? jˈɛs! nˈoʊ."),
        ("Yes?!", "jˈɛs?"),
        ("Yes...", "jˈɛs."),
        ("yes … no", "jˈɛs. nˈoʊ"),
        ("yes — no", "jˈɛs; nˈoʊ"),
        ('("Two.")', "tˈuː."),
        ("... yes", "jˈɛs"),
        ("hello 你好", "həlˈoʊ"),
        ("42", "fˈɔːɹɾi tˈuː"),
    ],
)
def test_pauses(english: EnglishPhonemizer, text: str, ipa: str) -> None:
    assert english.phonemes(text) == ipa


@pytest.mark.parametrize("text", ["", " ", "...", "?!", "—", "( )", "'", "🙂", "\ud800", "你好", "\n", '""'])
def test_nothing_can_be_pronounced(english: EnglishPhonemizer, text: str) -> None:
    assert english.phonemes(text) == ""


def test_phonemes_in_the_text_pass_only_as_sounds(english: EnglishPhonemizer) -> None:
    assert english.phonemes("[yes](/jˈɛs日q/)") == "jˈɛs"


def test_what_the_dictionary_cannot_take(english: EnglishPhonemizer) -> None:
    assert english.phonemes("1" * 37) == " ".join(["wˈʌn"] * 37)
    assert english.phonemes("a-" * 100)


@given(st.text(st.sampled_from("0123456789.,$%-/:'abcdefgXYZ £€²½٣é—()\"&+@#_ \n"), max_size=60))
@settings(deadline=None, max_examples=150)
def test_no_text_is_a_crash_and_every_symbol_is_known(english: EnglishPhonemizer, text: str) -> None:
    assert set(english.phonemes(text)) <= SYMBOLS


@given(st.lists(st.sampled_from(WORDS), max_size=12))
@settings(deadline=None, max_examples=100)
def test_words_stand_between_single_spaces(english: EnglishPhonemizer, words: list[str]) -> None:
    ipa = english.phonemes(" ".join(words))
    assert set(ipa) <= SYMBOLS
    assert ipa.split() == ipa.split(" ") or not words
    assert ("ˈ" in ipa) is bool(words)


def test_it_holds_no_state(english: EnglishPhonemizer) -> None:
    alone = english.phonemes("Read the book. It was read.")
    english.phonemes("Something else, with 42 Zyxolutrixes!")
    assert english.phonemes("Read the book. It was read.") == alone


# How far it agrees with the program: docs/reference/piper-phonemes.md has the figures.


@pytest.fixture(scope="module")
def espeak() -> EspeakPhonemizer:
    try:
        return EspeakPhonemizer("en-us")
    except LegatoError as error:
        pytest.skip(error.message)


def agreement(espeak: EspeakPhonemizer, english: EnglishPhonemizer, texts: list[str]) -> float:
    """Share of the program's words that come out the same, stress and all."""
    same = count = 0
    for text in texts:
        theirs, ours = (re.sub("[.,!?;:]", "", by.phonemes(text)).split() for by in (espeak, english))
        matcher = difflib.SequenceMatcher(None, theirs, ours, autojunk=False)
        same += sum(block.size for block in matcher.get_matching_blocks())
        count += len(theirs)
    return same / count


def test_agreement_on_words(espeak: EspeakPhonemizer, english: EnglishPhonemizer) -> None:
    assert agreement(espeak, english, WORDS) > 0.97


def test_agreement_on_sentences(espeak: EspeakPhonemizer, english: EnglishPhonemizer) -> None:
    lines = (Path(__file__).parents[2] / "quality" / "sentences.txt").read_text(encoding="utf-8").splitlines()
    assert agreement(espeak, english, [line.split("\t")[0] for line in lines if line[0] != "#"]) > 0.94
