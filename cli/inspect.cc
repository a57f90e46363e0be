#include <filesystem>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/store_choice.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "cli/work.h"
#include "kvkeep/directory.h"
#include "kvkeep/size_string.h"

namespace kvkeep::cli {
namespace {

namespace fs = std::filesystem;

Result<BlockInspection> look(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words;
  std::error_code ignored;
  if (words.empty()) {
    return Status(Code::kInvalidArgument,
                  "name a file, or a key of at least 6 characters (see kvkeep inspect --help)");
  }
  if (words.size() == 1 && !looks_like_key(words[0])) {
    if (fs::is_directory(words[0], ignored)) {
      return Status(Code::kInvalidArgument, words[0] + " is a directory (name a key as well)");
    }
    return inspect_file(words[0]);
  }
  if (words.size() == 1 && fs::exists(words[0], ignored)) return inspect_file(words[0]);
  const std::optional<std::string> dir = words.size() == 2 ? std::optional(words[0]) : std::nullopt;
  KVKEEP_TRY_ASSIGN(const fs::path store, choose_store(dir, arguments, process_variables()));
  KVKEEP_TRY_ASSIGN(const BlockHash key, resolve_key(store, words.back()));
  return inspect_block(store, key);
}

class Sheet {
 public:
  explicit Sheet(Console& console) : console_(console) {}
  void put(const std::string& name, const std::string& value) {
    constexpr size_t kWidth = 11;
    console_.line(console_.styled(name, Style::kBold) +
                  std::string(kWidth - std::min(kWidth - 1, name.size()), ' ') + value);
  }

 private:
  Console& console_;
};

std::string when(double seconds, double at) {
  return format_time(seconds) + " (" + format_age(at - seconds) + " ago)";
}

void print_block(const BlockRecord& block, Console& console) {
  Sheet sheet(console);
  const double at = now();
  const BlockInfo& info = block.meta.info;
  sheet.put("key", block.meta.hash.to_hex());
  sheet.put("file", shown(block.meta.path.string()));
  sheet.put("size", format_bytes(block.meta.file_size) + " (" + format_bytes(block.allocated) +
                        " on the disk)");
  sheet.put("last use", when(block.meta.last_access, at));
  if (block.state != BlockState::kOk) return;
  sheet.put("created", when(block.meta.created_at, at));
  sheet.put("model", shown(info.model_name));
  sheet.put("tokens",
            std::to_string(info.token_count) + ", block size " + std::to_string(info.block_size));
  sheet.put("layers", std::to_string(info.num_layers));
  sheet.put("profile", block.has_digest ? "extended" : "seed");
  sheet.put("signature", shown(info.signature));
  if (info.parent) sheet.put("parent", info.parent->to_hex());
  if (!block.identity) return;
  sheet.put("identity", *block.identity + (block.name_space == nullptr ? " (not known here)" : ""));
  if (block.name_space == nullptr) return;
  for (const auto& [name, value] : block.name_space->fields) {
    sheet.put("", shown(name) + " = " + shown(value));
  }
}

std::string digest_text(DigestState digest) {
  switch (digest) {
    case DigestState::kOk:
      return "ok: every byte is as it was written";
    case DigestState::kMissing:
      return "missing: only the structure could be checked";
    case DigestState::kWrong:
      return "wrong";
    case DigestState::kUnknown:
      break;
  }
  return "not checked: the header makes no sense";
}

void print_verdict(const BlockInspection& block, Console& console) {
  Sheet sheet(console);
  const bool bad = block.digest == DigestState::kWrong;
  sheet.put("digest", console.styled(digest_text(block.digest), bad ? Style::kBad : Style::kPlain));
  sheet.put("state", block.verdict.ok()
                         ? "ok: a load would take it"
                         : console.styled(shown(block.verdict.message()), Style::kBad));
}

std::string shape_text(const TensorRow& tensor) {
  if (tensor.is_null) return "none";
  std::string text = "[";
  for (const uint64_t length : tensor.shape) {
    text += (text.size() > 1 ? "," : "") + std::to_string(length);
  }
  return text + "]";
}

void print_layers(const BlockInspection& block, Console& console) {
  Table table({{"LAYER", Align::kRight},
               {"KIND"},
               {"TYPE"},
               {"TENSOR"},
               {"DTYPE"},
               {"SHAPE"},
               {"BYTES", Align::kRight}});
  for (const LayerRow& layer : block.layers) {
    for (const TensorRow& tensor : layer.tensors) {
      const size_t comma = tensor.place.find(", ");
      const std::string place =
          comma == std::string::npos ? tensor.name : tensor.place.substr(comma + 2);
      table.add({std::to_string(layer.layer), layer.kind, shown(layer.type), shown(place),
                 std::string(name_of(tensor.dtype)), shape_text(tensor),
                 std::to_string(tensor.bytes)});
    }
  }
  console.line("");
  table.print(console);
}

void print_metadata(const BlockInspection& block, Console& console) {
  console.line("");
  for (const auto& [key, value] : block.metadata) {
    if (key.substr(0, 6) != "layer_") console.line(shown(key) + " = " + shown(value));
  }
}

int run_inspect(const Arguments& arguments, Console& console) {
  const Result<BlockInspection> block = look(arguments);
  if (!block.ok()) return console.fail("inspect", block.status());
  if (arguments.has("json")) {
    console.line(to_json(*block));
  } else {
    print_block(block->record, console);
    print_verdict(*block, console);
    print_metadata(*block, console);
    if (!block->layers.empty()) print_layers(*block, console);
  }
  return block->verdict.ok() ? kFine : kFoundProblem;
}

}  // namespace

Verb inspect_verb() {
  return {
      "inspect",
      "FILE | [DIR] KEY",
      2,
      "show everything about one block",
      "Metadata, identity, digest, the layers with their tensors, and whether a load would take "
      "the block. KEY is any unique beginning of a key, of at least 6 characters.",
      "kvkeep inspect 3fa95b",
      {kDirFlag, kJsonFlag},
      run_inspect};
}

}  // namespace kvkeep::cli
