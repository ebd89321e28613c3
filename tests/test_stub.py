import subprocess
import sys
from pathlib import Path

from tests.helpers import ROOT

STUB = ROOT / "src" / "arcfleet" / "_core.pyi"


def test_the_committed_stub_is_what_the_extension_gives(tmp_path: Path) -> None:
    generated = tmp_path / "_core.pyi"
    stubgen = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "arcfleet._core"]
    subprocess.run([*stubgen, "-o", str(generated)], check=True)
    assert generated.read_text() == STUB.read_text(), "run `make stub`"
