#include "cli/why_question.h"

#include <algorithm>

#include "cli/flags.h"
#include "cli/text.h"

namespace kvkeep::cli {
namespace {

constexpr uint32_t kDefaultBlockSize = 256;

Status refuse(const std::string& why) {
  return Status(Code::kInvalidArgument, why + " (see kvkeep why --help)");
}

// Adds what was written as NAME=VALUE.
Status add_field(const std::string& flag, const std::string& text, Namespace& fields) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return refuse("--" + flag + " \"" + text + "\": write NAME=VALUE");
  }
  const std::string name = text.substr(0, equals);
  if (fields.emplace(name, text.substr(equals + 1)).second) return {};
  return refuse("--" + flag + " " + name + ": given twice");
}

Result<Namespace> fields_of(const Arguments& arguments) {
  Namespace fields;
  for (const char* name : {"model", "adapter", "salt"}) {
    if (const auto value = arguments.value(name)) fields[name] = *value;
  }
  for (const std::string& text : arguments.list("field")) {
    KVKEEP_TRY(add_field("field", text, fields));
  }
  return fields;
}

Result<uint32_t> block_size_of(const Arguments& arguments, uint32_t otherwise) {
  const auto text = arguments.value("block-size");
  if (!text) return otherwise;
  KVKEEP_TRY_ASSIGN(const uint64_t tokens, parse_count("block-size", *text));
  return static_cast<uint32_t>(std::min<uint64_t>(tokens, UINT32_MAX));
}

Status ask_for_prompt(const Arguments& arguments, WhyQuestion& question) {
  if (!question.keys.empty()) return refuse("keys and --tokens contradict each other");
  PromptQuestion& prompt = question.prompt;
  KVKEEP_TRY_ASSIGN(prompt.fields, fields_of(arguments));
  KVKEEP_TRY_ASSIGN(prompt.block_size, block_size_of(arguments, kDefaultBlockSize));
  if (const auto recipe = arguments.value("recipe")) {
    KVKEEP_TRY_ASSIGN(prompt.recipe, key_recipe_from_name(*recipe));
  }
  prompt.expected.identity = question.expected.identity;
  return {};
}

// A key says all that these flags say; one that a variable gives is meant for prompts.
Status ask_for_blocks(const Arguments& arguments, const Variables& variables,
                      WhyQuestion& question) {
  if (question.keys.empty()) return refuse("name a key, or --tokens FILE");
  for (const Flag& flag : why_flags()) {
    const std::string name(flag.name);
    if (name != "adapter" && name != "salt" && name != "recipe" && name != "field") continue;
    const auto variable = variables(std::string(flag.variable).c_str());
    auto given = arguments.list(name);
    if (const auto value = arguments.value(name)) given.push_back(*value);
    if (given.empty() || (given.size() == 1 && given.front() == variable)) continue;
    return refuse("--" + name + ": only with --tokens");
  }
  question.expected.layout.model_name = arguments.value("model").value_or("");
  KVKEEP_TRY_ASSIGN(question.expected.layout.block_size, block_size_of(arguments, 0));
  return {};
}

}  // namespace

std::vector<Flag> why_flags() {
  return {
      kDirFlag,
      {"tokens", "FILE", "token ids of a prompt as a JSON array; - reads standard input",
       "KVKEEP_TOKENS"},
      {"model", "MODEL", "the prompt's model; with KEY: that the cache is for", "KVKEEP_MODEL"},
      {"adapter", "ADAPTER", "the prompt's adapter", "KVKEEP_ADAPTER"},
      {"salt", "SALT", "the prompt's salt; best given by the variable", "KVKEEP_SALT"},
      {"field", "NAME=VALUE", "another field of the prompt's namespace", "KVKEEP_FIELD", {}, true},
      {"block-size", "N", "tokens of a block, 256 unless given; with KEY: that the cache is for",
       "KVKEEP_BLOCK_SIZE"},
      {"recipe", "RECIPE", "of the prompt's keys: kvkeep-1 (default) or omlx-1", "KVKEEP_RECIPE",
       "kvkeep-1|omlx-1"},
      {"identity",
       "NAME=VALUE",
       "a field of the identity that the cache has",
       "KVKEEP_IDENTITY",
       {},
       true},
      kJsonFlag};
}

Result<WhyQuestion> why_question(const Arguments& arguments, const Variables& variables) {
  WhyQuestion question;
  auto [dir, keys] = split_words(arguments.words);
  question.dir = std::move(dir);
  question.keys = std::move(keys);
  question.file = arguments.value("tokens");
  for (const std::string& text : arguments.list("identity")) {
    if (!question.expected.identity) question.expected.identity.emplace();
    KVKEEP_TRY(add_field("identity", text, *question.expected.identity));
  }
  KVKEEP_TRY(question.file ? ask_for_prompt(arguments, question)
                           : ask_for_blocks(arguments, variables, question));
  return question;
}

}  // namespace kvkeep::cli
