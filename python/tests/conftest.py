import json
import pathlib
import subprocess
import sys

import pytest

import kvkeep

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = pathlib.Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def _proves(request, record_property):
    for marker in request.node.iter_markers("proves"):
        assert 1 <= len(marker.args) <= 5, "a test shows a few things, not many"
        record_property("proves", " ".join(marker.args))


@pytest.fixture
def open_cache(tmp_path):
    """Opens caches on one directory, with a limit that no test reaches; closes what is left open."""
    caches = []

    def open_(path=None, **options):
        options.setdefault("max_size", "1GB")
        cache = kvkeep.BlockCache(path or tmp_path / "store", **options)
        caches.append(cache)
        return cache

    def close_all():
        for cache in caches:
            cache.close()

    open_.close_all = close_all
    yield open_
    close_all()


@pytest.fixture
def cache(open_cache):
    return open_cache()


@pytest.fixture
def in_new_process():
    """Runs Python source with arguments in a fresh interpreter and returns what it prints as JSON."""

    def run(source, *arguments):
        done = subprocess.run(
            [sys.executable, "-c", source, *map(str, arguments)],
            cwd=TESTS,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def mx():
    """MLX, which the tests of kvkeep.omlx need for its arrays."""
    return pytest.importorskip("mlx.core", reason="mlx is not installed")


@pytest.fixture
def open_manager(tmp_path):
    """Opens managers on one directory, with a limit that no test reaches; closes what is left open."""
    from kvkeep.omlx import PagedSSDCacheManager

    managers = []

    def open_(cache_dir=tmp_path / "store", max_size_bytes=1 << 30, **options):
        managers.append(PagedSSDCacheManager(cache_dir, max_size_bytes, **options))
        return managers[-1]

    def close_all():
        for manager in managers:
            manager.close()

    open_.close_all = close_all
    yield open_
    close_all()
