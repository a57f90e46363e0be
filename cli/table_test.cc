#include "cli/table.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace kvkeep::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::string contents(std::FILE* file) {
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  return text;
}

TEST(Table, LinesUpCharactersNotBytes) {
  const File out(std::tmpfile());
  Console console(out.get(), out.get());
  Table table({{"NAME"}, {"SIZE", Align::kRight}, {"STATE"}});
  table.add({"モデル", "5", "ok"});
  table.add({"longer", "1234567", "unreadable"}, Style::kBad);
  table.print(console);
  EXPECT_EQ(console.finish(0), 0);
  EXPECT_EQ(contents(out.get()),
            "NAME       SIZE  STATE\n"
            "モデル           5  ok\n"
            "longer  1234567  unreadable\n")
      << "and no colours where there is no terminal";
}

TEST(Console, MessagesSayWhatWhyAndWhatToDo) {
  const File err(std::tmpfile());
  const File out(std::tmpfile());
  Console console(out.get(), err.get());
  console.complain("ls", "there is none", "make one");
  console.complain("", "nothing else");
  console.show_progress("42 %");
  EXPECT_EQ(contents(err.get()), "kvkeep: ls: there is none (make one)\nkvkeep: nothing else\n")
      << "and no progress where there is no terminal";
}

TEST(Console, AFailedWriteEndsWithStatus3) {
  const File out(std::fopen("/dev/full", "w"));
  if (out == nullptr) GTEST_SKIP() << "no /dev/full here";
  const File err(std::tmpfile());
  Console console(out.get(), err.get());
  console.line("text");
  EXPECT_EQ(console.finish(0), 3);
  EXPECT_NE(contents(err.get()).find("standard output"), std::string::npos);
}

TEST(Console, StatusesAreSorted) {
  EXPECT_EQ(exit_status({}), 0);
  EXPECT_EQ(exit_status(Status(Code::kNotFound, "")), 1);
  EXPECT_EQ(exit_status(Status(Code::kDataLoss, "")), 1);
  EXPECT_EQ(exit_status(Status(Code::kInvalidArgument, "")), 2);
  EXPECT_EQ(exit_status(Status(Code::kFailedPrecondition, "")), 3);
  EXPECT_EQ(exit_status(Status(Code::kUnavailable, "")), 3);
}

}  // namespace
}  // namespace kvkeep::cli
