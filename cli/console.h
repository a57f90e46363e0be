// Console is where a verb's answer goes: standard output, messages, and a line of progress.
//
// Once the reader of standard output is gone, everything more is dropped in silence.
//
// Threads: one thread.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "kvkeep/status.h"

namespace kvkeep::cli {

enum class Style { kPlain, kBold, kBad };

class Console {
 public:
  // Both streams must outlive it. Colours need a terminal and no NO_COLOR.
  Console(std::FILE* out, std::FILE* err);

  void print(std::string_view text);
  void line(std::string_view text);
  // True if nobody reads what is printed.
  bool is_closed() const { return closed_; }
  // `text` in a style, where standard output is a terminal that may have colours.
  std::string styled(std::string_view text, Style style) const;

  // "kvkeep: what: why (what to do)" on standard error.
  void complain(std::string_view what, std::string_view why, std::string_view to_do = {});
  // The same from a status. Returns the exit status for it.
  int fail(std::string_view what, const Status& status);

  // Shows `text` as the one line of progress on a terminal; "" takes it away.
  void show_progress(const std::string& text);
  bool shows_progress() const { return err_is_terminal_; }

  // Writes out what is buffered. Returns `status`, or 3 with a message if writing failed; 0 if the
  // reader is gone.
  int finish(int status);

 private:
  void note_failure();

  std::FILE* const out_;
  std::FILE* const err_;
  bool colours_ = false;
  bool err_is_terminal_ = false;
  bool progress_shown_ = false;
  bool closed_ = false;
  int error_ = 0;
};

// 1 for what is missing or damaged, 2 for a wrong argument, 3 for everything that was refused.
int exit_status(const Status& status);

}  // namespace kvkeep::cli
