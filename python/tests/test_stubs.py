"""The type stubs say what the module has, and ordinary use type-checks."""

import ast
import inspect
import pathlib
import subprocess
import sys

import pytest

import kvkeep
from kvkeep import _kvkeep
from conftest import ROOT

USE = """
from typing import Optional
import kvkeep

def use(path: str, tokens: "list[int]", k: object, v: object) -> Optional[bytes]:
    budget = kvkeep.HotBudget("1GB")
    with kvkeep.BlockCache(path, max_size="1GB", layer_types=["KVCache"], budget=budget) as cache:
        keys = kvkeep.chain_keys(tokens, block_size=16, extras=[None, [b"x", "y", 1]])
        saved: kvkeep.SaveResult = cache.save(keys[0], [(k, v)], token_count=16, parent=None)
        if not saved:
            print(saved.reason, saved.message)
        block = cache.load(keys[0], promote=False)
        print(cache.preload(keys) + cache.clear_hot(spill=True) + budget.remaining_bytes, cache.why(keys[0]))
        for each in cache.load_each(keys):
            if each is not None and keys[0] in cache:
                print(each.token_count + len(cache))
        report: kvkeep.CloseReport = cache.close(1.0)
        print(report.abandoned, cache.stats()["hits"])
        return None if block is None else block.parent
"""


CLASSES = "BudgetOwner|Cache|HotBudget|JoinedTensor|LoadedPrefix|PrefixCache|PrefixMatch|Tensor"


def run(*command, cwd):
    return subprocess.run(
        [sys.executable, "-m", *map(str, command)], cwd=cwd, capture_output=True, text=True
    )


def test_stubs_agree_with_the_module(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    # Classes and functions of nanobind have types of their own, and its slots are no attributes. The
    # members of the classes are checked all the same.
    allow = tmp_path / "allow"
    allow.write_text(
        rf"kvkeep\._kvkeep\.(Key|Array|Extra|Size|_RawBytes|{CLASSES})" "\n"
        r"kvkeep\._kvkeep\.(chain_keys|parse_size|format_bytes)" "\n"
        r"kvkeep\._cache\.BlockCache" "\n"
        rf"kvkeep\._kvkeep\.({CLASSES})\.__(init|new|buffer|release_buffer)__" "\n"
    )
    done = run(
        "mypy.stubtest", "kvkeep", "--allowlist", allow, "--ignore-unused-allowlist", cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr


def parameters(function):
    given = function.args
    names = [argument.arg for argument in given.posonlyargs + given.args if argument.arg != "self"]
    defaults = len(given.defaults) + sum(default is not None for default in given.kw_defaults)
    return names, [argument.arg for argument in given.kwonlyargs], defaults


def test_parameters_in_the_stubs_are_those_of_the_module():
    stub = ast.parse((pathlib.Path(kvkeep.__file__).parent / "_kvkeep.pyi").read_text())
    checked = 0
    for node in ast.walk(stub):
        for function in getattr(node, "body", []):
            if not isinstance(function, ast.FunctionDef) or function.decorator_list:
                continue
            owner = getattr(_kvkeep, node.name) if isinstance(node, ast.ClassDef) else _kvkeep
            doc = getattr(owner, function.name, None).__doc__ or ""
            signature = doc.split("\n")[0]
            if not signature.startswith(function.name + "(") or "arg" in signature:
                continue
            (real,) = ast.parse(f"def {signature}: ...").body
            assert parameters(real) == parameters(function), function.name
            checked += 1
    assert checked >= 12


def test_ordinary_use_type_checks(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "use.py").write_text(USE)
    done = run("mypy", "--strict", "use.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_is_documented():
    for name in kvkeep.__all__:
        value = getattr(kvkeep, name)
        assert name == "__version__" or inspect.getdoc(value), name
    for owner in (kvkeep.BlockCache, kvkeep.HotBudget, _kvkeep.BudgetOwner):
        methods = [name for name in dir(owner) if not name.startswith("_")]
        assert len(methods) >= 4
        for name in methods:
            assert inspect.getdoc(getattr(owner, name)), name


def test_the_version_is_that_of_the_library():
    header = (ROOT / "include" / "kvkeep" / "version.h").read_text()
    assert f'#define KVKEEP_VERSION "{kvkeep.__version__}"' in header
