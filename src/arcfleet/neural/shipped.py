"""Where the models lie that come with the package."""

from __future__ import annotations

from pathlib import Path

from arcfleet.errors import OptionError

SHIPPED_MODEL = Path(__file__).parent / "weights" / "daam.safetensors"


def shipped_model(kind: str) -> Path:
    """Give the place of the model of a kind; it need not be there."""
    if kind == "daam":
        return SHIPPED_MODEL
    return SHIPPED_MODEL.with_name(f"{kind}.safetensors")


def model_path(model: Path | str | None, kind: str = "daam") -> Path:
    """Give the model file to use: the one that is named, or the one that is shipped.

    Parameters
    ----------
    model
        The file, or None.
    kind
        Of model that is wanted: "daam", "s2v-dqn" or "vrp-dl".

    Raises
    ------
    OptionError
        If none is named and none is shipped.
    """
    if model is not None:
        if not isinstance(model, str | Path):
            raise OptionError(
                f"expected the path of a model file, got {type(model).__name__}"
            )
        return Path(model)
    shipped = shipped_model(kind)
    if not shipped.is_file():
        raise OptionError(
            f"expected a model file of kind {kind!r}, got none, and none comes with this "
            "version of arcfleet: name one (model=..., on the command line --model FILE)"
        )
    return shipped
