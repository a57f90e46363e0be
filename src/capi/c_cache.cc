#include <cstdlib>
#include <cstring>

#include "capi/arguments.h"
#include "capi/c_options.h"
#include "capi/handles.h"

namespace kvkeep::capi {
namespace {

void set(uint64_t* place, uint64_t value) {
  if (place != nullptr) *place = value;
}

std::optional<Duration> limit_of(const Duration& seconds) {
  return seconds < Duration::zero() ? std::nullopt : std::optional(seconds);
}

// `end` is TieredBlockCache::flush or close: writes, within a limit, and reports.
template <typename End>
Status write_all(double timeout_seconds, uint64_t* written, uint64_t* failed, End end) {
  set(written, 0);
  set(failed, 0);
  KVKEEP_TRY_ASSIGN(const Duration limit, to_duration(timeout_seconds, "timeout_seconds"));
  KVKEEP_TRY_ASSIGN(const auto report, end(limit_of(limit)));
  set(written, report.flushed);
  set(failed, report.failed.size());
  return {};
}

std::string line_of(const Explanation& told) {
  if (told.source) return std::string(name_of(*told.source));
  return std::string(name_of(told.reason.value_or(MissReason::kAbsent))) + ": " + told.text;
}

// With malloc, as a C program expects of a text.
char* copy_of(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// `remove` is TieredBlockCache::delete_block, forget_block or report_bad.
template <typename Remove>
Status remove_block(kvkeep_cache* cache, const kvkeep_key& key, int* removed, Remove remove) {
  if (removed != nullptr) *removed = 0;
  KVKEEP_TRY(not_null(cache, "cache"));
  KVKEEP_TRY_ASSIGN(const BlockHash hash, to_hash(key, "key"));
  KVKEEP_TRY_ASSIGN(const bool something, remove(*cache->cache, hash));
  if (removed != nullptr) *removed = something ? 1 : 0;
  return {};
}

}  // namespace
}  // namespace kvkeep::capi

using kvkeep::BlockHash;
using kvkeep::Status;
using kvkeep::TieredBlockCache;
using kvkeep::capi::fenced;
using kvkeep::capi::not_null;
using kvkeep::capi::to_hash;

kvkeep_status kvkeep_open(const kvkeep_options* options, kvkeep_cache** cache) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(not_null(cache, "cache"));
    *cache = nullptr;
    KVKEEP_TRY_ASSIGN(auto read, kvkeep::capi::to_options(options));
    KVKEEP_TRY_ASSIGN(auto opened, TieredBlockCache::open(std::move(read)));
    *cache = new kvkeep_cache{std::move(opened)};
    return {};
  });
}

kvkeep_status kvkeep_flush(kvkeep_cache* cache, double timeout_seconds, uint64_t* written,
                           uint64_t* failed) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(not_null(cache, "cache"));
    return kvkeep::capi::write_all(timeout_seconds, written, failed,
                                   [&](auto limit) { return cache->cache->flush(limit); });
  });
}

kvkeep_status kvkeep_close(kvkeep_cache* cache, double timeout_seconds, uint64_t* written,
                           uint64_t* failed) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(not_null(cache, "cache"));
    return kvkeep::capi::write_all(timeout_seconds, written, failed,
                                   [&](auto limit) { return cache->cache->close(limit); });
  });
}

void kvkeep_cache_free(kvkeep_cache* cache) { delete cache; }

kvkeep_status kvkeep_has(kvkeep_cache* cache, kvkeep_key key, int* present) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(not_null(present, "present"));
    *present = 0;
    KVKEEP_TRY(not_null(cache, "cache"));
    KVKEEP_TRY_ASSIGN(const BlockHash hash, to_hash(key, "key"));
    *present = cache->cache->has_block(hash) ? 1 : 0;
    return {};
  });
}

kvkeep_status kvkeep_why(kvkeep_cache* cache, kvkeep_key key, char** text) {
  return fenced([&]() -> Status {
    KVKEEP_TRY(not_null(text, "text"));
    *text = nullptr;
    KVKEEP_TRY(not_null(cache, "cache"));
    KVKEEP_TRY_ASSIGN(const BlockHash hash, to_hash(key, "key"));
    *text = kvkeep::capi::copy_of(kvkeep::capi::line_of(cache->cache->why(hash)));
    if (*text != nullptr) return {};
    return Status(kvkeep::Code::kResourceExhausted, "out of memory");
  });
}

void kvkeep_text_free(char* text) { std::free(text); }

kvkeep_status kvkeep_delete(kvkeep_cache* cache, kvkeep_key key, int* removed) {
  return fenced([&] {
    return kvkeep::capi::remove_block(cache, key, removed,
                                      [](auto& c, auto& hash) { return c.delete_block(hash); });
  });
}

kvkeep_status kvkeep_forget(kvkeep_cache* cache, kvkeep_key key, int* served) {
  return fenced([&] {
    return kvkeep::capi::remove_block(cache, key, served, [](auto& c, auto& hash) {
      return kvkeep::Result<bool>(c.forget_block(hash));
    });
  });
}

kvkeep_status kvkeep_report_bad(kvkeep_cache* cache, kvkeep_key key, int* removed) {
  return fenced([&] {
    return kvkeep::capi::remove_block(cache, key, removed,
                                      [](auto& c, auto& hash) { return c.report_bad(hash); });
  });
}

kvkeep_status kvkeep_clear(kvkeep_cache* cache, size_t* num_blocks) {
  return fenced([&]() -> Status {
    if (num_blocks != nullptr) *num_blocks = 0;
    KVKEEP_TRY(not_null(cache, "cache"));
    KVKEEP_TRY_ASSIGN(const size_t removed, cache->cache->clear());
    if (num_blocks != nullptr) *num_blocks = removed;
    return {};
  });
}

kvkeep_status kvkeep_clear_hot(kvkeep_cache* cache, size_t* num_blocks) {
  return fenced([&]() -> Status {
    if (num_blocks != nullptr) *num_blocks = 0;
    KVKEEP_TRY(not_null(cache, "cache"));
    const size_t left = cache->cache->clear_hot(kvkeep::HotClear::kSpill);
    if (num_blocks != nullptr) *num_blocks = left;
    return {};
  });
}
