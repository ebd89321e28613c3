"""`arcfleet solve-many` and `merge`: many instances, perhaps in parts on many machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.cli import HAS_PAPER
from arcfleet.cli.options import (
    Command,
    add_executor,
    add_shard,
    add_shared,
    file_argument,
    option,
)
from arcfleet.cli.output import count_of, note, print_either
from arcfleet.cli.progress import count_progress
from arcfleet.cli.solve import add_limits
from arcfleet.errors import FileError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from arcfleet.batch_file import PlanLine
    from arcfleet.datasets.shards import PartForm
    from arcfleet.methods import Method

#: Failures that are named one by one.
_MOST_NAMED = 20


# --- solve-many -------------------------------------------------------------------------


def _options(parser: ArgumentParser) -> None:
    text = "instances, and data sets (.npz), which hold many"
    file_argument(parser, "files", text, nargs="+")
    text = "JSON lines of the plans; plans in it are reused"
    option(parser, "--out", text, Path, "PLANS", required=True)
    add_shard(parser, "solve a part of the instances")
    add_executor(parser, "number of processes")
    option(
        parser, "--method", "method, see `arcfleet methods`", str, "NAME", default="auto"
    )
    text = "set a parameter of the method, see `arcfleet methods NAME`; repeatable"
    option(parser, "--set", text, str, "NAME=VALUE", action="append", default=[])
    add_shared(parser, "seed", "model", "device", "quiet", "json")
    stop = parser.add_argument_group("stop rule of each search (default: the method's own)")
    add_limits(stop, "stop after S seconds")


def _run(options: Namespace) -> int:
    from arcfleet.batch import setup
    from arcfleet.batch_file import solve_to_file
    from arcfleet.methods import find_method, parse_params
    from arcfleet.search import Stop
    from arcfleet.workers import check_workers

    check_workers(options.workers, options.executor, name="--workers")
    method = find_method(options.method)
    stop = Stop(
        seconds=options.time,
        iterations=options.iterations,
        no_improvement=options.no_improvement,
    )
    how = setup(
        method,
        None if stop.is_open else stop,
        params=parse_params(method, options.set),
        seed=options.seed,
        model=options.model,
        device=options.device,
    )
    with count_progress("instances", hidden=options.quiet, lines=True) as progress:
        lines, count = solve_to_file(
            options.files,
            options.out,
            how,
            model_sha256=_model_checksum(method, options.model),
            shard=options.shard,
            workers=options.workers,
            executor=options.executor,
            progress=progress,
        )
    return _report(options, lines, count)


def _model_checksum(method: Method, model: Path | None) -> str | None:
    """Return the checksum of the model file that a learned method solves with."""
    if method.model_type is None:
        return None
    import hashlib

    from arcfleet._files import read_bytes
    from arcfleet.neural.checkpoint import model_path

    return hashlib.sha256(read_bytes(model_path(model, method.model_type))).hexdigest()


def _report(options: Namespace, lines: Sequence[PlanLine], count: int) -> int:
    """Print what there is, on stderr what is not, and return the exit code."""
    failed = [line for line in lines if line.error is not None]
    costs = [line.cost for line in lines if line.cost is not None]
    left = count - len(lines)
    part = "" if options.shard is None else f" of part {options.shard}"
    text = f"{options.out}: {count_of(len(costs), 'plan')}{part}"
    if costs:
        text += f", mean cost {sum(costs) / len(costs):.1f}"
    facts = {
        "file": str(options.out),
        "shard": None if options.shard is None else str(options.shard),
        "instances": count,
        "plans": len(costs),
        "failed": [{"instance": x.instance, "error": x.error} for x in failed],
        "mean_cost": sum(costs) / len(costs) if costs else None,
    }
    print_either(options, facts, text)
    _note_failures(failed)
    if left:
        note(
            f"interrupted, {left} of {count} instances are left; the same command resumes "
            f"from {options.out}"
        )
    return 1 if failed or left else 0


def _note_failures(failed: Sequence[PlanLine]) -> None:
    for line in failed[:_MOST_NAMED]:
        note(f"{line.source}: {line.error}")
    if len(failed) > _MOST_NAMED:
        note(f"and {len(failed) - _MOST_NAMED} more failures, see `error` in the file")


SOLVE_MANY = Command(
    name="solve-many",
    summary="plan the routes of many instances into one file",
    options=_options,
    run=_run,
    epilog="""\
examples:
  arcfleet solve-many towns/*.dat --time 10 --workers 4 --out plans.jsonl
  arcfleet solve-many task100.npz --iterations 5000 --out plans.jsonl
  arcfleet solve-many towns/*.dat --time 10 --shard 3/10 --out parts/3.jsonl
  arcfleet merge plans.jsonl parts/*.jsonl

Each search has one thread. The independent checker verifies every plan; PLANS has a line
for each, with the plan as a plan file holds it. The same command resumes after Ctrl-C or a
kill, and tries again what could not be solved. Exit code 1 if anything is left.
""",
)


# --- merge ------------------------------------------------------------------------------


def _merge_options(parser: ArgumentParser) -> None:
    file_argument(parser, "out", "file to write; labels are written as .npz", "OUT")
    text = "files of all parts, made with --shard by one command"
    file_argument(parser, "parts", text, "PART", nargs="+")
    add_shared(parser, "json")


def _merge(options: Namespace) -> int:
    from arcfleet.datasets.labels import LABEL_PARTS, write_merged_labels
    from arcfleet.datasets.shards import merge
    from arcfleet.datasets.store import format_in, write_store

    if options.out.exists():
        raise FileError(
            options.out, "expected no file of that name yet, found one: name another"
        )
    forms = {form.form.name: form for form in _forms()}
    name = format_in(options.parts[0])
    if name == LABEL_PARTS.form.name:
        labels = merge(options.parts, LABEL_PARTS)
        count = write_merged_labels(options.out, labels)
        what, failed = "labels", 0
    elif name in forms:
        form = forms[name]
        merged = merge(options.parts, form)
        write_store(options.out, form.form, merged.identity, merged.records)
        count = len({task for x in merged.records for task in form.tasks(x)})
        what = form.what
        failed = sum(getattr(x, "error", None) is not None for x in merged.records)
    else:
        raise FileError(
            options.parts[0],
            "expected a part of solve-many, dataset label, bench or paper table, made with "
            "--shard, found something else",
        )
    facts = {"file": str(options.out), "parts": len(options.parts), what: count}
    text = f"{options.out}: {count} {what} of {count_of(len(options.parts), 'part')}"
    if failed:
        facts["failed"] = failed
        text += f", {failed} of them without a plan"
    print_either(options, facts, text)
    return 0


def _forms() -> list[PartForm[Any]]:
    """Return the formats of parts but that of labels."""
    from arcfleet.batch_file import PLAN_PARTS
    from arcfleet.bench.run import RUN_PARTS

    forms: list[PartForm[Any]] = [PLAN_PARTS, RUN_PARTS]
    if HAS_PAPER:
        from arcfleet.paper.series import COST_PARTS

        forms.append(COST_PARTS)
    return forms


MERGE = Command(
    name="merge",
    summary="join the files of parts made with --shard into one",
    options=_merge_options,
    run=_merge,
    epilog="""\
examples:
  arcfleet merge plans.jsonl parts/plans-*.jsonl
  arcfleet merge task20.labels.npz parts/labels-*.jsonl
  arcfleet merge runs.jsonl parts/runs-*.jsonl

Checks that all parts are there, each once, that they are of one command with the same
instances and settings, and that no task is missing or doubled. OUT is the file that the
command writes without --shard, which reuses it.
""",
)
