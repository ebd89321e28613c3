"""Models small enough for tests, with weights drawn at random."""

from pathlib import Path
from typing import Any

from arcfleet.neural.model import DaamConfig
from arcfleet.paper.model import PublishedDaamConfig

# torch is imported only where a model is made.

SIZES: dict[str, Any] = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 16}


def tiny_config(mds_dimensions: int = 8) -> DaamConfig:
    """Sizes of the one tiny model of all tests."""
    from arcfleet.neural.model import DaamConfig

    return DaamConfig(**SIZES, mds_dimensions=mds_dimensions)


def tiny_published_config(mds_dimensions: int = 8, **words: Any) -> PublishedDaamConfig:
    """The same for the published model; `words` are its norm and its inputs."""
    from arcfleet.paper.model import PublishedDaamConfig

    return PublishedDaamConfig(**SIZES, mds_dimensions=mds_dimensions, **words)


def tiny_model_file(folder: Path, model_type: str = "daam") -> Path:
    """Write a model of a type."""
    import torch

    import arcfleet.paper  # noqa: F401  (enters its model types)
    from arcfleet.neural.checkpoint import find_model_type, save_model

    config: Any
    if model_type == "daam":
        config = tiny_config()
    elif model_type == "daam-paper":
        config = tiny_published_config(norm="rms")
    else:
        config = find_model_type(model_type).config_class(width=16)
    build: Any = find_model_type(model_type).model_class
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = build(config)
    if model_type == "daam":
        with torch.no_grad():
            # At first every arc looks at all alike, so they hardly differ and rounding
            # would decide. So that near ones count more:
            model.encoder[0].slopes.fill_(-3.0)
    name = "tiny" if model_type == "daam" else f"tiny-{model_type}"
    path = folder / f"{name}.safetensors"
    save_model(model, path, {"trained_on": "nothing"})
    return path
