// Runs a program and keeps what it wrote.
//
// Threads: one thread at a time each.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "testing/temp_dir.h"

namespace kvkeep::testing {

struct Ran {
  int status = -1;  // 128 + N if ended by signal N.
  std::string out;
  std::string err;
};

class Program {
 public:
  explicit Program(std::string path) : path_(std::move(path)) {}

  // Of the environment that the program gets; it has nothing else.
  std::map<std::string, std::string> variables;
  std::string input = "/dev/null";  // The file that it reads as standard input.

  Ran run(const std::vector<std::string>& arguments) const {
    const TempDir dir;
    const std::string out = (dir.path() / "out").string();
    const std::string err = (dir.path() / "err").string();
    constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
    return run(arguments, ::open(out.c_str(), kWrite | O_CLOEXEC, 0600), out, err);
  }

  // With a standard output that nobody reads.
  Ran run_into_closed_pipe(const std::vector<std::string>& arguments) const {
    const TempDir dir;
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    ::close(ends[0]);
    return run(arguments, ends[1], "", (dir.path() / "err").string());
  }

 private:
  Ran run(const std::vector<std::string>& arguments, int out_fd, const std::string& out,
          const std::string& err) const {
    const int err_fd = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    Ran ran;
    ran.status = wait_for(start(arguments, out_fd, err_fd));
    ::close(out_fd);
    ::close(err_fd);
    ran.out = contents(out);
    ran.err = contents(err);
    return ran;
  }

  pid_t start(const std::vector<std::string>& arguments, int out_fd, int err_fd) const {
    std::vector<std::string> words{path_};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> set;
    for (const auto& [name, value] : variables) set.push_back(name + "=" + value);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
    ::posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
    pid_t child = -1;
    const int error = ::posix_spawnp(&child, path_.c_str(), &actions, nullptr,
                                     pointers(words).data(), pointers(set).data());
    ::posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(error, 0) << path_;
    return child;
  }

  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (std::string& text : texts) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
  }

  static int wait_for(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
      if (errno != EINTR) return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  static std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  const std::string path_;
};

}  // namespace kvkeep::testing
