"""Behaviour that must not change unnoticed: plans, logits, losses and a table.

Recorded by `record_pins`. Classical methods find the very same routes everywhere. Of
learned ones only costs are pinned: on another processor rounding of floats may flip a
choice between two near-equal streets.
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
    classical_costs,
    learned_costs,
)

PINNED: dict[str, Any] = json.loads(PINS.read_text())


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
    assert learned_costs(instance) == PINNED["learned"][instance]


@pytest.mark.parametrize("instance", LOGIT_INSTANCES)
@pytest.mark.parametrize("kind", LOGIT_MODELS)
def test_logits_of_shipped_models(kind: ModelKind, instance: str) -> None:
    pinned = PINNED["logits"][kind][instance]
    for found, step in zip(first_logits(kind, instance), pinned, strict=True):
        assert [x is None for x in found] == [x is None for x in step]
        allowed = [x for x in step if x is not None]
        assert [x for x in found if x is not None] == pytest.approx(
            allowed, rel=1e-4, abs=1e-4
        )


@pytest.mark.parametrize("model", TINY_MODELS)
@pytest.mark.parametrize("case", PRETRAINING)
def test_losses_of_pretraining(case: str, model: str) -> None:
    losses = pretrain_losses(model, PRETRAINING[case])
    assert losses == pytest.approx(PINNED["pretraining"][model][case], rel=1e-4)


@pytest.mark.parametrize("model", TINY_MODELS)
@pytest.mark.parametrize("case", FINETUNING)
def test_losses_of_finetuning(case: str, model: str) -> None:
    losses = finetune_losses(model, FINETUNING[case])
    assert losses == pytest.approx(PINNED["finetuning"][model][case], rel=1e-4)


def test_the_table() -> None:
    cells, pinned = table_cells(ROWS), PINNED["table"]
    assert {name: set(rows) for name, rows in cells.items()} == {
        name: set(rows) for name, rows in pinned.items()
    }
    for name, rows in pinned.items():
        for row, cell in rows.items():
            assert cells[name][row] == pytest.approx(cell, rel=1e-9, abs=1e-9), (name, row)
