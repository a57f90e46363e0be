#include "daemon/server/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace kvkeep::daemon {
namespace {

// Becomes the program, or writes the errno and ends. Between fork and exec: nothing that allocates.
[[noreturn]] void become(char* const* arguments, const std::vector<std::string>& unset, int errors,
                         pid_t parent) {
  ::setpgid(0, 0);
  die_with_parent(parent);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) std::signal(number, SIG_DFL);
  for (const std::string& variable : unset) ::unsetenv(variable.c_str());
  ::execvp(arguments[0], arguments);
  const int error = errno;
  (void)!::write(errors, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Result<std::unique_ptr<Child>> Child::spawn(net::any_io_executor io,
                                            const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& unset_variables) {
  int errors[2];
  if (::pipe(errors) != 0) {
    return Status::from_errno(Code::kUnavailable, std::strerror(errno), errno);
  }
  for (const int end : errors) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(words.data(), unset_variables, errors[1], parent);
  const int fork_error = errno;
  ::close(errors[1]);
  int error = 0;
  const bool failed = pid < 0 || ::read(errors[0], &error, sizeof error) > 0;
  ::close(errors[0]);
  if (failed) {
    if (pid < 0) error = fork_error;
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    return Status::from_errno(Code::kUnavailable, arguments[0] + ": " + std::strerror(error),
                              error);
  }
  return std::unique_ptr<Child>(new Child(std::move(io), pid));
}

Child::Child(net::any_io_executor io, pid_t pid) : pid_(pid), changes_(std::move(io), SIGCHLD) {}

Child::~Child() {
  look();
  if (has_ended()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Child::look() {
  int status = 0;
  if (has_ended() || ::waitpid(pid_, &status, WNOHANG) != pid_) return;
  status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string Child::end_text() const {
  if (*status_ <= 128) return "exit status " + std::to_string(*status_);
  return "signal " + std::to_string(*status_ - 128) + " (" + ::strsignal(*status_ - 128) + ")";
}

void Child::signal(int number) {
  look();
  if (!has_ended()) ::kill(pid_, number);
}

Async<void> Child::wait() {
  for (;;) {
    look();
    if (has_ended()) co_return;
    ErrorCode error;
    co_await changes_.async_wait(into(error));
    if (error) co_return;
  }
}

}  // namespace kvkeep::daemon
