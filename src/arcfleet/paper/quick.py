"""Small inputs for every experiment, made on the fly: a check that the whole chain runs.

What comes out says nothing of the methods: the models have hardly been trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from arcfleet.datasets import label_dataset, make_dataset
from arcfleet.instance.files import write
from arcfleet.paper.report import make_folder
from arcfleet.streets.scene import SceneRules, cut_scene
from arcfleet.streets.synthetic import SyntheticSettings, synthetic_streets

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.neural.train.loop import Trained
    from arcfleet.streets.street_arrays import Split


_SCALES = ("task20", "task30")

_COUNTS: dict[Split, int] = {"train": 16, "validation": 4, "test": 6}

_SCENES = 4

#: For `--pretrain-config` and `--finetune-config`.
TINY_TRAINING = """\
steps = {steps}
tokens = 2000
rollout_tokens = 2000
samples = 2
decision_steps = 2
validations = 2
log_steps = 1
[model]
width = 16
layers = 1
heads = 2
feed_forward = 16
"""

_ONLY_FINETUNING = ("rollout_tokens", "samples")


class QuickFiles(NamedTuple):
    """What `make_quick_files` makes.

    Parameters
    ----------
    train, validation, test
        Labelled data sets, one for each scale.
    whole
        The first test set with more instances, which have no labels.
    models
        Model files by the name of the model.
    pretrain_config, finetune_config
        Settings of training.
    scenes
        Instance files.
    """

    train: list[Path]
    validation: list[Path]
    test: list[Path]
    whole: Path
    models: dict[str, Path]
    pretrain_config: Path
    finetune_config: Path
    scenes: list[Path]


def make_quick_files(folder: Path) -> QuickFiles:
    """Make small data sets, models and scenes in a folder; what is there is kept."""
    make_folder(folder)
    sets: dict[Split, list[Path]] = {}
    for split, count in _COUNTS.items():
        for scale in _SCALES:
            path = folder / f"{scale}-{split}.npz"
            dataset = make_dataset(path, scale, count=count, split=split)
            label_dataset(dataset, iterations=300)
            sets.setdefault(split, []).append(path)
    whole = folder / "task20-whole.npz"
    make_dataset(whole, "task20", count=_COUNTS["test"] + 4, split="test")
    configs = [folder / "pretrain.toml", folder / "finetune.toml"]
    settings = TINY_TRAINING.format(steps=3).splitlines()
    for path, dropped in zip(configs, (_ONLY_FINETUNING, ()), strict=True):
        lines = [line for line in settings if not line.startswith(dropped or ("#",))]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return QuickFiles(
        train=sets["train"],
        validation=sets["validation"],
        test=sets["test"],
        whole=whole,
        models=_make_models(folder, sets["train"][0], *configs),
        pretrain_config=configs[0],
        finetune_config=configs[1],
        scenes=_make_scenes(folder),
    )


def _make_models(
    folder: Path, data: Path, pretrain_config: Path, finetune_config: Path
) -> dict[str, Path]:
    """Train a model of each kind for a few steps; a run that was stopped goes on."""
    import tomllib

    from arcfleet.neural.train.config import FinetuneConfig, PretrainConfig, config_from
    from arcfleet.neural.train.finetune import finetune
    from arcfleet.neural.train.pretrain import pretrain
    from arcfleet.paper.baselines.train import TRAININGS, train_baseline

    def is_begun(name: str) -> bool:
        return (folder / name / "config.json").exists()

    models = {}

    def keep(name: str, trained: Trained) -> None:
        if not trained.finished:
            raise KeyboardInterrupt
        models[name] = trained.model_file

    settings = tomllib.loads(pretrain_config.read_text(encoding="utf-8"))
    keep(
        "daam-sl",
        pretrain(
            folder / "daam-sl",
            config_from(PretrainConfig, settings),
            data=[data],
            device="cpu",
            resume=is_begun("daam-sl"),
        ),
    )
    settings = tomllib.loads(finetune_config.read_text(encoding="utf-8"))
    keep(
        "daam",
        finetune(
            folder / "daam",
            config_from(FinetuneConfig, settings),
            init=models["daam-sl"],
            data=[data],
            device="cpu",
            resume=is_begun("daam"),
        ),
    )
    settings = {"steps": 2, "tokens": 2000, "model": {"width": 16}}
    for name, training in TRAININGS.items():
        config = config_from(training, settings)
        run, resume = folder / name, is_begun(name)
        keep(name, train_baseline(run, config, data=[data], device="cpu", resume=resume))
    return models


def _make_scenes(folder: Path) -> list[Path]:
    scenes = []
    for seed in range(_SCENES):
        path = folder / f"scene-{seed + 1}.json"
        street_map = synthetic_streets(SyntheticSettings(columns=6, rows=6), seed=seed)
        rules = SceneRules(capacity=100, demand=(5, 10), seed=seed, name=f"town {seed + 1}")
        write(cut_scene(street_map, rules).instance, path)
        scenes.append(path)
    return scenes
