#include "cli/console.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/verb.h"

namespace kvkeep::cli {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool is_terminal(std::FILE* stream) {
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  return !dumb && ::isatty(::fileno(stream)) == 1;
}

}  // namespace

Console::Console(std::FILE* out, std::FILE* err)
    : out_(out),
      err_(err),
      colours_(is_terminal(out) && !is_set("NO_COLOR")),
      err_is_terminal_(is_terminal(err)) {}

void Console::note_failure() {
  closed_ = closed_ || errno == EPIPE;
  if (error_ == 0) error_ = errno;
}

void Console::print(std::string_view text) {
  if (error_ != 0 || text.empty()) return;
  show_progress("");
  if (std::fwrite(text.data(), 1, text.size(), out_) != text.size()) note_failure();
}

void Console::line(std::string_view text) {
  print(text);
  print("\n");
}

std::string Console::styled(std::string_view text, Style style) const {
  if (!colours_ || style == Style::kPlain) return std::string(text);
  return (style == Style::kBold ? "\033[1m" : "\033[31m") + std::string(text) + "\033[0m";
}

void Console::complain(std::string_view what, std::string_view why, std::string_view to_do) {
  show_progress("");
  std::fflush(out_);  // So that the two streams are in order where they go to the same place.
  std::string text = "kvkeep: ";
  if (!what.empty()) text += std::string(what) + ": ";
  text += why;
  if (!to_do.empty()) text += " (" + std::string(to_do) + ")";
  std::fprintf(err_, "%s\n", text.c_str());
}

int Console::fail(std::string_view what, const Status& status) {
  complain(what, status.message());
  return exit_status(status);
}

void Console::show_progress(const std::string& text) {
  if (!err_is_terminal_ || (text.empty() && !progress_shown_)) return;
  std::fprintf(err_, "\r\033[K%s", text.c_str());
  std::fflush(err_);
  progress_shown_ = !text.empty();
}

int Console::finish(int status) {
  show_progress("");
  if (std::fflush(out_) != 0) note_failure();
  if (closed_) return kFine;
  if (error_ == 0) return status;
  complain("standard output", std::strerror(error_));
  return kRefused;
}

int exit_status(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return kFine;
    case Code::kNotFound:
    case Code::kDataLoss:
      return kFoundProblem;
    case Code::kInvalidArgument:
      return kWrongUsage;
    default:
      return kRefused;
  }
}

}  // namespace kvkeep::cli
