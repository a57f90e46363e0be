#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "daemon/server/model_digest.h"

namespace kvkeep::daemon {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kEntriesMax = 256;
constexpr uintmax_t kFileMax = 16 << 20;  // Bytes; a book is far smaller.
constexpr int kVersion = 1;

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Json json_of(const ModelFile& file) {
  return {{"path", file.path.string()}, {"size", file.size},   {"mtime_ns", file.mtime_ns},
          {"ctime_ns", file.ctime_ns},  {"inode", file.inode}, {"device", file.device}};
}

template <typename T>
bool take_number(const Json& object, const char* name, T* number) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return false;
  *number = found->get<T>();
  return true;
}

std::optional<ModelFile> file_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto path = json.find("path");
  if (path == json.end() || !path->is_string()) return std::nullopt;
  ModelFile file;
  file.path = path->get<std::string>();
  const bool whole =
      take_number(json, "size", &file.size) && take_number(json, "mtime_ns", &file.mtime_ns) &&
      take_number(json, "ctime_ns", &file.ctime_ns) && take_number(json, "inode", &file.inode) &&
      take_number(json, "device", &file.device);
  return whole ? std::optional(file) : std::nullopt;
}

// The files as they are now; none if one of them cannot be looked at.
std::vector<ModelFile> look_at(const std::vector<std::filesystem::path>& parts) {
  std::vector<ModelFile> files;
  for (const std::filesystem::path& part : parts) {
    Result<ModelFile> file = look_at_model_file(part);
    if (!file) return {};
    files.push_back(*std::move(file));
  }
  return files;
}

bool write_all(int descriptor, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(descriptor, text.data() + at, text.size() - at);
    if (written <= 0) return false;
    at += static_cast<size_t>(written);
  }
  return true;
}

// A reader sees the old file or the new one.
void replace_file(const std::filesystem::path& file, const std::string& text) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  std::string temporary = file.string() + ".XXXXXX";
  const int descriptor = ::mkstemp(temporary.data());  // With mode 0600.
  if (descriptor < 0) return;
  const bool whole = write_all(descriptor, text);
  const bool closed = ::close(descriptor) == 0;
  if (whole && closed && ::rename(temporary.c_str(), file.c_str()) == 0) return;
  ::unlink(temporary.c_str());
}

}  // namespace

DigestBook::DigestBook(std::filesystem::path file)
    : file_(std::move(file)), entries_(read(file_)) {}

std::optional<std::string> DigestBook::find(const std::vector<std::filesystem::path>& parts) const {
  const std::vector<ModelFile> files = look_at(parts);
  if (files.empty()) return std::nullopt;
  for (const Entry& entry : entries_) {
    if (entry.files == files) return entry.digest;
  }
  return std::nullopt;
}

void DigestBook::note(const std::vector<std::filesystem::path>& parts, const std::string& digest) {
  std::vector<ModelFile> files = look_at(parts);
  if (files.empty() || !is_digest(digest)) return;
  // Another process may have written since. Of a model whose files changed the new digest stays.
  std::vector<Entry> entries = read(file_);
  if (entries.empty()) entries = entries_;
  std::erase_if(entries, [&](const Entry& entry) {
    return entry.files.size() == files.size() &&
           std::equal(files.begin(), files.end(), entry.files.begin(),
                      [](const ModelFile& a, const ModelFile& b) { return a.path == b.path; });
  });
  entries.push_back({std::move(files), digest});
  if (entries.size() > kEntriesMax) {
    const auto excess = static_cast<std::ptrdiff_t>(entries.size() - kEntriesMax);
    entries.erase(entries.begin(), entries.begin() + excess);
  }
  entries_ = std::move(entries);
  write(file_, entries_);
}

std::vector<DigestBook::Entry> DigestBook::read(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  const uintmax_t size = std::filesystem::file_size(file, error);
  if (error || size > kFileMax) return {};
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const Json book = Json::parse(text, nullptr, false);
  int version = 0;
  if (!book.is_object() || !take_number(book, "version", &version) || version != kVersion ||
      !book.contains("digests")) {
    return {};
  }
  std::vector<Entry> entries;
  for (const Json& json : book["digests"]) {
    if (!json.is_object() || !json.contains("files") || !json.contains("digest")) continue;
    Entry entry;
    for (const Json& part : json["files"]) {
      const std::optional<ModelFile> known = file_of(part);
      if (!known) break;
      entry.files.push_back(*known);
    }
    if (json["digest"].is_string()) entry.digest = json["digest"].get<std::string>();
    const bool whole = !entry.files.empty() && entry.files.size() == json["files"].size();
    if (whole && is_digest(entry.digest)) entries.push_back(std::move(entry));
  }
  return entries;
}

void DigestBook::write(const std::filesystem::path& file, const std::vector<Entry>& entries) {
  Json digests = Json::array();
  for (const Entry& entry : entries) {
    Json files = Json::array();
    for (const ModelFile& part : entry.files) files.push_back(json_of(part));
    digests.push_back({{"files", std::move(files)}, {"digest", entry.digest}});
  }
  const Json book{{"version", kVersion}, {"digests", std::move(digests)}};
  replace_file(file, book.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace kvkeep::daemon
