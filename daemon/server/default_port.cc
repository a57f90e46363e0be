#include "daemon/server/default_port.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

extern char** environ;

namespace kvkeep::daemon {
namespace {

constexpr size_t kMaxHelp = 1 << 20;
constexpr auto kPatience = std::chrono::seconds(5);

// Both outputs of `program --help`, as far as they come in time.
std::string help_of(const std::string& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  std::string name = program, flag = "--help";
  char* arguments[] = {name.data(), flag.data(), nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string help;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (failed == 0 && help.size() < kMaxHelp) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd ready{ends[0], POLLIN, 0};
    char piece[16 << 10];
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t got = ::read(ends[0], piece, sizeof piece);
    if (got <= 0) break;
    help.append(piece, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  if (failed == 0) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  return help;
}

}  // namespace

uint16_t port_in_help(std::string_view help) {
  constexpr std::string_view before = "(default: ";
  const size_t flag = help.find("--port ");
  if (flag == std::string_view::npos) return kUsualPort;
  const size_t at = help.find(before, flag);
  const size_t next_flag = help.find("\n-", flag);
  if (at == std::string_view::npos || at > next_flag) return kUsualPort;
  uint32_t port = 0;
  for (size_t i = at + before.size(); i < help.size() && help[i] >= '0' && help[i] <= '9'; ++i) {
    port = port * 10 + static_cast<uint32_t>(help[i] - '0');
    if (port > UINT16_MAX) return kUsualPort;
  }
  return port != 0 ? static_cast<uint16_t>(port) : kUsualPort;
}

uint16_t default_port_of(const std::string& program) { return port_in_help(help_of(program)); }

}  // namespace kvkeep::daemon
