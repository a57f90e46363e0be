import itertools
import signal
import socket

import pytest

import servers
from servers import Kept, Process, common_options, free_port


@pytest.fixture(scope="session", autouse=True)
def _program():
    if not servers.PROGRAM.exists():
        pytest.fail(f"{servers.PROGRAM} is missing (run: cmake --build --preset dev --target kvkeep_cli)")


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory):
    """Where what is known of the model's file is remembered."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def builds(tmp_path_factory):
    """The servers that run here, by the version of their slot files."""
    if servers.MODEL is None:
        pytest.skip("there is no model (run: tools/install-deps python llama)")
    found = servers.builds()
    for version, build in list(found.items()):
        port = free_port()
        log = tmp_path_factory.mktemp("probe") / "log"
        server = Process([*build.command, *common_options(), "--port", port], log, port)
        try:
            server.wait_until_up()
        except AssertionError:
            if server.process.poll() != -signal.SIGILL:
                raise
            found[version] = None
        finally:
            server.stop()
    return found


def build_of(builds, version):
    if version not in builds:
        pytest.skip(f"the llama-server of {version} slot files is missing (run: tools/install-deps python llama)")
    if builds[version] is None:
        pytest.skip(f"the llama-server of {version} slot files needs instructions that this processor has not")
    return builds[version]


@pytest.fixture(params=["v2", "v4"])
def build(request, builds):
    return build_of(builds, request.param)


@pytest.fixture
def any_build(builds):
    """For what is the same with every server."""
    for found in builds.values():
        if found is not None:
            return found
    pytest.skip("there is no llama-server (run: tools/install-deps python llama)")


@pytest.fixture
def v2(builds):
    return build_of(builds, "v2")


@pytest.fixture
def v4(builds):
    return build_of(builds, "v4")


@pytest.fixture
def started():
    """Processes to end with the test."""
    processes = []
    yield processes
    for process in processes:
        process.stop()


@pytest.fixture
def start_plain(tmp_path, started):
    """Starts a llama-server without kvkeep."""
    numbers = itertools.count()

    def start(build, *options, **variables):
        port = free_port()
        command = [*build.command, *common_options(), *options, "--port", port]
        started.append(Process(command, tmp_path / f"plain-{next(numbers)}.log", port, **variables))
        return started[-1].wait_until_up()

    return start


@pytest.fixture
def launch(tmp_path, started, cache_home):
    """Starts kvkeep llama with any words, `under` another program if so wished, and waits for nothing."""
    numbers = itertools.count()

    def start(*words, port=0, under=(), **variables):
        variables.setdefault("XDG_CACHE_HOME", str(cache_home))
        log = tmp_path / f"kept-{next(numbers)}.log"
        started.append(Kept([*under, servers.PROGRAM, "llama", *words], log, port, **variables))
        return started[-1]

    return start


@pytest.fixture
def start_kept(tmp_path, launch):
    """Starts a llama-server behind kvkeep, with a store that outlives it, and waits until it keeps prompts."""

    def start(build, *options, store=tmp_path / "store", own=(), ready_with={}, **variables):
        port = free_port()
        kept = launch("--dir", store, "--max-size", "1GB", *own, "--", *build.command, *common_options(),
                      *options, "--port", port, port=port, **variables)
        return kept.wait_until_ready(**ready_with)

    return start


@pytest.fixture
def taken_port():
    """A port that somebody listens on."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]
