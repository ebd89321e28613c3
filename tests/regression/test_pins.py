"""Behaviour that must not change unnoticed: plans, logits, losses and a table.

Recorded by `record_pins`. Classical methods find the very same routes everywhere. What a
network computes depends on how floats are rounded: the shipped model turns a difference of
2e-7 in an input into one of 0.008 in a logit, which may flip a choice between near-equal
streets. So learned pins are exact where torch and the processor are those of the record,
and elsewhere only near.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.regression.pin_adapters import (
    TINY_MODELS,
    ModelKind,
    classical_methods,
    finetune_losses,
    first_logits,
    instance_names,
    learned_methods,
    pretrain_losses,
    table_cells,
)
from tests.regression.record_pins import (
    FINETUNING,
    LEARNED_INSTANCES,
    LEARNED_METHODS,
    LOGIT_INSTANCES,
    LOGIT_MODELS,
    PINS,
    PRETRAINING,
    ROWS,
    arithmetic,
    classical_costs,
    learned_costs,
)

PINNED: dict[str, Any] = json.loads(PINS.read_text())
SAME_ARITHMETIC = arithmetic() == PINNED["arithmetic"]


def near(pinned: Any, elsewhere: float, rel: float = 1e-4) -> Any:
    """Compare with `rel` where floats are rounded as in the record, else loosely."""
    tolerance = rel if SAME_ARITHMETIC else elsewhere
    return pytest.approx(pinned, rel=tolerance, abs=tolerance)


def same_losses(found: list[float], pinned: list[float]) -> bool:
    """Compare the losses of all steps; elsewhere of the first, before choices differ."""
    steps = len(pinned) if SAME_ARITHMETIC else 1
    return len(found) == len(pinned) and found[:steps] == near(pinned[:steps], 0.02)


def test_every_method_and_instance_is_pinned() -> None:
    assert list(PINNED["classical"]) == instance_names()
    assert len(instance_names()) == 20
    for pins in PINNED["classical"].values():
        assert set(pins) == set(classical_methods())
    assert set(LEARNED_METHODS) == set(learned_methods())
    for pins in PINNED["learned"].values():
        assert set(pins) == set(LEARNED_METHODS)


@pytest.mark.parametrize("instance", instance_names())
def test_plans_of_classical_methods(instance: str) -> None:
    assert classical_costs(instance) == PINNED["classical"][instance]


@pytest.mark.parametrize("instance", LEARNED_INSTANCES)
def test_costs_of_learned_methods(instance: str) -> None:
    found, pinned = learned_costs(instance), PINNED["learned"][instance]
    assert set(found) == set(pinned)
    for method, costs in pinned.items():
        assert found[method] == near(costs, 0.2, rel=0)


@pytest.mark.parametrize("instance", LOGIT_INSTANCES)
@pytest.mark.parametrize("kind", LOGIT_MODELS)
def test_logits_of_shipped_models(kind: ModelKind, instance: str) -> None:
    pinned = PINNED["logits"][kind][instance]
    for found, step in zip(first_logits(kind, instance), pinned, strict=True):
        assert [x is None for x in found] == [x is None for x in step]
        allowed = [x for x in step if x is not None]
        assert [x for x in found if x is not None] == near(allowed, 0.2)


@pytest.mark.parametrize("model", TINY_MODELS)
@pytest.mark.parametrize("case", PRETRAINING)
def test_losses_of_pretraining(case: str, model: str) -> None:
    losses = pretrain_losses(model, PRETRAINING[case])
    assert same_losses(losses, PINNED["pretraining"][model][case])


@pytest.mark.parametrize("model", TINY_MODELS)
@pytest.mark.parametrize("case", FINETUNING)
def test_losses_of_finetuning(case: str, model: str) -> None:
    losses = finetune_losses(model, FINETUNING[case])
    assert same_losses(losses, PINNED["finetuning"][model][case])


def test_the_table() -> None:
    cells, pinned = table_cells(ROWS), PINNED["table"]
    assert {name: set(rows) for name, rows in cells.items()} == {
        name: set(rows) for name, rows in pinned.items()
    }
    for name, rows in pinned.items():
        for row, cell in rows.items():
            for figure, value in cell.items():
                # Gaps are differences of costs, in percent.
                loose = 0.05 * value if figure == "cost" else 5.0
                found = cells[name][row][figure]
                limit = 1e-9 if SAME_ARITHMETIC else loose
                assert found == pytest.approx(value, rel=1e-9, abs=limit), (name, row)
