from tree import TreeTest

# Words that the tool would find in this file too.
SLEEP = "std::this_thread::sl" "eep_for(1s);"


class Tidy(TreeTest):
    def findings(self, path, text):
        self.write("src/CMakeLists.txt", path.removeprefix("src/"))
        self.write(path, text)
        return self.run_tool("tidy", "--root", self.root)[1]

    def test_clean_file_passes(self):
        self.assertEqual(self.findings("src/io/a.cc", "int f() { return 1; }\n"), "tidy: ok\n")

    def test_file_that_no_build_names(self):
        self.write("src/io/b.cc")
        self.assertIn("src/io/b.cc:1: no CMakeLists.txt names", self.findings("src/io/a.cc", ""))

    def test_words_in_the_wrong_place(self):
        for path, code in [
                ("src/io/a_test.cc", SLEEP),
                ("src/io/a.cc", "std::thread t;"),
                ("src/io/a.cc", "std::mutex m;"),
                ("src/io/a.cc", "auto* x = getenv(name);"),
                ("src/io/a.cc", "throw 1;"),
                ("src/io/a.cc", "using namespace std;"),
                ("src/io/a.cc", "class CacheManager {};"),
                ("src/io/a.cc", "// TO" "DO later"),
        ]:
            with self.subTest(code):
                self.assertIn(f"{path}:1: ", self.findings(path, code + "\n"))
                (self.root / path).unlink()

    def test_words_are_fine_where_they_belong(self):
        for path, code in [
                ("src/base/a.cc", "std::thread t; std::mutex m;"),
                ("src/io/a_test.cc", "std::thread t;"),
                ("src/io/a.cc", '// throw, getenv and std::thread are words\nauto s = "throw \\" getenv";'),
        ]:
            with self.subTest(code):
                self.assertEqual(self.findings(path, code + "\n"), "tidy: ok\n")
                (self.root / path).unlink()

    def test_long_function(self):
        def body(lines):
            return "namespace n {\nclass C {\n  int f(int a,\n        int b) {\n" + "    g({1, 2});\n" * (lines - 3) \
                + "  }\n};\n}\n"
        self.assertEqual(self.findings("src/io/a.cc", body(70)), "tidy: ok\n")
        self.assertIn("src/io/a.cc:3: function of 71 lines", self.findings("src/io/a.cc", body(71)))

    def test_long_python_function(self):
        self.write("tools/t.py", "def f():\n" + "    g()\n" * 70)
        self.assertIn("tools/t.py:1: function of 71 lines", self.run_tool("tidy", "--root", self.root)[1])

    def test_long_table_is_not_a_function(self):
        self.assertEqual(self.findings("src/io/a.cc", "const int kTable[] = {\n" + "  1,\n" * 90 + "};\n"),
                         "tidy: ok\n")

    def test_long_file(self):
        self.assertIn("file of 401 lines", self.findings("src/io/a.h", "// x\n" * 401))
        self.assertIn("file of 801 lines", self.findings("src/io/a.cc", "// x\n" * 801))

    def test_long_line(self):
        self.assertEqual(self.findings("src/io/a.cc", "//" + "x" * 98 + "\n"), "tidy: ok\n")
        self.assertIn("a.cc:1: line of 101 columns", self.findings("src/io/a.cc", "//" + "x" * 99 + "\n"))
