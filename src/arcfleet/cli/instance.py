"""`arcfleet info`, `convert`, `methods` and `model info`: facts about files and methods."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from arcfleet.cli.options import Command, add_shared, descriptions, file_argument
from arcfleet.cli.output import (
    add_plot,
    check_plot,
    print_either,
    print_facts,
    print_json,
    print_result,
)
from arcfleet.cli.solve import INSTANCE_HELP
from arcfleet.instance.operations import ROUTE_LIMITS

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from arcfleet.instance import Instance
    from arcfleet.methods import Method


def _info_options(parser: ArgumentParser) -> None:
    file_argument(parser, "instance", INSTANCE_HELP)
    add_plot(parser)
    add_shared(parser, "json")


def _info(options: Namespace) -> int:
    from arcfleet.instance.diagnose import diagnose
    from arcfleet.instance.diagnose_fleet import stuck_vehicles
    from arcfleet.instance.files import read

    check_plot(options.plot)
    instance = read(options.instance)
    problems = [problem.message for problem in diagnose(instance)]
    idle = [] if problems else list(stuck_vehicles(instance).values())
    facts: dict[str, object] = {
        "name": instance.name,
        "nodes": len(instance.nodes),
        "links": len(instance.links),
        "required": len(instance.required),
        "one_way": sum(link.one_way for link in instance.links),
        "capacity": instance.capacity,
        "depot": instance.depot,
        "total_demand": instance.total_demand,
        **(
            {"least_trips": instance.least_trips}
            if instance.facilities
            else {"least_routes": instance.least_routes}
        ),
        "fleet_limit": instance.fleet_limit,
        "route_cost": instance.route_cost,
        "cost_unit": instance.cost_unit or None,
        "turn_rules": instance.describe_turn_rules() if instance.has_turn_rules else None,
    }
    facts |= _operations(instance)
    if options.plot is not None:
        from arcfleet.report.plot import plot

        plot(instance, None, options.plot)
    if options.json:
        print_json(facts | _fleet(instance) | {"problems": problems, "idle": idle})
        return 0
    print_facts(facts | _fleet_lines(instance))
    for problem in problems:
        print_result(f"problem       {problem}")
    for reason in idle:
        print_result(f"idle          {reason}")
    return 0


def _operations(instance: Instance) -> dict[str, object]:
    """Return what the instance asks for beyond the classical problem."""
    facts: dict[str, object] = {}
    if instance.operations:
        facts["operations"] = ", ".join(instance.operations)
    limits = {field: getattr(instance, field) for field in ROUTE_LIMITS}
    return facts | {field: limit for field, limit in limits.items() if limit is not None}


def _fleet(instance: Instance) -> dict[str, object]:
    """Return vehicle types and facilities, for programs."""
    return {
        field: [asdict(item) for item in getattr(instance, field)]
        for field in ("vehicles", "facilities")
        if getattr(instance, field)
    }


def _fleet_lines(instance: Instance) -> dict[str, object]:
    """Return a line for each vehicle type and facility, for people."""
    lines: dict[str, object] = {}
    for number, vehicle in enumerate(instance.vehicles, start=1):
        start, end = vehicle.depots
        depots = f"depot {start}" if end == start else f"depot {start}, end {end}"
        properties = vehicle.describe().removeprefix(vehicle.name)
        lines[f"vehicle_{number}"] = f"{vehicle.name}, {depots}{properties}"
    for number, facility in enumerate(instance.facilities, start=1):
        name = f"{facility.name}, " if facility.name else ""
        lines[f"facility_{number}"] = f"{name}node {facility.node}, cost {facility.cost}"
    return lines


def _convert_options(parser: ArgumentParser) -> None:
    from arcfleet.instance.formats import FORMATS

    written = {name: each for name, each in FORMATS.items() if each.write is not None}
    known = dict.fromkeys(x for each in written.values() for x in each.suffixes)
    suffixes = ", ".join(known)
    file_argument(parser, "input", INSTANCE_HELP, "INPUT")
    file_argument(parser, "output", "file to write", "OUTPUT")
    parser.add_argument(
        "--format",
        choices=list(written),
        help=f"format of OUTPUT (default: by its suffix, {suffixes})",
    )
    add_shared(parser, "json")


def _convert(options: Namespace) -> int:
    from arcfleet.instance.files import format_of, read, write

    instance = read(options.input)
    write(instance, options.output, options.format)
    if options.json:
        file_format = options.format or format_of(options.output, instance)
        print_json({"file": str(options.output), "format": file_format})
    return 0


def _methods_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "method",
        nargs="?",
        metavar="NAME",
        help="method whose parameters to list (default: list all methods)",
    )
    add_shared(parser, "json")


def _methods(options: Namespace) -> int:
    from arcfleet.methods import DEFAULT_METHOD, METHODS, find_method
    from arcfleet.report.tables import table

    if options.method is not None:
        return _parameters(options, find_method(options.method))
    methods = [
        {
            "name": m.name,
            "summary": m.summary,
            "operations": m.operations,
            "warm_start": m.warm_start,
        }
        for m in METHODS.values()
    ]
    rows = [
        (
            method.name,
            "yes" if method.operations else "no",
            "yes" if method.warm_start else "no",
            method.summary + (" [default]" if name == DEFAULT_METHOD else ""),
        )
        for name, method in METHODS.items()
    ]
    text = table(rows, ("method", "operations", "warm start", "description"))
    text += (
        "\n\noperations: vehicle types, facilities, a longest route, pins, locked routes, "
        "balance\nwarm start: takes a plan to start from (--start)"
    )
    print_either(options, {"default": DEFAULT_METHOD, "methods": methods}, text)
    return 0


def _parameters(options: Namespace, method: Method) -> int:
    """Print the parameters of a method."""
    from arcfleet.report.tables import table

    settings = {} if method.settings is None else asdict(method.settings)
    defaults = {name: getattr(value, "name", value) for name, value in settings.items()}
    facts = {"name": method.name, "summary": method.summary, "parameters": defaults}
    text = f"{method.name}: {method.summary}"
    if defaults:
        texts = descriptions(type(method.settings))
        rows = [(name, value, texts.get(name, "")) for name, value in defaults.items()]
        text += "\n\n" + table(rows, ("parameter", "default", "description"))
    else:
        text += "\n\nIt has no parameters."
    print_either(options, facts, text)
    return 0


def _model_options(parser: ArgumentParser) -> None:
    text = "model file (default: the model that comes with arcfleet)"
    file_argument(parser, "model", text, nargs="?")
    add_shared(parser, "json")


#: Names of facts in files from before phases were called so.
_FACTS = {"kind": "phase"}


def _model(options: Namespace) -> int:
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
        **{f"fact {_FACTS.get(x, x)}": value for x, value in info.facts.items()},
    }
    print_facts(facts)
    return 0


INFO = Command(
    name="info",
    summary="show the size and properties of an instance",
    options=_info_options,
    run=_info,
    epilog="""\
example:
  arcfleet info example:denver --plot denver.png

Also names what makes an instance infeasible, such as a street that cannot be reached.
""",
)
CONVERT = Command(
    name="convert",
    summary="write an instance in another file format",
    options=_convert_options,
    run=_convert,
    epilog="""\
example:
  arcfleet convert town.dat town.json
""",
)
METHODS = Command(
    name="methods",
    summary="list the methods of solve, or the parameters of one",
    options=_methods_options,
    run=_methods,
    epilog="""\
examples:
  arcfleet methods
  arcfleet methods ruin-recreate    parameters of solve --set
""",
)
MODEL = Command(
    name="model",
    summary="inspect models of the learned solver",
    commands=(
        Command(
            name="info",
            summary="show the configuration and training facts of a model file",
            options=_model_options,
            run=_model,
            epilog="""\
examples:
  arcfleet model info
  arcfleet model info runs/first/model.safetensors --json

Every byte of the file is verified against its checksum.
""",
        ),
    ),
)
