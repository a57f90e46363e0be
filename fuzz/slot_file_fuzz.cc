// Any bytes are either refused as a slot file, or say what is written again: the same bytes, but
// for the older list of tokens, which is written in the newer form.
//
// Memory errors are the sanitizers' part: the file lies in a buffer that is exactly as long.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "connectors/llama/slot_file.h"
#include "connectors/llama/slot_writer.h"

namespace kvkeep::llama {
namespace {

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

std::vector<std::byte> written(const SlotFile& file) {
  std::vector<std::byte> out(slot_file_bytes(file.layout, file.tokens.size()));
  auto writer = SlotWriter::begin(file.layout, file.slot, file.tokens, out);
  require(writer.ok(), "an accepted file cannot be written: " + writer.status().to_string());
  if (!file.tokens.empty()) {
    const Status put = writer->put(0, LoadedBlock{file.layers, {}, {}}, file.tokens.size());
    require(put.ok(), "the rows of an accepted file are refused: " + put.to_string());
  }
  require(writer->finish().ok(), "an accepted file lacks rows");
  return out;
}

bool is_packed(BytesView file) {
  constexpr size_t kFirstWordAt = 12;
  const BytesView word = file.subspan(kFirstWordAt, 4);
  return std::all_of(word.begin(), word.end(), [](std::byte b) { return b == std::byte{0xff}; });
}

void check(BytesView bytes) {
  const Result<SlotFile> file = parse_slot_file(bytes, nullptr);
  if (!file.ok()) return;
  const std::vector<std::byte> once = written(*file);
  if (is_packed(bytes)) {
    require(std::equal(once.begin(), once.end(), bytes.begin(), bytes.end()),
            "an accepted file changed");
    return;
  }
  const Result<SlotFile> again = parse_slot_file(once, nullptr);
  require(again.ok(), "a written file is refused: " + again.status().to_string());
  require(again->layout == file->layout && again->tokens == file->tokens && written(*again) == once,
          "a written file says something else");
}

}  // namespace
}  // namespace kvkeep::llama

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvkeep::llama::check(std::as_bytes(std::span(data, size)));
  return 0;
}
