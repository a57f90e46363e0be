#include "cli/generate.h"

#include <gtest/gtest.h>

#include <set>

namespace kvkeep::cli {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Generate, EveryTextNamesEveryVerbAndFlag) {
  for (const std::string& text :
       {bash_completion(), zsh_completion(), fish_completion(), manual_page()}) {
    for (const Verb& verb : verbs()) {
      EXPECT_TRUE(has(text, verb.name)) << verb.name << " in " << text;
      for (const Flag& flag : verb.flags) {
        std::string name(flag.name);
        if (has(text, ".TH")) {  // The manual page escapes its dashes.
          for (size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2)
            name.replace(at, 1, "\\-");
        }
        EXPECT_TRUE(has(text, name)) << flag.name;
      }
    }
  }
}

TEST(Help, EveryVerbHasAnExampleOfItself) {
  std::set<std::string_view> names;
  for (const Verb& verb : verbs()) {
    EXPECT_TRUE(names.insert(verb.name).second) << verb.name;
    EXPECT_TRUE(has(program_help(), verb.name)) << verb.name;
    const std::string help = verb_help(verb);
    EXPECT_TRUE(has(help, "Example:\n  ")) << help;
    EXPECT_TRUE(has(std::string(verb.example), "kvkeep " + std::string(verb.name)));
    EXPECT_TRUE(has(help, "--json"));
    for (const Flag& flag : verb.flags) EXPECT_TRUE(has(help, flag_text(flag))) << help;
  }
}

TEST(Help, NoLineIsWiderThanATerminal) {
  std::string all = program_help();
  for (const Verb& verb : verbs()) all += verb_help(verb);
  size_t width = 0;
  for (const char c : all) {
    width = c == '\n' ? 0 : width + ((static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0);
    ASSERT_LE(width, 100u) << all;
  }
}

TEST(Help, WhatRmRemovesNeverComesFromAVariable) {
  for (const Verb& verb : verbs()) {
    if (verb.name != "rm") continue;
    for (const Flag& flag : verb.flags) {
      const bool harmless = flag.name == "dir" || flag.name == "json" || flag.name == "dry-run";
      EXPECT_EQ(flag.variable.empty(), !harmless) << flag.name;
    }
  }
}

}  // namespace
}  // namespace kvkeep::cli
