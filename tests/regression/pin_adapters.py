"""Calls of the package that the pins need, in one place.

The stored values (`pins.json`) hold through any redesign: whoever renames or moves what is
called here changes this module, and never a stored value. Every setting that shapes a value
is spelled out here or in `record_pins`, so that no default of the package decides it. Costs
of learned methods, and of tables made with them, are exact on one machine; on another,
rounding of floats may flip a choice between two near-equal streets.
"""

import contextlib
import hashlib
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import arcfleet.paper  # noqa: F401  (enters the models and methods of the paper)
from arcfleet import METHODS, Stop, check, read, solve

HERE = Path(__file__).parent
INSTANCES = HERE / "instances"
DATA = HERE / "data"
DATA_SETS = (DATA / "task20.npz", DATA / "task30-mixed.npz")

ModelKind = Literal["daam", "s2v-dqn", "vrp-dl"]
#: Tiny models whose first weights are stored: "paper-like" and "shipped-like".
TINY_MODELS = ("paper-like", "shipped-like")


def instance_names() -> list[str]:
    """Return the names of the stored instances, in order."""
    return sorted(path.stem for path in INSTANCES.glob("*.json"))


def classical_methods() -> list[str]:
    """Return the names of all methods that need no model."""
    return [name for name, method in METHODS.items() if not method.is_learned]


def learned_methods() -> list[str]:
    """Return the names of all methods that need a model."""
    return [name for name, method in METHODS.items() if method.is_learned]


def solve_cost(
    instance: str, method: str, seed: int, iterations: int | None
) -> tuple[int, str]:
    """Solve a stored instance, check the plan, and return its cost and a hash of it.

    Parameters
    ----------
    instance
        Name of the instance.
    method
        Name of the method; a learned one uses the shipped model.
    seed
        Seed of the random number generator.
    iterations
        Iterations after which to stop; None for the default stop of the method.
    """
    loaded = read(INSTANCES / f"{instance}.json")
    stop = None if iterations is None else Stop(iterations=iterations)
    options: dict[str, Any] = {"device": "cpu"} if METHODS[method].is_learned else {}
    result = solve(loaded, method, stop=stop, seed=seed, threads=1, **options)
    report = check(loaded, result.solution)
    assert report.ok, f"{method} on {instance}: {report}"
    routes = [
        [[service.link, int(service.reverse)] for service in route.services]
        for route in result.solution.routes
    ]
    text = json.dumps(routes, separators=(",", ":"))
    return result.cost, hashlib.sha256(text.encode()).hexdigest()[:12]


def first_logits(kind: ModelKind, instance: str) -> list[list[float | None]]:
    """Return the logits of the first two decoding steps of a shipped model.

    The first step serves arc 1, which is always allowed, so that no near-tie decides the
    second. Arcs that are not allowed have no logit, None.

    Parameters
    ----------
    kind
        Kind of the shipped model.
    instance
        Name of the instance.
    """
    import torch

    from arcfleet.network import Network
    from arcfleet.neural.batch import batch_from_networks
    from arcfleet.neural.decoding import initial_memory, recall
    from arcfleet.neural.env import action_mask, reset, step
    from arcfleet.neural.solver import load_for_solving

    model = load_for_solving(None, "cpu", kind).model
    network = Network(read(INSTANCES / f"{instance}.json"), 1)
    batch = batch_from_networks(
        [network], device="cpu", mds_dimensions=model.config.mds_dimensions, threads=1
    )
    found: list[list[float | None]] = []
    with torch.no_grad():
        prepared: Any = model.prepare(batch)
        state = reset(batch)
        memory = initial_memory(prepared, 1)
        for _ in range(2):
            known, memory = recall(model, prepared, state, memory)
            logits = model(known, state, action_mask(batch, state))[0, 0].tolist()
            found.append([x if math.isfinite(x) else None for x in logits])
            state = step(batch, state, torch.tensor([[1]]))
    return found


def pretrain_losses(model: str, settings: Mapping[str, Any]) -> list[float]:
    """Pre-train a tiny model on the stored data, and return the loss of each step.

    Parameters
    ----------
    model
        One of `TINY_MODELS`: file of the first weights.
    settings
        Settings of pre-training by name.
    """
    from arcfleet.neural.train.config import PretrainConfig, config_from
    from arcfleet.neural.train.pretrain import pretrain

    weights = DATA / f"{model}.safetensors"
    config = config_from(PretrainConfig, {**settings, **_sizes(weights)})
    with _one_thread(), tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        pretrain(out, config, data=list(DATA_SETS), init=weights, device="cpu")
        return _losses(out)


def finetune_losses(model: str, settings: Mapping[str, Any]) -> list[float]:
    """Fine-tune a tiny model on the stored data, and return the loss of each step.

    Parameters
    ----------
    model
        One of `TINY_MODELS`: file of the first weights.
    settings
        Settings of fine-tuning, or of PPO, by name.
    """
    from arcfleet.neural.train.config import FinetuneConfig, config_from
    from arcfleet.neural.train.finetune import finetune
    from arcfleet.paper.ppo import PpoConfig, ppo

    weights = DATA / f"{model}.safetensors"
    kind, train = (PpoConfig, ppo) if "epochs" in settings else (FinetuneConfig, finetune)
    config: Any = config_from(kind, {**settings, **_sizes(weights)})
    with _one_thread(), tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        # PPO asks for a set on which to test its baseline.
        train(
            out,
            config,
            init=weights,
            data=list(DATA_SETS),
            validation=[DATA_SETS[0]],
            device="cpu",
        )
        return _losses(out)


def table_cells(rows: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Make the table of the paper on the stored data sets by the shipped models.

    Returns the mean cost and the gap in percent by data set and row.

    Parameters
    ----------
    rows
        Names of the rows, with their numbers.
    """
    from arcfleet.paper.commands import Watch
    from arcfleet.paper.measure import MeasureConfig, Selection
    from arcfleet.paper.table import Config, run

    with tempfile.TemporaryDirectory() as folder:
        config = Config(
            sets=DATA_SETS,
            out=Path(folder),
            selection=Selection(rows=tuple(rows), count=0),
            measure=MeasureConfig(seed=0, device="cpu", workers=1, verify=8),
            figures=False,
        )
        records: Any = run(config, Watch()).records
    cells: dict[str, dict[str, dict[str, float]]] = {}
    for record in records:
        row = _PINNED_ROWS.get(record["row"], record["row"])
        cells.setdefault(record["set"], {})[row] = {
            "cost": record["mean_cost"],
            "gap_to_labels": record["gap_percent_to_labels"],
            "gap_to_best_known": record["gap_percent_to_best_known"],
        }
    return cells


#: Names that rows had when the table was recorded.
_PINNED_ROWS = {
    "daam-greedy": "daam-directions",
    "daam": "daam-views",
    "daam-sample=8": "redraw=8",
}


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    # With two threads sums in another order may flip a near-tie between two arcs.
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _sizes(weights: Path) -> dict[str, Any]:
    from arcfleet.neural.checkpoint import load_model, sizes_of

    return {"model": sizes_of(load_model(weights)[0].config)}


def _losses(out: Path) -> list[float]:
    lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    values = [line.get("values", {}) for line in lines]
    return [each["loss"] for each in values if "loss" in each]
