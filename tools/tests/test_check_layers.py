from tree import TreeTest

LAYERS = "# folder: what it may include\nbase:\nio: base\ndisk: base io\ntesting: base io disk\n"


class CheckLayers(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("tools/layers.txt", LAYERS)
        self.write("src/disk/store.cc", '#include "disk/store.h"\n#include "io/file.h"\n#include <vector>\n')

    def check(self):
        return self.run_tool("check_layers", "--root", self.root)

    def test_downward_includes_pass(self):
        self.assertEqual(self.check(), (0, "layers: ok\n"))

    def test_upward_include_fails(self):
        self.write("src/io/file.cc", '#include "disk/store.h"\n')
        status, said = self.check()
        self.assertEqual(status, 1)
        self.assertIn('src/io/file.cc: "disk/store.h" is not for this folder', said)

    def test_angle_brackets_do_not_hide_an_include(self):
        self.write("src/io/file.cc", "#  include <disk/store.h>\n")
        self.assertEqual(self.check()[0], 1)

    def test_path_with_dots_fails(self):
        self.write("src/io/file.cc", '#include "../disk/store.h"\n')
        self.assertEqual(self.check()[0], 1)

    def test_product_code_may_not_include_testing(self):
        self.write("src/disk/store.h", '#include "testing/faults.h"\n')
        self.assertEqual(self.check()[0], 1)

    def test_tests_may_include_anything(self):
        self.write("src/io/file_test.cc", '#include "disk/store.h"\n#include "testing/faults.h"\n')
        self.write("tests/crash/kill.cc", '#include "disk/store.h"\n')
        self.write("fuzz/parse_fuzz.cc", '#include "disk/store.h"\n')
        self.assertEqual(self.check()[0], 0)

    def test_what_stands_on_the_library_sees_public_headers_only(self):
        for folder in ("include/kvkeep", "python", "connectors/one", "cli", "examples", "daemon"):
            with self.subTest(folder):
                self.write(f"{folder}/x.cc", '#include "kvkeep/kvkeep.h"\n')
                self.assertEqual(self.check()[0], 0)
                self.write(f"{folder}/x.cc", '#include "base/bytes.h"\n')
                self.assertEqual(self.check()[0], 1)
                (self.root / folder / "x.cc").unlink()

    def test_daemon_may_include_connectors(self):
        self.write("daemon/main.cc", '#include "connectors/one/x.h"\n')
        self.assertEqual(self.check()[0], 0)

    def test_folders_of_the_daemon_have_an_order_too(self):
        self.write("tools/layers.txt", LAYERS + "daemon/http:\ndaemon/slots: daemon/http\n")
        self.write("daemon/door.h", '#include "daemon/slots/gate.h"\n')
        self.write("daemon/slots/gate.h", '#include "daemon/http/http.h"\n#include "daemon/slots/file.h"\n')
        self.write("daemon/http/http_test.cc", '#include "daemon/testing/fake.h"\n')
        self.assertEqual(self.check()[0], 0)
        for wrong in ("daemon/slots/gate.h", "daemon/door.h", "daemon/testing/fake.h"):
            with self.subTest(wrong):
                self.write("daemon/http/http.h", f'#include "{wrong}"\n')
                self.assertEqual(self.check()[0], 1)

    def test_unlisted_folder_fails(self):
        self.write("src/extra/x.cc")
        self.assertEqual(self.check()[0], 1)

    def test_layer_that_names_a_later_one_fails(self):
        self.write("tools/layers.txt", "base: io\nio: base\n")
        status, said = self.check()
        self.assertEqual(status, 1)
        self.assertIn("no cycles", said)
