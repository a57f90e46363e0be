"""The program kvkeep that the wheel carries, on a store that the package wrote."""
import json
import pathlib
import subprocess
import sysconfig

import kvkeep

PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / "kvkeep"


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout


def test_is_of_the_same_version_as_the_package():
    assert run("--version") == f"kvkeep {kvkeep.__version__}\n"


def test_knows_the_blocks_and_the_build_of_a_cache(tmp_path):
    key = bytes(range(32))
    with kvkeep.BlockCache(tmp_path / "store", max_size="64MB", model_name="m",
                           identity={"build": "b7"}) as cache:
        cache.save(key, [(bytearray(64), bytearray(64))], token_count=4)
    (block,) = map(json.loads, run("ls", tmp_path / "store", "--json").splitlines())
    assert block["hash"] == key.hex()
    assert (block["model_name"], block["token_count"], block["build"]) == ("m", 4, "b7")
    assert "all fine" in run("verify", tmp_path / "store")
