"""Rooms use each other as the architecture document draws it, and in no circle."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

from tools.size import COUNTED, ROOMS, Module, by_room, counts, modules

import sequester
from sequester.cli.terminal import with_flags
from sequester.policy.phrase import METHODS

ROOT = Path(sequester.__file__).parent
DRAWN = Path(__file__).parents[2] / "docs" / "architecture.md"


def drawn() -> dict[str, set[str]]:
    """Per room, those it may use."""
    block = re.search(r"```imports\n(.*?)```", DRAWN.read_text(), re.DOTALL)
    assert block is not None
    rows = [line.split() for line in block[1].splitlines()]
    return {room: set(used) for room, *used in rows}


def found() -> dict[str, dict[str, set[str]]]:
    """Per room, those it uses when the program runs, and in which modules."""
    edges: dict[str, dict[str, set[str]]] = {
        room.name: {} for room in ROOT.iterdir() if (room / "__init__.py").exists()
    }
    for room, used in edges.items():
        for file in (ROOT / room).rglob("*.py"):
            for other in _imported(ast.parse(file.read_text())) & edges.keys() - {room}:
                used.setdefault(other, set()).add(str(file.relative_to(ROOT)))
    return edges


def _imported(tree: ast.Module) -> set[str]:
    types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    names = [
        name
        for node in ast.walk(tree)
        if node not in types
        for name in (
            [node.module or ""] + [f"{node.module}.{one.name}" for one in node.names]
            if isinstance(node, ast.ImportFrom)
            else [one.name for one in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    ]
    return {name.split(".")[1] for name in names if name.startswith("sequester.")}


def test_rooms_use_only_what_the_architecture_document_draws() -> None:
    allowed = drawn()
    strange = {
        f"{room} uses {other}": sorted(files)
        for room, used in found().items()
        for other, files in used.items()
        if other not in allowed[room]
    }
    assert strange == {}


def test_the_architecture_document_draws_nothing_that_is_not_used() -> None:
    assert {room: set(used) for room, used in found().items()} == drawn()


def test_rooms_make_no_circle() -> None:
    TopologicalSorter(drawn()).prepare()


def test_publishing_and_commands_know_no_method_by_its_name() -> None:
    """What differs between methods is declared by them (`methods.method.Method`)."""
    # Tiny tasks and kernels of every method, and what is told about one guarantee that only one method keeps.
    about_methods = {"tiny_tasks.py", "warm_up.py", "ahead.py"}
    # Declarations, what all methods give and take, and parts of tables, whatever the method.
    shared = ("method", "registry", "classes", "class_guard", "neighborhoods", "pods.task")
    options = {one.__name__ for one in METHODS.values()}
    strange = []
    for file in sorted(f for room in ("publish", "cli") for f in (ROOT / room).rglob("*.py")):
        if file.name in about_methods:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sequester.policy"):
                strange += [f"{file.name} uses {one.name}" for one in node.names if one.name in options]
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sequester.methods."):
                module = str(node.module).removeprefix("sequester.methods.")
                strange += [f"{file.name} uses {module}"] if not module.startswith(shared) else []
            if isinstance(node, ast.Compare):
                said = {
                    one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
                }
                strange += [f"{file.name} asks for {name}" for name in said & METHODS.keys()]
    assert strange == []


def test_only_commands_name_options_of_commands() -> None:
    """The library names arguments (force=True), and `cli.terminal.with_flags` makes options of them."""
    option = re.compile(r"(?<![\w-])--[a-z]")
    named = [
        f"{file.name}: {node.value}"
        for room in ("publish", "ledger")
        for file in sorted((ROOT / room).glob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and option.search(node.value)
    ]
    assert named == []
    assert with_flags("if it is lost, `accept_loss=True` says so") == "if it is lost, `--accept-loss` says so"
    assert with_flags("say where with `folder=...`") == "say where with `--releases`"


def test_what_lies_beside_the_rooms_uses_none_of_them() -> None:
    rooms = found().keys()
    ends = {"__init__", "__main__", "datasets"}
    for file in ROOT.glob("*.py"):
        if file.stem not in ends:
            assert not _imported(ast.parse(file.read_text())) & rooms, file.name


def test_only_views_are_found_by_name_in_another_room() -> None:
    """An import that no line shows would pass by the drawing."""
    found = {}
    for file in ROOT.rglob("*.py"):
        place = file.relative_to(ROOT)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                said = re.findall(r"sequester\.(\w+)", ast.unparse(node.args[0]))
                found |= {str(place): room for room in said if room != place.parts[0]}
    assert found == {"viewable.py": "report"}


def test_no_room_grows_beyond_what_the_table_of_sizes_lets_it() -> None:
    """Its `most` in tools/size.py falls as the room shrinks towards its aim."""
    sizes = {name: sum(one.code for one in here) for name, here in by_room(modules()).items()}
    assert sizes.keys() == ROOMS.keys()
    assert {name: size for name, size in sizes.items() if size > ROOMS[name].most} == {}
    assert {name: count for name, count in counts(modules()).items() if count > COUNTED[name][1]} == {}


def test_a_line_of_code_is_no_docstring_comment_or_blank(tmp_path: Path) -> None:
    told = '"""Two lines\nof words."""\n\n# Why.\nWORDS = """one\n\ntwo"""  # And why.\n'
    wide = "def wide(a, b, c, d, e, f, g, h, i):\n    return a\n"
    broad = "class Broad:\n" + "".join(f"    a{number}: int\n" for number in range(13))
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "one.py").write_text(told + wide + broad)
    assert modules(tmp_path) == [Module(Path("room/one.py"), 23, 19, 2, ("wide",), ("Broad",))]
