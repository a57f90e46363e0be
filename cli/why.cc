#include "kvkeep/why.h"

#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/token_file.h"
#include "cli/why_question.h"
#include "kvkeep/size_string.h"

namespace kvkeep::cli {
namespace {

namespace fs = std::filesystem;

std::string state_of(const BlockAnswer& block) {
  return block.reason ? std::string(name_of(*block.reason)) : "ok";
}

Style style_of(const BlockAnswer& block) { return block.reason ? Style::kBad : Style::kPlain; }

Result<std::vector<BlockAnswer>> ask_for_blocks(const fs::path& store,
                                                const WhyQuestion& question) {
  std::vector<BlockAnswer> answers;
  for (const std::string& word : question.keys) {
    KVKEEP_TRY_ASSIGN(const BlockHash key, resolve_asked_key(store, word));
    KVKEEP_TRY_ASSIGN(BlockAnswer answer, why_block(store, key, question.expected));
    answers.push_back(std::move(answer));
  }
  return answers;
}

std::string blocks_json(const std::vector<BlockAnswer>& answers) {
  using Json = nlohmann::ordered_json;
  Json out{{"blocks", Json::array()}};
  for (const BlockAnswer& answer : answers) out["blocks"].push_back(Json::parse(to_json(answer)));
  return out.dump();
}

int print_blocks(const std::vector<BlockAnswer>& answers, bool json, Console& console) {
  bool all_found = true;
  for (const BlockAnswer& answer : answers) {
    all_found = all_found && !answer.reason;
    if (json) continue;
    console.line(answer.key.short_hex() + ": " +
                 console.styled(state_of(answer), style_of(answer)) + ": " + shown(answer.text));
  }
  if (json) console.line(blocks_json(answers));
  return all_found ? kFine : kFoundProblem;
}

void print_table(const PromptAnswer& answer, Console& console) {
  Table table({{"TOKENS", Align::kRight}, {"KEY"}, {"SIZE", Align::kRight}, {"STATE"}});
  for (const BlockAnswer& block : answer.blocks) {
    const uint64_t first = block.first_token.value_or(0);
    table.add({std::to_string(first) + "-" + std::to_string(first + block.token_count - 1),
               block.key.short_hex(), block.file_size > 0 ? format_bytes(block.file_size) : "-",
               state_of(block)},
              style_of(block));
  }
  table.print(console);
}

Result<PromptAnswer> ask_for_prompt(const fs::path& store, const WhyQuestion& question,
                                    Console& console) {
  KVKEEP_TRY_ASSIGN(const std::vector<uint32_t> tokens, read_tokens(*question.file));
  Progress progress(console, "why");
  PromptQuestion asked = question.prompt;
  asked.tokens = tokens;
  asked.progress = [&](uint64_t blocks, uint64_t of) {
    progress.update(blocks, of, count_of(blocks, "block"));
  };
  return why_prompt(store, asked);
}

int print_prompt(const PromptAnswer& answer, bool json, Console& console) {
  if (json) {
    console.line(to_json(answer));
  } else {
    if (!answer.blocks.empty()) print_table(answer, console);
    console.line(shown(answer.text));
  }
  return answer.reason ? kFoundProblem : kFine;
}

int run_why(const Arguments& arguments, Console& console) {
  const Result<WhyQuestion> question = why_question(arguments, process_variables());
  if (!question.ok()) return console.fail("why", question.status());
  const auto store = choose_store(question->dir, arguments, process_variables());
  if (!store.ok()) return console.fail("why", store.status());
  const bool json = arguments.has("json");
  if (question->file) {
    const Result<PromptAnswer> answer = ask_for_prompt(*store, *question, console);
    return answer.ok() ? print_prompt(*answer, json, console)
                       : console.fail("why", answer.status());
  }
  const auto answers = ask_for_blocks(*store, *question);
  return answers.ok() ? print_blocks(*answers, json, console)
                      : console.fail("why", answers.status());
}

}  // namespace

Verb why_verb() {
  return {
      "why",
      "[DIR] KEY… | [DIR] --tokens FILE",
      -1,
      "say why a block or a prompt would hit or miss",
      "Reads the blocks as a load does and says what a cache would answer that opens the store "
      "now, down to the field that differs. KEY is any unique beginning of a key, of at least 6 "
      "characters. Status 0: a hit; 1: a miss.",
      "kvkeep why --tokens prompt.json --model my-model --block-size 256",
      why_flags(),
      run_why};
}

}  // namespace kvkeep::cli
