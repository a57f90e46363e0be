#include <algorithm>

#include "base/bytes.h"
#include "io/read_engine.h"

namespace kvkeep {
namespace {

constexpr uint64_t kPieceBytes = 4ull << 20;

class PreadEngine : public ReadEngine {
 public:
  explicit PreadEngine(std::shared_ptr<FileSystem> file_system)
      : file_system_(std::move(file_system)) {}

  void read_files(std::span<const ReadRequest> requests, const ReadDone& done) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      ReadOutcome outcome;
      outcome.status = read_file(requests[i], outcome);
      done(i, std::move(outcome));
    }
  }

 private:
  Status read_file(const ReadRequest& request, ReadOutcome& outcome) {
    KVKEEP_TRY_ASSIGN(const std::unique_ptr<ReadFile> file, file_system_->open_read(request.path));
    KVKEEP_TRY_ASSIGN(outcome.stat, file->stat());
    const uint64_t wanted = std::min<uint64_t>(outcome.stat.size, request.into.size());
    // Asking for whole units where there is room for them lets the last piece bypass the page cache
    // too.
    const uint64_t asked = std::min<uint64_t>(round_up(wanted, kIoAlign), request.into.size());
    uint64_t done = 0;
    while (done < wanted) {
      const std::span<std::byte> piece =
          request.into.subspan(done, std::min(asked - done, kPieceBytes));
      KVKEEP_TRY_ASSIGN(const size_t n, file->pread(done, piece));
      if (n == 0) break;
      // A file that grew meanwhile may give more than its stat promised.
      done = std::min(done + n, wanted);
      outcome.bytes_read = done;
    }
    return {};
  }

  const std::shared_ptr<FileSystem> file_system_;
};

}  // namespace

std::unique_ptr<ReadEngine> make_pread_engine(std::shared_ptr<FileSystem> file_system) {
  return std::make_unique<PreadEngine>(std::move(file_system));
}

}  // namespace kvkeep
