#include "tier/store_notes.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/guarded.h"
#include "disk/namespaces.h"
#include "disk/recorded_limit.h"
#include "disk/service_file.h"
#include "disk/store_layout.h"
#include "hash/signature.h"

namespace kvkeep {
namespace {

constexpr uint64_t kNamespaceBytesMax = 1 << 20;
constexpr uint64_t kShareOfLimit = 64;

uint64_t allocated(FileSystem& file_system, std::string_view path) {
  const Result<FileStat> stat = file_system.stat(path);
  return stat.ok() ? stat->allocated : 0;
}

// What becomes of a note where the limit leaves no room for a second file beside the old one.
enum class Room : uint8_t {
  kNeeded,  // It is left out.
  kTaken,   // It is written all the same.
};

// Charged before it exists, as all that is in the store. While the cache opens there is no account
// yet; what is there then is counted later.
Status replace_charged(CacheState& state, std::string_view path, const std::string& text,
                       Room room) {
  FileSystem& files = state.directory->file_system();
  if (state.account == nullptr) return replace_service_file(files, path, text);
  const uint64_t before = allocated(files, path);
  const uint64_t needed = round_up(text.size(), kIoAlign);
  if (!state.account->charge_more(needed)) {
    if (room == Room::kNeeded) return Status(Code::kResourceExhausted, "the store is at its limit");
    state.account->charge_found(needed);
  }
  const Status replaced = replace_service_file(files, path, text);
  state.account->replace_overhead(before, allocated(files, path));
  state.account->release(needed);
  return replaced;
}

Status add_namespaces(CacheState& state, std::span<const NamespaceClaim> claims) {
  const uint64_t most = std::min(kNamespaceBytesMax, state.options.max_size_bytes / kShareOfLimit);
  std::string damage;
  const Result<std::string> text =
      namespaces_with(state.directory->file_system(), claims, most, damage);
  if (!damage.empty()) state.log(LogLevel::kWarning, damage + ": ignored, and written anew");
  if (!text.ok()) return text.status();
  return text->empty() ? Status() : replace_charged(state, kNamespacesFile, *text, Room::kNeeded);
}

void write_namespaces(CacheState& state, std::span<const NamespaceClaim> claims) {
  const Status written = add_namespaces(state, claims);
  if (written.ok()) return;
  state.log(LogLevel::kWarning,
            "tools will not know what namespaces wrote here: " + written.message());
}

void write_limit(CacheState& state, uint64_t bytes) {
  if (read_recorded_limit(state.directory->file_system()) == bytes) return;
  // A limit that was just lowered is often exceeded for a while; the reserve holds so small a file.
  const Status written =
      replace_charged(state, kLimitFile, recorded_limit_text(bytes), Room::kTaken);
  if (written.ok()) return;
  state.log(LogLevel::kWarning, "tools will not know the limit: " + written.message());
}

void write_later(const std::shared_ptr<CacheState>& state) {
  state->environment.executor->post([weak = std::weak_ptr(state)] {
    const std::shared_ptr<CacheState> alive = weak.lock();
    if (alive == nullptr) return;
    guarded_task([&] {
      const CallGate::Pass pass(alive->gate);
      if (pass) write_notes(*alive);
    });
  });
}

}  // namespace

void write_opening_notes(CacheState& state) {
  const Options& options = state.options;
  write_limit(state, options.max_size_bytes);
  const std::optional<std::string> digest = identity_digest(options.identity);
  if (!digest) return;
  const NamespaceClaim claim{*digest, options.model_name, options.identity, state.clock().wall()};
  write_namespaces(state, {&claim, 1});
}

void note_namespace(const std::shared_ptr<CacheState>& state, const BlockHash& root,
                    const Namespace& fields) {
  if (!state->has_disk()) return;
  const auto model = fields.find("model");
  const bool named = model != fields.end() && !model->second.empty();
  NamespaceClaim claim{root.to_hex(), named ? model->second : state->options.model_name, fields,
                       state->clock().wall(), true};
  if (state->notes.add(std::move(claim))) write_later(state);
}

void note_limit(const std::shared_ptr<CacheState>& state) {
  if (state->has_disk() && state->notes.add_limit()) write_later(state);
}

void write_notes(CacheState& state) {
  while (const auto notes = state.notes.take()) {
    if (notes->limit) write_limit(state, state.disk_space->configured());
    if (!notes->namespaces.empty()) write_namespaces(state, notes->namespaces);
  }
}

}  // namespace kvkeep
