"""Find streets by names as people write them: accents, spaces and abbreviations aside."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from arcfleet.instance.change import fold_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from arcfleet.streets.street_map import Street

#: Words for the same thing, the short form first. Some short forms stand for two words, as
#: `st` for street and saint: a name that then fits two streets is not matched.
_WORDS = (
    *("str st street strasse straat saint sankt sainte ste", "ave av avenue avenida avda"),
    *("rd road", "blvd bd bld bvd boulevard bulevar", "dr drive doctor doktor", "ln lane"),
    *("ct court", "pl place platz plaats", "sq square", "hwy highway", "pkwy parkway"),
    *("ter terrace", "cir circle", "cres crescent", "gdns gardens", "gr grove", "mt mount"),
    *("ft fort", "brg bridge bruecke brucke", "all allee", "ch chemin chaussee"),
    *("rte route", "imp impasse", "fbg faubourg", "sq square", "r rue rua", "c calle"),
    *("pza plaza piazza", "pca praca", "vle viale", "cso corso", "trav travessa tv"),
    *("n north", "s south", "e east", "w west", "ne northeast", "nw northwest"),
    *("se southeast", "sw southwest", "jr junior", "prof professor", "and & und et y"),
    *("1st first", "2nd second", "3rd third", "4th fourth", "5th fifth", "6th sixth"),
    *("7th seventh", "8th eighth", "9th ninth", "10th tenth", "11th eleventh"),
)
_SHORT = {word: group.split()[0] for group in _WORDS for word in group.split()}
#: Ends of words that are written together, as in Hauptstraße.
_ENDINGS = {"strasse": "str", "straat": "str", "platz": "pl", "allee": "all"}
#: Letters that no accent can be taken from.
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe"})
_WORD = re.compile(r"[^\W_]+|&")
#: A house number after a name, as in `Hauptstr. 12 a` or `Via Roma, 3-5`, and before it.
_NUMBER_AFTER = re.compile(
    r"(?<=\S)[\s,]+\d+\s*[a-z]?(?:\s*[-/+]\s*\d+\s*[a-z]?)*\s*$", re.I
)
_NUMBER_BEFORE = re.compile(
    r"^\s*\d+\s*[a-z]?(?:\s*[-/]\s*\d+\s*[a-z]?)*[\s,]+(?=\S)", re.I
)
_MOST_SUGGESTED = 3
#: Names that share most groups of letters are compared letter by letter.
_MOST_COMPARED = 40


class Found(NamedTuple):
    """Streets of a name, by their positions; or none, and names to suggest."""

    positions: tuple[int, ...]
    is_ambiguous: bool = False
    suggestions: tuple[str, ...] = ()


class StreetNames:
    """The names of the streets of a map."""

    def __init__(self, streets: Sequence[Street]) -> None:
        self._pieces: dict[str, list[int]] = {}
        self._spelled: dict[str, str] = {}
        for position, street in enumerate(streets):
            # What was merged from several ways may have several names.
            names = dict.fromkeys([street.name, *street.name.split(";")])
            for folded in dict.fromkeys(fold_name(name) for name in names):
                if folded:
                    self._pieces.setdefault(folded, []).append(position)
            for name in names:
                self._spelled.setdefault(fold_name(name), " ".join(name.split()))
        self._by_key: dict[str, dict[str, None]] = {}
        for folded in self._pieces:
            for key in dict.fromkeys(_keys(folded)):
                self._by_key.setdefault(key, {})[folded] = None
        self._by_letters: dict[str, list[str]] = {}
        for folded in self._pieces:
            for letters in _groups_of_letters(short_name(folded)):
                self._by_letters.setdefault(letters, []).append(folded)

    def find(self, name: str) -> Found:
        """Return the streets of a name.

        First the name as it is, but for case and accents; then without spaces and hyphens;
        then with words abbreviated; then all of it without a house number.
        """
        for text in (name, _NUMBER_AFTER.sub("", name), _NUMBER_BEFORE.sub("", name)):
            folded = fold_name(text)
            if folded in self._pieces:
                return Found(tuple(self._pieces[folded]))
            for key in _keys(folded):
                fitting = tuple(self._by_key.get(key, ()))
                if len(fitting) == 1:
                    return Found(tuple(self._pieces[fitting[0]]))
                if fitting:
                    names = tuple(self._spelled[one] for one in fitting)
                    return Found((), is_ambiguous=True, suggestions=names[:_MOST_SUGGESTED])
        return Found((), suggestions=self._near(name))

    def _near(self, name: str) -> tuple[str, ...]:
        wanted = short_name(fold_name(_NUMBER_AFTER.sub("", name)))
        shared: Counter[str] = Counter()
        for letters in _groups_of_letters(wanted):
            shared.update(self._by_letters.get(letters, ()))
        likely = {short_name(one): one for one, _ in shared.most_common(_MOST_COMPARED)}
        near = difflib.get_close_matches(wanted, likely, n=_MOST_SUGGESTED, cutoff=0.7)
        return tuple(self._spelled[likely[one]] for one in near)


def _keys(folded: str) -> Iterator[str]:
    """Yield keys that a folded name and others like it share, the strictest first."""
    # No key of one kind equals one of the other.
    yield f"={''.join(_WORD.findall(folded.translate(_LETTERS)))}"
    yield f"~{short_name(folded)}"


def short_name(folded: str) -> str:
    """Return a folded name without spaces, its words abbreviated, its umlauts plain."""
    words = _WORD.findall(folded.translate(_LETTERS))
    text = "".join(_short_word(word) for word in words)
    # Köln is Koeln: both become Koln.
    return re.sub(r"(?<=[aou])e", "", text)


def _short_word(word: str) -> str:
    if word in _SHORT:
        return _SHORT[word]
    for ending, short in _ENDINGS.items():
        if word.endswith(ending):
            return word.removesuffix(ending) + short
    return word


def _groups_of_letters(text: str) -> Iterable[str]:
    padded = f" {text} "
    return {padded[start : start + 3] for start in range(max(1, len(padded) - 2))}
