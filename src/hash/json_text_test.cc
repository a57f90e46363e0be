#include "hash/json_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "hash/json_document.h"

namespace kvkeep {
namespace {

std::string json_of(std::string_view text) {
  std::string out;
  return append_json_string(out, text) ? out : "refused";
}

std::string written(double value) {
  std::string out;
  return append_json_double(out, value) ? out : "refused";
}

TEST(JsonText, EscapesTheTestVectorOfTheContract) {
  EXPECT_EQ(json_of("a/\x7f\x01\n\t\"\\\u00e9\U0001F600"),
            "\"a/\\u007f\\u0001\\n\\t\\\"\\\\\\u00e9\\ud83d\\ude00\"");
}

TEST(JsonText, EscapesEveryCodePointSoThatAParserGivesItBack) {
  for (uint32_t point = 0; point <= 0x10ffff; point += point < 0x3000 ? 1 : 0x3fd) {
    if (point >= 0xd800 && point <= 0xdfff) continue;
    std::string text;
    if (point < 0x80) {
      text += static_cast<char>(point);
    } else if (point < 0x800) {
      text += static_cast<char>(0xc0 | point >> 6);
      text += static_cast<char>(0x80 | (point & 63));
    } else if (point < 0x10000) {
      text += static_cast<char>(0xe0 | point >> 12);
      text += static_cast<char>(0x80 | (point >> 6 & 63));
      text += static_cast<char>(0x80 | (point & 63));
    } else {
      text += static_cast<char>(0xf0 | point >> 18);
      text += static_cast<char>(0x80 | (point >> 12 & 63));
      text += static_cast<char>(0x80 | (point >> 6 & 63));
      text += static_cast<char>(0x80 | (point & 63));
    }
    const std::string json = json_of(text);
    for (const char c : json) ASSERT_TRUE(c >= 0x20 && c <= 0x7e) << point;
    JsonDocument document;
    const auto root = document.parse(json, 1);
    ASSERT_TRUE(root) << point;
    ASSERT_EQ(std::string(root->get_string().value_unsafe()), text) << point;
  }
}

TEST(JsonText, RefusesTextThatIsNotUtf8AndAppendsNothing) {
  for (const std::string_view bad : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "a\x80"}) {
    std::string out = "before";
    EXPECT_FALSE(append_json_string(out, bad));
    const std::vector<std::string> items = {"good", std::string(bad)};
    EXPECT_FALSE(append_json_strings(out, items, JsonStyle::kSpaced));
    EXPECT_EQ(out, "before");
  }
}

TEST(JsonText, LaysDoublesOutAsTheContractsTable) {
  const std::vector<std::pair<double, std::string>> table = {
      {6, "6.0"},
      {3.5, "3.5"},
      {100000, "100000.0"},
      {1e15, "1000000000000000.0"},
      {1767225600, "1767225600.0"},
      {1767225600.1234567, "1767225600.1234567"},
      {1e16, "1e+16"},
      {123456789012345680.0, "1.2345678901234568e+17"},
      {0.0001, "0.0001"},
      {0.00001, "1e-05"},
      {1e22, "1e+22"},
      {-0.0, "-0.0"},
      {0.0, "0.0"},
      {-12.75, "-12.75"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {1.5e-7, "1.5e-07"},
      {9999999999999998, "9999999999999998.0"},
      {0.1, "0.1"},
      {1e100, "1e+100"},
  };
  for (const auto& [value, text] : table) EXPECT_EQ(written(value), text);
}

TEST(JsonText, WritesDoublesThatReadBackAsThemselves) {
  uint64_t bits = 1;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    double value = 0;
    static_assert(sizeof value == sizeof bits);
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const auto back = parse_number(written(value));
    ASSERT_TRUE(back) << written(value);
    ASSERT_EQ(std::memcmp(&value, &*back, sizeof value), 0) << written(value);
  }
}

TEST(JsonText, RefusesNumbersThatAreNotFinite) {
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "refused");
  EXPECT_EQ(written(std::numeric_limits<double>::infinity()), "refused");
  EXPECT_EQ(written(-std::numeric_limits<double>::infinity()), "refused");
}

TEST(JsonText, SeparatesItemsByStyle) {
  const std::vector<std::string> items = {"a", "b"};
  std::string out;
  EXPECT_TRUE(append_json_strings(out, items, JsonStyle::kCompact));
  EXPECT_TRUE(append_json_strings(out, items, JsonStyle::kSpaced));
  EXPECT_TRUE(append_json_strings(out, {}, JsonStyle::kSpaced));
  EXPECT_EQ(out, "[\"a\",\"b\"][\"a\", \"b\"][]");
}

TEST(JsonDocument, BoundsNesting) {
  JsonDocument document;
  EXPECT_TRUE(document.parse("[[[1]]]", 3));
  EXPECT_FALSE(document.parse("[[[1]]]", 2));
  EXPECT_FALSE(document.parse(std::string(100000, '['), 3));
  EXPECT_TRUE(document.parse("1", 1)) << "a document may be used again";
}

TEST(JsonDocument, FindsDuplicateMembers) {
  JsonDocument document;
  const auto unique = [&](std::string_view text) {
    simdjson::dom::object object;
    EXPECT_EQ(document.parse(text, 3)->get_object().get(object), simdjson::SUCCESS);
    return members_are_unique(object);
  };
  EXPECT_TRUE(unique(R"({"a":1,"b":{"a":2}})"));
  EXPECT_FALSE(unique(R"({"a":1,"b":2,"a":1})"));
  EXPECT_FALSE(unique(R"({"a":1,"\u0061":2})"));
}

}  // namespace
}  // namespace kvkeep
