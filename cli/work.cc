#include "cli/work.h"

#include "cli/text.h"
#include "kvkeep/environment.h"

namespace kvkeep::cli {

Result<DirectoryTotals> list_with_progress(const std::filesystem::path& store, Console& console,
                                           const std::function<void(BlockRecord)>& visit) {
  Progress progress(console, "reading headers");
  uint64_t blocks = 0;
  return list_blocks(store, [&](BlockRecord record) {
    ++blocks;
    progress.update(blocks, 0, count_of(blocks, "block"));
    visit(std::move(record));
  });
}

RemovalProgress removal_progress(Progress& progress) {
  return [&progress](uint64_t done, uint64_t of) {
    progress.update(done, of, count_of(done, "block") + (of == 0 ? " read" : " removed"));
  };
}

double now() { return system_clock()->wall(); }

}  // namespace kvkeep::cli
