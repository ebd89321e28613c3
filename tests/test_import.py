import ast
import subprocess
import sys

from tests.helpers import ROOT

SOURCE = ROOT / "src" / "arcfleet"


def last_line_of(code: str) -> str:
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1]


def test_import_is_light() -> None:
    code = (
        "import sys, arcfleet\n"
        "heavy = ('torch', 'matplotlib', 'scipy', 'rich', 'highspy', 'fastapi')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    assert last_line_of(code) == "[]"


def test_the_list_of_methods_and_other_searches_need_no_torch() -> None:
    code = (
        "import sys\n"
        "from arcfleet.cli.main import main\n"
        "assert main(['methods', '--json']) == 0\n"
        "assert main(['solve', 'example:denver', '--method', 'ps', '--json']) == 0\n"
        "print([m for m in ('torch', 'safetensors') if m in sys.modules])"
    )
    assert last_line_of(code) == "[]"


def test_only_computing_stages_call_the_extension() -> None:
    # import-linter sees Python modules only, so this rule is held here.
    callers = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = [alias.name for alias in node.names]
            module = getattr(node, "module", None) or ""
            if "_core" in names or "_core" in module.split("."):
                callers.add(file.relative_to(SOURCE).parts[0])
    assert callers == {"bounds", "network", "neural", "search"}
