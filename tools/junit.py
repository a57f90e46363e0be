"""JUnit XML as GoogleTest, CTest and pytest write it: what ran, how it ended, what it proves."""
import dataclasses
import pathlib
import xml.etree.ElementTree as ElementTree


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    outcome: str          # "passed", "failed" or "skipped"
    proves: tuple = ()    # ids of docs/contract.md


def outcome_of(case):
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def read(path):
    """The cases of one file. One that cannot be read is a failed case: its tests may not have run."""
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, OSError) as error:
        return [Case(f"{path}: {error}", "failed")]
    cases = []
    for case in root.iter("testcase"):
        proves = [id for entry in case.iter("property") if entry.get("name") == "proves"
                  for id in entry.get("value", "").split()]
        name = f"{case.get('classname', '')}.{case.get('name', '')}".lstrip(".")
        cases.append(Case(name, outcome_of(case), tuple(proves)))
    return cases


def read_all(folder):
    return [case for path in sorted(pathlib.Path(folder).rglob("*.xml")) for case in read(path)]


def write_case(path, name, seconds, failure=None):
    """One file with one case; `failure` is why it failed."""
    suite = ElementTree.Element("testsuite", name=name, tests="1")
    case = ElementTree.SubElement(suite, "testcase", classname="run", name=name, time=f"{seconds:.1f}")
    if failure:
        ElementTree.SubElement(case, "failure", message=failure)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path)
