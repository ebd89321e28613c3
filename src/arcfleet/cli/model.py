"""`arcfleet model info`: the contents of a model file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import Command, add_shared
from arcfleet.cli.output import print_facts, print_json

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def _options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "model",
        type=Path,
        metavar="FILE",
        nargs="?",
        help="model file (default: the model that comes with arcfleet)",
    )
    add_shared(parser, "json")


def _run(options: Namespace) -> int:
    from arcfleet.neural.checkpoint import model_path, require_packages

    path = model_path(options.model)
    require_packages("reading a model")
    from arcfleet.neural.checkpoint import read_model_info

    info = read_model_info(path)
    if options.json:
        known = asdict(info)
        print_json({"file": str(path), "kind": known.pop("model_type"), **known})
        return 0
    facts: dict[str, object] = {
        "file": path,
        "kind": info.model_type,
        "parameters": info.parameters,
        "bytes": info.bytes,
        "dtype": info.dtype,
        **asdict(info.config),
        **{f"fact {name}": value for name, value in info.facts.items()},
    }
    print_facts(facts)
    return 0


MODEL = Command(
    name="model",
    summary="inspect models of the learned solver",
    commands=(
        Command(
            name="info",
            summary="show the configuration and training facts of a model file",
            options=_options,
            run=_run,
            epilog="""\
examples:
  arcfleet model info
  arcfleet model info runs/first/model.safetensors --json

Every byte of the file is verified against its checksum.
""",
        ),
    ),
)
