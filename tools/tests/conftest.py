import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "proves(id, ...): ids of docs/contract.md that the test shows to hold")


@pytest.fixture(autouse=True)
def _proves(request, record_property):
    for marker in request.node.iter_markers("proves"):
        record_property("proves", " ".join(marker.args))
