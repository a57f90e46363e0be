#include "hash/python_text.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/bytes.h"

namespace kvkeep {
namespace {

std::string text(const Extra& extra) {
  const auto printed = python_text(extra);
  return printed.ok() ? *printed : printed.status().to_string();
}

std::string bytes_text(std::string_view bytes) {
  const auto span = as_byte_span(bytes);
  return text(std::vector<std::byte>(span.begin(), span.end()));
}

TEST(PythonText, ChoosesQuotesAndEscapesThem) {
  EXPECT_EQ(text(""), "''");
  EXPECT_EQ(text("a b"), "'a b'");
  EXPECT_EQ(text("it's"), R"("it's")");
  EXPECT_EQ(text("\"q\""), R"('"q"')");
  EXPECT_EQ(text("'\""), R"('\'"')");
  EXPECT_EQ(text("a\\b"), R"('a\\b')");
}

TEST(PythonText, EscapesControls) {
  EXPECT_EQ(text("\t\n\r"), R"('\t\n\r')");
  EXPECT_EQ(text(std::string("\0\a\b\v\f\x1b\x1f ~\x7f", 10)),
            R"('\x00\x07\x08\x0b\x0c\x1b\x1f ~\x7f')");
  EXPECT_EQ(text("\xc2\x80\xc2\x9f\xc2\xa0\xc2\xad"), R"('\x80\x9f\xa0\xad')");
}

TEST(PythonText, LeavesPrintedCharactersAsTheyAre) {
  for (const std::string letters :
       {"¡ÿ", "ČšŁőȠ", "Ωμέγα", "Привет", "שלום", "नमस", "สวัสดี", "日本語", "ひらカナ", "한국어",
        "“…”", "€", "√∑", "🙂🎉", "𠀀"}) {
    EXPECT_EQ(text(letters), "'" + letters + "'");
  }
}

TEST(PythonText, RefusesWhatPythonsDoNotAgreeOnByName) {
  // Zero width space, ideographic space, a letter of Unicode 16, private use, unassigned, the last.
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"\xe2\x80\x8b", "U+200B"},      {"\xe3\x80\x80", "U+3000"}, {"\xea\x9f\x9a", "U+A7DA"},
      {"\xee\x80\x80", "U+E000"},      {"\xcd\xb8", "U+0378"},     {"\xf0\x9f\xab\xa0", "U+1FAE0"},
      {"\xf4\x8f\xbf\xbf", "U+10FFFF"}};
  for (const auto& [character, name] : refused) {
    const auto printed = python_text("ab" + character);
    EXPECT_EQ(printed.status().code(), Code::kInvalidArgument) << name;
    EXPECT_NE(printed.status().message().find(name), std::string::npos)
        << printed.status().message();
  }
}

TEST(PythonText, PrintsBytes) {
  EXPECT_EQ(bytes_text(""), "b''");
  EXPECT_EQ(bytes_text("it's\\"), R"(b"it's\\")");
  EXPECT_EQ(bytes_text("'\"\t"), R"(b'\'"\t')");
  EXPECT_EQ(bytes_text("\x7f\x80\xc3\xa9\xff"), R"(b'\x7f\x80\xc3\xa9\xff')");
}

TEST(PythonText, PrintsIntegers) {
  EXPECT_EQ(text(int64_t{0}), "0");
  EXPECT_EQ(text(INT64_MAX), "9223372036854775807");
  EXPECT_EQ(text(INT64_MIN), "-9223372036854775808");
}

}  // namespace
}  // namespace kvkeep
