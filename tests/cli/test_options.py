from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from arcfleet.cli.options import (
    add_config,
    attach_coordinates,
    config_from,
    given_options,
    positive_number,
    whole_number,
)
from arcfleet.errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of a model.

    Parameters
    ----------
    width
        Width of the embeddings. Must be even.
    """

    width: int = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiny:
    """Sizes of an even smaller model.

    Parameters
    ----------
    layers
        Number of layers.
    norm
        Name of the norm.
    """

    layers: int = 3
    norm: str = "rms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """Sizes of a smaller model.

    Parameters
    ----------
    depth
        Number of layers.
    heads
        Number of heads.
    tiny
        Sizes of an even smaller model.
    """

    depth: int = 9
    heads: int = 8
    tiny: Tiny = field(default_factory=lambda: Tiny(layers=5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Settings of any run.

    Parameters
    ----------
    seed
        Seed of the random number generator.
    minutes
        Time limit.
    """

    seed: int = 0
    minutes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Training(Common):
    """Settings of training.

    Parameters
    ----------
    small
        Sizes of a smaller model.
    model
        Sizes of the model.
    data
        Data sets.
    rate, decay
        Learning rate; its decay. Both fall.
    order
        Order of the routes.
    compile
        Whether to use torch.compile at 100 %.
    EMA
        Not a field.

    Raises
    ------
    OptionError
        If the seed is 13.
    """

    data: tuple[Path, ...]
    out: Path | None = None
    model: Sizes = field(default_factory=Sizes)
    small: Small = field(default_factory=lambda: Small(depth=2, tiny=Tiny(layers=6)))
    rate: float = 7e-4
    decay: float = field(default=0.5, metadata={"metavar": "D"})
    order: Literal["near", "far"] = "far"
    compile: bool = False
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the seed."""
        if self.seed == 13:
            raise OptionError("expected another seed than 13")


def parser() -> ArgumentParser:
    made = ArgumentParser(prog="x")
    add_config(made, Training, toml=True)
    return made


def options(*words: object) -> Namespace:
    return parser().parse_args([str(word) for word in words])


def test_options_of_every_type() -> None:
    given = options(
        *("--data", "a", "b", "--out", "c", "--width", 16, "--rate", 1, "--order", "near"),
        *("--compile", "--weights", 1, 2.5, "--minutes", 3, "--seed", 4),
    )
    assert config_from(given, Training) == Training(
        data=(Path("a"), Path("b")),
        out=Path("c"),
        model=Sizes(width=16),
        rate=1.0,
        order="near",
        compile=True,
        weights=(1.0, 2.5),
        minutes=3.0,
        seed=4,
    )


def test_defaults_of_a_part_are_those_of_the_whole() -> None:
    made = config_from(options("--data", "a", "--heads", 4, "--norm", "no"), Training)
    assert made.small == Small(depth=2, heads=4, tiny=Tiny(layers=6, norm="no"))


def test_what_was_not_given_is_not_there() -> None:
    given = options("--data", "a", "--width", 4)
    assert given_options(given, Training) == {"data": (Path("a"),), "model": {"width": 4}}
    assert config_from(options("--data", "a"), Training) == Training(data=(Path("a"),))


def test_a_wrong_value_is_refused_by_the_dataclass() -> None:
    with pytest.raises(OptionError, match="expected another seed than 13"):
        config_from(options("--data", "a", "--seed", 13), Training)


def test_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        options()
    assert "--data" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("--seed", "-1"), ("--seed", "many"), ("--rate", "x"), ("--order", "up")]
)
def test_wrong_usage(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit, match="2"):
        options(*words)


def test_help_is_the_first_sentence_and_the_default_of_the_dataclass() -> None:
    text = " ".join(parser().format_help().split())
    for wanted in (
        "--seed N seed of the random number generator (default: 0)",
        "--minutes X time limit --",
        "--data FILE [FILE ...] data sets --",
        "--rate X learning rate; its decay (default: 0.0007)",
        "--decay D learning rate; its decay (default: 0.5)",
        "--order {near,far} order of the routes (default: far)",
        "--compile, --no-compile whether to use torch.compile at 100 %",
        "model: --width N width of the embeddings (default: 128)",
        "small: --depth N number of layers (default: 2)",
        "tiny: --layers N number of layers (default: 6)",
    ):
        assert wanted in text, wanted


def test_a_nested_dataclass_without_options_and_a_positional() -> None:
    @dataclass(frozen=True)
    class Sets:
        sets: tuple[Path, ...] = field(metadata={"positional": True, "metavar": "SET"})
        sizes: Sizes = field(default_factory=Sizes)

    # Types of a class within a function are not seen from its module.
    Sets.__annotations__.update(sets=tuple[Path, ...], sizes=Sizes)
    made = ArgumentParser()
    add_config(made, Sets, skip=["sizes"])
    given = made.parse_args(["a", "b"])
    assert config_from(given, Sets) == Sets((Path("a"), Path("b")))
    with pytest.raises(SystemExit):
        made.parse_args(["a", "--width", "3"])


def test_positionals_that_may_be_left_out() -> None:
    @dataclass(frozen=True)
    class Sets:
        model: Literal["a", "b"] = field(default="a", metadata={"positional": True})
        sets: tuple[Path, ...] = field(default=(), metadata={"positional": True})

    Sets.__annotations__.update(model=Literal["a", "b"], sets=tuple[Path, ...])
    made = ArgumentParser()
    add_config(made, Sets)
    for words in ([], ["b"], ["b", "x", "y"]):
        made_config = config_from(made.parse_args(words), Sets)
        assert made_config == Sets((words or ["a"])[0], tuple(map(Path, words[1:])))  # type: ignore[arg-type]


def test_places_in_the_west() -> None:
    words = ["--depot", "-71.3,42.5", "--bbox=1,2,3,4", "-3", "-o", "-1,2"]
    assert attach_coordinates(words) == ["--depot=-71.3,42.5", *words[2:]]


@pytest.mark.parametrize(
    ("parse", "least", "texts"),
    [
        (whole_number, 0, ["-5", "x", "", "2.5", "²"]),
        (positive_number, 1, ["-5", "x", "0", "00"]),
    ],
)
def test_wrong_whole_numbers_say_what_is_the_least(
    parse: Callable[[str], int], least: int, texts: list[str]
) -> None:
    assert parse("7") == 7
    for text in texts:
        with pytest.raises(ArgumentTypeError) as caught:
            parse(text)
        message = f"expected a whole number of at least {least}, got {text!r}"
        assert str(caught.value) == message
