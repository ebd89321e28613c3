from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from arcfleet.cli.options import (
    add_config,
    attach_coordinates,
    config_from,
    given_options,
    make_config,
)
from arcfleet.errors import FileError, OptionError


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
    decay: float = field(default=0.5, metadata={"help": "EMA decay", "metavar": "D"})
    order: Literal["near", "far"] = "far"
    compile: bool = False
    hidden: int = field(default=3, metadata={"option": False})
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the seed."""
        if self.seed == 13:
            raise OptionError("expected another seed than 13")


def parser(*, toml: bool = True) -> ArgumentParser:
    made = ArgumentParser(prog="x")
    add_config(made, Training, toml=toml)
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
    assert given_options(options("--width", 4), Training) == {"model": {"width": 4}}
    assert config_from(options("--data", "a"), Training) == Training(data=(Path("a"),))


def test_options_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('data = ["a"]\nrate = 1\nseed = 2\nhidden = 9\n[model]\nwidth = 8\n')
    made = config_from(options("--config", file, "--seed", 7), Training)
    assert made == Training(
        data=(Path("a"),), rate=1.0, seed=7, hidden=9, model=Sizes(width=8)
    )
    # The names of all settings differ, so that tables may be left out.
    file.write_text('width = 8\ndata = ["a"]\n[small]\nheads = 3\n')
    made = config_from(options("--config", file), Training)
    assert made.model == Sizes(width=8)
    assert made.small == Small(depth=2, heads=3, tiny=Tiny(layers=6))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rats = 1", "expected a known setting, got rats: did you mean rate?"),
        ("xyz = 1", "expected a known setting, got xyz: known are seed, minutes"),
        ("[model]\nwidht = 1", "got model.widht: did you mean model.width?"),
        ("model = 3", "expected model to be a table, got 3"),
        ("rate = ", "expected a TOML file, found: "),
    ],
)
def test_the_file_is_named_with_what_is_wrong(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(FileError) as caught:
        config_from(options("--config", file, "--data", "a"), Training)
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 1.5}, "expected seed to be a whole number, got 1.5"),
        ({"seed": True}, "expected seed to be a whole number, got True"),
        ({"rate": "fast"}, "expected rate to be a number, got 'fast'"),
        ({"compile": 1}, "expected compile to be true or false, got 1"),
        ({"order": "up"}, "expected order to be one of near, far, got 'up'"),
        ({"data": "a"}, "expected data to be a list, got 'a'"),
        ({"out": 3}, "expected out to be the name of a file, got 3"),
        ({"seed": 13}, "expected another seed than 13"),
    ],
)
def test_settings_of_the_wrong_type(settings: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        make_config(Training, {"data": ["a"]} | settings)
    assert str(caught.value) == message


def test_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OptionError, match="expected --data, or data in the file of --conf"):
        config_from(options("--seed", 1), Training)
    with pytest.raises(SystemExit, match="2"):
        parser(toml=False).parse_args([])
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
        "--decay D EMA decay (default: 0.5)",
        "--order {near,far} order of the routes (default: far)",
        "--compile, --no-compile whether to use torch.compile at 100 %",
        "model: --width N width of the embeddings (default: 128)",
        "small: --depth N number of layers (default: 2)",
        "tiny: --layers N number of layers (default: 6)",
    ):
        assert wanted in text, wanted
    assert "--hidden" not in text


def test_a_field_without_an_option_and_a_positional() -> None:
    @dataclass(frozen=True)
    class Sets:
        sets: tuple[Path, ...] = field(metadata={"positional": True, "metavar": "SET"})
        count: int = 3

    # Types of a class within a function are not seen from its module.
    Sets.__annotations__.update(sets=tuple[Path, ...], count=int)
    made = ArgumentParser()
    add_config(made, Sets, skip=["count"])
    given = made.parse_args(["a", "b"])
    assert config_from(given, Sets) == Sets((Path("a"), Path("b")))
    with pytest.raises(SystemExit):
        made.parse_args(["a", "--count", "3"])


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
