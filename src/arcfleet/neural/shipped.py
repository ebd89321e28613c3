"""Where the model lies that comes with the package."""

from __future__ import annotations

from pathlib import Path

from arcfleet.errors import OptionError

SHIPPED_MODEL = Path(__file__).parent / "weights" / "daam.safetensors"


def model_path(model: Path | str | None) -> Path:
    """Give the model file to use: the one that is named, or the one that is shipped.

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
    if not SHIPPED_MODEL.is_file():
        raise OptionError(
            "expected a model file, got none, and none comes with this version of "
            "arcfleet: name one (model=..., on the command line --model FILE)"
        )
    return SHIPPED_MODEL
