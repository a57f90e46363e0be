#include "cli/progress.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <string>

namespace kvkeep::cli {
namespace {

TEST(ProgressLine, ShowsAShareOrOnlyTheDetail) {
  EXPECT_EQ(progress_line("verify", 0, 10, "0 blocks"),
            "verify  [" + std::string(30, ' ') + "]  0 %  0 blocks");
  EXPECT_EQ(progress_line("verify", 5, 10, "5 blocks"),
            "verify  [" + std::string(15, '#') + std::string(15, ' ') + "]  50 %  5 blocks");
  EXPECT_EQ(progress_line("verify", 10, 10, "10 blocks"),
            "verify  [" + std::string(30, '#') + "]  100 %  10 blocks");
  EXPECT_EQ(progress_line("reading", 7, 0, "7 blocks"), "reading  7 blocks");
}

// What a terminal gets, from a time that the test moves.
class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() {
    ::setenv("TERM", "xterm", 1);
    int reader = -1;
    int terminal = -1;
    EXPECT_EQ(::openpty(&reader, &terminal, nullptr, nullptr, nullptr), 0);
    reader_ = reader;
    terminal_ = ::fdopen(terminal, "w");
    console_.emplace(terminal_, terminal_);
  }
  ~ProgressTest() override {
    std::fclose(terminal_);
    ::close(reader_);
  }
  // Ends with a line of its own, so that reading never waits for nothing.
  std::string seen() {
    std::fprintf(terminal_, "END\n");
    std::fflush(terminal_);
    std::string text;
    while (text.find("END") == std::string::npos) {
      std::array<char, 256> piece{};
      const ssize_t n = ::read(reader_, piece.data(), piece.size());
      if (n <= 0) break;
      text.append(piece.data(), static_cast<size_t>(n));
    }
    return text;
  }
  int reader_ = -1;
  std::FILE* terminal_ = nullptr;
  std::optional<Console> console_;
  Progress::Time now_{};
};

TEST_F(ProgressTest, NothingIsShownInTheFirstSecond) {
  Progress progress(*console_, "verify", [this] { return now_; });
  now_ += std::chrono::milliseconds(999);
  progress.update(5, 10, "5 blocks");
  EXPECT_EQ(seen().find("verify"), std::string::npos);
  now_ += std::chrono::milliseconds(1);
  progress.update(6, 10, "6 blocks");
  EXPECT_NE(seen().find("60 %"), std::string::npos);
}

TEST_F(ProgressTest, ALineIsTakenAwayBeforeAnythingElseIsPrinted) {
  Progress progress(*console_, "verify", [this] { return now_; });
  now_ += std::chrono::seconds(2);
  progress.update(5, 10, "5 blocks");
  console_->line("damaged");
  const std::string text = seen();
  EXPECT_NE(text.find("5 blocks\r\033[Kdamaged"), std::string::npos) << text;
}

}  // namespace
}  // namespace kvkeep::cli
