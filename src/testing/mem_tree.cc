#include "testing/mem_tree.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <limits>

#include "base/bytes.h"
#include "io/relative_path.h"
#include "io/system_error.h"

namespace kvkeep::testing {

MemTree::MemTree(MemFileSystem::Options given) : options(std::move(given)) {
  MutexLock lock(mu);
  if (options.clock == nullptr) options.clock = system_clock();
  add("", FileKind::kDirectory);
}

MemNodePtr MemTree::get(std::string_view path) const {
  const auto it = nodes.find(path);
  return it == nodes.end() ? nullptr : it->second;
}

int MemTree::check_parents(std::string_view path) const {
  for (size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    const MemNodePtr node = get(path.substr(0, slash));
    if (node == nullptr) return ENOENT;
    if (node->kind == FileKind::kLink) return ELOOP;
    if (node->kind != FileKind::kDirectory) return ENOTDIR;
  }
  return 0;
}

int MemTree::find(std::string_view path, MemNodePtr& node) const {
  if (const int error = check_parents(path); error != 0) return error;
  node = get(path);
  return node == nullptr ? ENOENT : 0;
}

int MemTree::find_directory(std::string_view path, MemNodePtr& node) const {
  if (const int error = find(path, node); error != 0) return error;
  if (node->kind == FileKind::kLink) return ELOOP;
  return node->kind == FileKind::kDirectory ? 0 : ENOTDIR;
}

int MemTree::find_file(std::string_view path, MemNodePtr& node) const {
  if (const int error = find(path, node); error != 0) return error;
  if (node->kind == FileKind::kLink) return ELOOP;
  return node->kind == FileKind::kDirectory ? EISDIR : 0;
}

int MemTree::create(std::string_view path, FileKind kind) {
  if (const int error = check_parents(path); error != 0) return error;
  if (get(path) != nullptr) return EEXIST;
  if (kind == FileKind::kDirectory && options.directory_bytes > free_bytes()) return ENOSPC;
  add(path, kind);
  return 0;
}

int MemTree::rename(std::string_view from, std::string_view to) {
  MemNodePtr node;
  if (const int error = find(from, node); error != 0) return error;
  if (const int error = check_parents(to); error != 0) return error;
  if (node->kind == FileKind::kDirectory) return EISDIR;
  const MemNodePtr old = get(to);
  if (old == node) return 0;
  if (old != nullptr && old->kind == FileKind::kDirectory) return EISDIR;
  if (old != nullptr) drop(to);
  nodes.erase(nodes.find(from));
  nodes[std::string(to)] = node;
  touch_parent(from);
  touch_parent(to);
  return 0;
}

int MemTree::unlink(std::string_view path) {
  MemNodePtr node;
  if (const int error = find(path, node); error != 0) return error;
  if (node->kind == FileKind::kDirectory) return EISDIR;
  drop(path);
  return 0;
}

void MemTree::drop(std::string_view path) {
  const auto it = nodes.find(path);
  assert(it != nodes.end());
  MemNode& node = *it->second;
  node.linked = false;
  if (node.opens == 0) charged_ -= charge_of(node);
  nodes.erase(it);
  touch_parent(path);
}

MemNodePtr MemTree::add(std::string_view path, FileKind kind) {
  assert(get(path) == nullptr);
  auto node = std::make_shared<MemNode>();
  node->kind = kind;
  node->inode = next_inode_++;
  node->mtime = options.clock->wall();
  charged_ += charge_of(*node);
  nodes.emplace(path, node);
  touch_parent(path);
  return node;
}

void MemTree::add_missing_parents(std::string_view path) {
  for (size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    const std::string_view parent = path.substr(0, slash);
    if (get(parent) == nullptr) add(parent, FileKind::kDirectory);
  }
}

void MemTree::resize(MemNode& node, uint64_t size) {
  charged_ = charged_ - charge_of(node) + charge_of(node, size);
  node.bytes.resize(size);
  node.mtime = options.clock->wall();
}

uint64_t MemTree::room_for(const MemNode& node, uint64_t bytes) const {
  const uint64_t whole_units = free_bytes() / options.block_bytes * options.block_bytes;
  return std::min(bytes, charge_of(node) - node.bytes.size() + whole_units);
}

FileStat MemTree::stat_of(const MemNode& node) const {
  FileStat s;
  const bool directory = node.kind == FileKind::kDirectory;
  s.size = directory ? options.directory_bytes : node.bytes.size();
  s.allocated = charge_of(node);
  s.mtime = node.mtime;
  s.kind = node.kind;
  s.device = 1;
  s.inode = node.inode;
  return s;
}

void MemTree::close(const MemNodePtr& node) {
  MutexLock lock(mu);
  --node->opens;
  if (!node->linked && node->opens == 0) charged_ -= charge_of(*node);
}

Status MemTree::finish(int error, const Operation& operation) {
  if (error != 0) return system_error(name_of(operation.op), operation.path, error);
  report(operation);
  return {};
}

void MemTree::report(const Operation& operation) {
  std::function<void(const Operation&)> call;
  {
    MutexLock lock(mu);
    call = observer;
  }
  if (call) call(operation);
}

uint64_t MemTree::charge_of(const MemNode& node, uint64_t size) const {
  if (node.kind == FileKind::kDirectory) return options.directory_bytes;
  return round_up(size, options.block_bytes);
}
uint64_t MemTree::charge_of(const MemNode& node) const {
  return charge_of(node, node.bytes.size());
}

uint64_t MemTree::free_bytes() const {
  constexpr uint64_t kEndless = std::numeric_limits<uint64_t>::max() / 4;
  if (options.capacity == 0) return kEndless;
  return options.capacity - std::min(options.capacity, charged_);
}

void MemTree::touch_parent(std::string_view path) {
  if (path.empty()) return;
  if (const MemNodePtr parent = get(parent_of(path))) parent->mtime = options.clock->wall();
}

}  // namespace kvkeep::testing
