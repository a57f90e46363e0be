import pytest

from tree import TreeTest

GTEST = """<testsuites><testsuite name="Save">
<testcase name="A" status="run" result="completed" classname="Save">
  <properties><property name="proves" value="SAVE-01 SAVE-02"/></properties></testcase>
<testcase name="B" status="run" result="completed" classname="Save"><failure message="no"/>
  <properties><property name="proves" value="SAVE-03"/></properties></testcase>
<testcase name="C" status="notrun" result="suppressed" classname="Save"/>
</testsuite></testsuites>"""
PYTEST = """<testsuites><testsuite><testcase classname="t" name="x"><properties>
<property name="proves" value="RUL-70"/></properties></testcase>
<testcase classname="t" name="y"><skipped message="s"/></testcase></testsuite></testsuites>"""
CONTRACT = "| ID | x |\n|---|---|\n" + "".join(
    f"| {id} | [S] | x |\n" for id in ("SAVE-01", "SAVE-02", "SAVE-03", "RUL-70", "DEF-12"))


class Results(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("results/gtest.xml", GTEST)
        self.write("results/python/pytest.xml", PYTEST)
        self.write("contract.md", CONTRACT)

    def coverage(self, scope):
        self.write("scope.txt", scope)
        return self.run_tool("conformance_coverage", self.root / "results", "--contract",
                             self.root / "contract.md", "--scope", self.root / "scope.txt")

    def test_summary_counts_every_runner(self):
        self.assertEqual(self.run_tool("summary", self.root / "results"),
                         (1, "failed: Save.B\n2 passed, 1 failed, 2 skipped\n"))

    def test_summary_without_results_is_a_failure(self):
        (self.root / "empty").mkdir()
        self.assertEqual(self.run_tool("summary", self.root / "empty"), (1, "0 passed, 0 failed, 0 skipped\n"))

    def test_summary_counts_a_torn_file_as_failed(self):
        self.write("results/torn.xml", GTEST[:100])
        self.assertIn("2 passed, 2 failed, 2 skipped\n", self.run_tool("summary", self.root / "results")[1])

    @pytest.mark.proves("RUL-70")
    def test_proven_scope_passes(self):
        status, said = self.coverage("# what is promised\nSAVE-01  # saves\n\nRUL-70\n")
        self.assertEqual(status, 0)
        self.assertIn("covered 2 of 2 ids in scope (5 in the contract)", said)
        self.assertIn("proven but not yet in scope.txt: SAVE-02", said)

    def test_a_failing_test_proves_nothing(self):
        status, said = self.coverage("SAVE-01\nSAVE-03\n")
        self.assertEqual(status, 1)
        self.assertIn("in scope but not proven: SAVE-03\ncovered 1 of 2", said)

    def test_unknown_ids_fail(self):
        self.assertEqual(self.coverage("SAVE-99\n")[0], 1)
        self.write("results/other.xml", PYTEST.replace("RUL-70", "RUL-71"))
        status, said = self.coverage("SAVE-01\n")
        self.assertEqual(status, 1)
        self.assertIn("RUL-71 is claimed by t.x but is not in contract.md", said)

    def test_a_test_that_claims_many_ids_is_named(self):
        self.write("results/other.xml", PYTEST.replace("RUL-70", "SAVE-01 SAVE-02 SAVE-03 RUL-70 DEF-12 SAVE-01"))
        self.assertIn("t.x claims 6 ids, more than 5", self.coverage("SAVE-01\n")[1])

    def test_record_notes_how_a_step_ended(self):
        out = self.root / "steps"
        self.assertEqual(self.run_tool("record", out, "good", "true")[0], 0)
        self.assertEqual(self.run_tool("record", out, "bad", "false")[0], 1)
        self.assertEqual(self.run_tool("record", "--timeout", "0.1", out, "slow", "tail", "-f", "/dev/null")[0], 124)
        self.assertIn("1 passed, 2 failed, 0 skipped", self.run_tool("summary", out)[1])

    def test_record_leaves_a_runner_that_tells_alone(self):
        tests = self.root / "results"
        self.assertEqual(self.run_tool("record", "--tests", tests, "unit", "false")[0], 1)
        self.assertIn("2 passed, 1 failed, 2 skipped", self.run_tool("summary", tests)[1])

    def test_record_notes_a_runner_that_ends_without_telling(self):
        for command, status in (("false", 1), ("true", 1)):
            with self.subTest(command):
                tests = self.root / command
                self.assertEqual(self.run_tool("record", "--tests", tests, "unit", command)[0], status)
                self.assertIn("0 passed, 1 failed, 0 skipped", self.run_tool("summary", tests)[1])
