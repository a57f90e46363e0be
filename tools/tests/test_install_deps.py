import os
import shutil
import subprocess

from tree import TOOLS, TreeTest

NEEDED = ("bash", "dirname", "mktemp", "grep", "tail", "rm", "cat")


class InstallDeps(TreeTest):
    """Runs the tool where only stand-ins for the system's programs are found."""

    def setUp(self):
        super().setUp()
        (self.root / "tools").mkdir()
        shutil.copy(TOOLS / "install-deps", self.root / "tools")
        self.bin = self.root / "bin"
        self.bin.mkdir()
        for program in NEEDED:
            (self.bin / program).symlink_to(shutil.which(program))
        for command in ("g++", "make", "cmake", "ninja", "pkg-config", "python3"):
            self.stand_in(command, "exit 0")
        self.stand_in("id", "echo 0")
        self.stand_in("dpkg-query", 'grep -qx "${@: -1}" "$0.missing" 2>/dev/null || echo installed')
        self.stand_in("apt-get", f'echo "$*" >>{self.root}/apt.log')

    def stand_in(self, command, script):
        path = self.bin / command
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def missing(self, *packages):
        (self.bin / "dpkg-query.missing").write_text("\n".join(packages) + "\n")

    def install(self, *groups, **environment):
        done = subprocess.run([shutil.which("bash"), self.root / "tools/install-deps", *groups],
                              env={"PATH": str(self.bin), **environment}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def installed(self):
        log = self.root / "apt.log"
        return log.read_text() if log.exists() else ""

    def test_says_nothing_where_nothing_is_missing(self):
        self.assertEqual(self.install("build", "test"), (0, ""))
        self.assertEqual(self.installed(), "")

    def test_installs_only_what_is_missing_and_says_so_first(self):
        self.missing("libssl-dev", "libgtest-dev")
        (self.bin / "ninja").unlink()
        status, said = self.install("build", "test")
        self.assertEqual(status, 0)
        line = "apt-get install -y --no-install-recommends ninja-build libssl-dev libgtest-dev"
        self.assertEqual(said, f"kvkeep needs: {line}\n")
        self.assertIn("install -y --no-install-recommends ninja-build libssl-dev libgtest-dev", self.installed())

    def test_no_install_stops_after_the_line(self):
        self.missing("libssl-dev")
        status, said = self.install("build", NO_INSTALL="1")
        self.assertEqual(status, 1)
        self.assertIn("kvkeep needs: apt-get install -y --no-install-recommends libssl-dev\n", said)
        self.assertEqual(self.installed(), "")

    def test_failed_install_is_one_line_that_names_the_package(self):
        self.missing("libssl-dev")
        self.stand_in("apt-get", 'echo "E: Unable to fetch some archives"; exit 100')
        status, said = self.install("build")
        self.assertEqual(status, 1)
        self.assertEqual(said.splitlines()[1:], ["kvkeep: cannot install libssl-dev: "
                                                 "E: Unable to fetch some archives (is the network there?)"])

    def test_without_root_and_sudo_it_says_so(self):
        self.missing("libssl-dev")
        self.stand_in("id", "echo 1000")
        status, said = self.install("build")
        self.assertEqual(status, 1)
        self.assertIn("cannot install libssl-dev: not root, and there is no sudo", said)

    def test_python_packages_go_into_the_virtual_environment(self):
        status, said = self.install("python", NO_INSTALL="1")
        self.assertEqual(status, 1)
        self.assertIn("kvkeep needs: .venv/bin/pip install scikit-build-core==", said)

    def test_unreachable_package_index_is_one_line(self):
        pip = self.root / ".venv/bin/pip"
        pip.parent.mkdir(parents=True)
        for name, script in (("python", 'printf "%s\\n" "${@:2}"'),
                             ("pip", 'echo "ERROR: No matching distribution"; exit 1')):
            path = pip.parent / name
            path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
            os.chmod(path, 0o755)
        status, said = self.install("python")
        self.assertEqual(status, 1)
        self.assertEqual(len(said.splitlines()), 2)
        self.assertIn("kvkeep: cannot install scikit-build-core==", said)
        self.assertIn("ERROR: No matching distribution (is the network there?)", said)
