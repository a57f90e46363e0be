#include <algorithm>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/store_choice.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "cli/work.h"
#include "kvkeep/size_string.h"

namespace kvkeep::cli {
namespace {

using Before = bool (*)(const BlockRecord&, const BlockRecord&);

// The order, or null for a word that is none. Equal blocks are in the order of their keys.
Before order_of(const std::string& word) {
  if (word == "used") {
    return [](const BlockRecord& a, const BlockRecord& b) {
      return a.meta.last_access > b.meta.last_access;
    };
  }
  if (word == "size") {
    return [](const BlockRecord& a, const BlockRecord& b) {
      return a.meta.file_size > b.meta.file_size;
    };
  }
  if (word == "age") {
    return [](const BlockRecord& a, const BlockRecord& b) {
      return a.meta.created_at < b.meta.created_at;
    };
  }
  if (word == "key") {
    return [](const BlockRecord& a, const BlockRecord& b) { return a.meta.hash < b.meta.hash; };
  }
  return nullptr;
}

struct Listing {
  std::filesystem::path store;
  Before before = nullptr;
  uint64_t limit = UINT64_MAX;
};

Result<Listing> listing_of(const Arguments& arguments) {
  Listing listing;
  const std::string order = arguments.value("sort").value_or("used");
  listing.before = order_of(order);
  if (listing.before == nullptr) {
    return Status(Code::kInvalidArgument, "--sort " + order + ": there is used, size, age and key");
  }
  if (const auto limit = arguments.value("limit")) {
    KVKEEP_TRY_ASSIGN(listing.limit, parse_count("limit", *limit));
  }
  KVKEEP_TRY_ASSIGN(listing.store, store_of(arguments));
  return listing;
}

// What the table does not show is most of a record.
void forget_long_parts(BlockInfo& info) {
  info.meta_states.reset();
  info.layer_types.reset();
  info.signature.clear();
}

std::vector<std::string> short_row(const BlockRecord& block, double at) {
  const bool known = block.state == BlockState::kOk;
  return {block.meta.hash.short_hex(),
          shown(block.meta.info.model_name),
          known ? std::to_string(block.meta.info.token_count) : "-",
          format_bytes(block.meta.file_size),
          known ? format_age(at - block.meta.created_at) : "-",
          format_age(at - block.meta.last_access),
          std::string(name_of(block.state))};
}

std::vector<std::string> long_row(const BlockRecord& block, double at) {
  const bool known = block.state == BlockState::kOk;
  const std::string build = block.name_space != nullptr ? block.name_space->build() : "";
  std::vector<std::string> row = short_row(block, at);
  row[0] = block.meta.hash.to_hex();
  row.insert(row.end() - 1, {known ? std::to_string(block.meta.info.num_layers) : "-",
                             known ? std::to_string(block.meta.info.block_size) : "-",
                             !known             ? "-"
                             : block.has_digest ? "extended"
                                                : "seed",
                             shown(build)});
  return row;
}

std::vector<Table::Column> columns(bool is_long) {
  std::vector<Table::Column> all{{"KEY"},
                                 {"MODEL"},
                                 {"TOKENS", Align::kRight},
                                 {"SIZE", Align::kRight},
                                 {"AGE", Align::kRight},
                                 {"USED", Align::kRight},
                                 {"STATE"}};
  if (!is_long) return all;
  all.insert(all.end() - 1,
             {{"LAYERS", Align::kRight}, {"BLOCK", Align::kRight}, {"PROFILE"}, {"BUILD"}});
  return all;
}

void print_table(const std::vector<BlockRecord>& blocks, bool is_long, Console& console) {
  Table table(columns(is_long));
  const double at = now();
  for (const BlockRecord& block : blocks) {
    table.add(is_long ? long_row(block, at) : short_row(block, at),
              block.state == BlockState::kOk ? Style::kPlain : Style::kBad);
  }
  table.print(console);
}

int run_ls(const Arguments& arguments, Console& console) {
  const Result<Listing> listing = listing_of(arguments);
  if (!listing.ok()) return console.fail("ls", listing.status());
  const std::optional<std::string> model = arguments.value("model");
  const bool json = arguments.has("json");
  std::vector<BlockRecord> blocks;
  const auto totals = list_with_progress(listing->store, console, [&](BlockRecord block) {
    if (model && block.meta.info.model_name != *model) return;
    if (!json) forget_long_parts(block.meta.info);
    blocks.push_back(std::move(block));
  });
  if (!totals.ok()) return console.fail("ls", totals.status());
  std::sort(blocks.begin(), blocks.end(), order_of("key"));
  std::stable_sort(blocks.begin(), blocks.end(), listing->before);
  if (blocks.size() > listing->limit)
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(listing->limit), blocks.end());
  if (!json) {
    print_table(blocks, arguments.has("long"), console);
    return kFine;
  }
  for (const BlockRecord& block : blocks) {
    if (console.is_closed()) break;
    console.line(to_json(block));
  }
  return kFine;
}

}  // namespace

Verb ls_verb() {
  return {
      "ls",
      "[DIR]",
      1,
      "list the blocks of a store",
      "One line per block: short key, model, tokens, size, age, time since the last use, state.",
      "kvkeep ls --model my-model --sort size --limit 10",
      {kDirFlag,
       kModelFlag,
       {"sort", "ORDER", "used (default), size, age or key", "KVKEEP_SORT", "used|size|age|key"},
       {"limit", "N", "at most so many lines", "KVKEEP_LIMIT"},
       {"long", "", "also layers, block size, build, profile and the whole key", "KVKEEP_LONG"},
       kJsonLinesFlag},
      run_ls};
}

}  // namespace kvkeep::cli
