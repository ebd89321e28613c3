import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arcfleet.instance.change import fold_name
from arcfleet.streets.street_map import Street
from arcfleet.streets.street_names import StreetNames

NAMES = [
    *("Hauptstraße", "Königstraße", "Straße des 17. Juni", "Marktplatz", "Mill Lane"),
    *("Southwest 5th Avenue", "Boulevard Saint-Michel", "Rue de l'Église", "Søndergade"),
    *("Oak Street", "Oak Saint", "Northeast Martin Luther King Junior Boulevard"),
    *("10th Street", "Calle Mayor", "Via Roma", "Neue Straße"),
]


def names_of(*names: str) -> StreetNames:
    return StreetNames([Street(tail=1, head=2, metres=9, name=name) for name in names])


KNOWN = names_of(*NAMES)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("hauptstrasse", "Hauptstraße"),
        ("Hauptstr.", "Hauptstraße"),
        ("Haupt-Straße", "Hauptstraße"),
        ("HAUPT STR", "Hauptstraße"),
        ("Hauptstr. 12 a", "Hauptstraße"),
        ("Hauptstraße 3-5", "Hauptstraße"),
        ("Koenigstr", "Königstraße"),
        ("Str. d. 17. Juni", ""),
        ("Strasse des 17. Juni 100", "Straße des 17. Juni"),
        ("Marktpl.", "Marktplatz"),
        ("SW 5th Ave", "Southwest 5th Avenue"),
        ("SW Fifth Ave.", "Southwest 5th Avenue"),
        ("1200 SW 5TH AVE", "Southwest 5th Avenue"),
        ("bd St. Michel", "Boulevard Saint-Michel"),
        ("rue de l eglise", "Rue de l'Église"),
        ("R. de l\u2019Église", "Rue de l'Église"),
        ("sondergade", "Søndergade"),
        ("NE Martin Luther King Jr Blvd", "Northeast Martin Luther King Junior Boulevard"),
        ("Oak Street", "Oak Street"),
        ("10th St", "10th Street"),
        ("C/ Mayor", "Calle Mayor"),
        ("Via Roma, 3", "Via Roma"),
        ("neue str", "Neue Straße"),
    ],
)
def test_names_are_found_as_people_write_them(written: str, name: str) -> None:
    found = [NAMES[position] for position in KNOWN.find(written).positions]
    assert found == [name] * bool(name)


def test_what_fits_several_streets_is_not_matched() -> None:
    found = KNOWN.find("Oak St")
    assert found.positions == ()
    assert (found.is_ambiguous, found.suggestions) == (True, ("Oak Street", "Oak Saint"))


@pytest.mark.parametrize(
    ("written", "suggestion"),
    [
        ("Haupstraße", "Hauptstraße"),
        ("Mil Lane", "Mill Lane"),
        ("SW 5 Ave", "Southwest 5th Avenue"),
        ("Sondergad 7", "Søndergade"),
        ("Martin Luther King Blvd", "Northeast Martin Luther King Junior Boulevard"),
    ],
)
def test_a_name_of_no_street_gets_a_suggestion(written: str, suggestion: str) -> None:
    found = KNOWN.find(written)
    assert (found.positions, found.is_ambiguous) == ((), False)
    assert suggestion in found.suggestions
    assert KNOWN.find("Xyzzy Quux").suggestions == ()


def test_a_street_of_several_names_has_each_of_them() -> None:
    names = names_of("A 1; Main Street", "Main Street", "")
    assert names.find("Main St").positions == (0, 1)
    assert names.find("a 1").positions == (0,)
    assert names.find("A 1; Main Street").positions == (0,)
    assert names.find(" ").positions == ()


@given(
    names=st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6, unique=True)
)
def test_a_name_as_the_map_has_it_always_finds_its_streets(names: list[str]) -> None:
    known = names_of(*names)
    for position, name in enumerate(names):
        if fold_name(name) and ";" not in name:
            assert position in known.find(name).positions


@given(position=st.integers(0, len(NAMES) - 1), data=st.data())
def test_case_accents_and_spaces_do_not_matter(position: int, data: st.DataObject) -> None:
    name = NAMES[position]
    changed = data.draw(st.sampled_from([name.upper(), name.lower(), name.title()]))
    if data.draw(st.booleans()):
        apart = unicodedata.normalize("NFKD", changed)
        changed = "".join(c for c in apart if not unicodedata.combining(c))
    gap = data.draw(st.sampled_from([" ", "  ", "-", ". "]))
    assume("'" not in name or gap != "-")
    assert KNOWN.find(changed.replace(" ", gap)).positions == (position,)
