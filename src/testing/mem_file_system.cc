#include "testing/mem_file_system.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "io/relative_path.h"
#include "io/system_error.h"
#include "testing/mem_open_files.h"
#include "testing/mem_tree.h"

namespace kvkeep::testing {
namespace {

Operation operation_on(Op op, std::string_view path) {
  Operation operation;
  operation.op = op;
  operation.path = path;
  return operation;
}

[[noreturn]] void end_program(const char* verb, std::string_view path) {
  std::fprintf(stderr, "MemFileSystem::%s: there is no '%s'\n", verb, std::string(path).c_str());
  std::abort();
}

// The node that a verb needs.
MemNodePtr need(const MemTree& tree, const char* verb, std::string_view path)
    KVKEEP_REQUIRES(tree.mu) {
  MemNodePtr node = tree.get(path);
  if (node == nullptr) end_program(verb, path);
  return node;
}

MemNodePtr replace(MemTree& tree, std::string_view path, FileKind kind) KVKEEP_REQUIRES(tree.mu) {
  tree.add_missing_parents(path);
  if (tree.get(path) != nullptr) tree.drop(path);
  return tree.add(path, kind);
}

}  // namespace

MemFileSystem::MemFileSystem() : MemFileSystem(Options()) {}
MemFileSystem::MemFileSystem(Options options)
    : tree_(std::make_shared<MemTree>(std::move(options))) {}
MemFileSystem::~MemFileSystem() = default;

Status MemFileSystem::create_dirs(std::string_view path) {
  KVKEEP_TRY_ASSIGN(const std::vector<std::string> names, split_path(path));
  std::string so_far;
  for (const std::string& name : names) {
    so_far += (so_far.empty() ? "" : "/") + name;
    int error = 0;
    {
      MutexLock lock(tree_->mu);
      error = tree_->create(so_far, FileKind::kDirectory);
      MemNodePtr node;
      if (error == EEXIST) {
        error = tree_->find_directory(so_far, node);
        if (error == 0) continue;
      }
    }
    KVKEEP_TRY(tree_->finish(error, operation_on(Op::kCreateDirs, so_far)));
  }
  return {};
}

Status MemFileSystem::list_dir(std::string_view path,
                               const std::function<void(const DirEntry&)>& visit) {
  KVKEEP_TRY(split_path(path).status());
  std::vector<DirEntry> entries;
  {
    MutexLock lock(tree_->mu);
    MemNodePtr directory;
    if (const int error = tree_->find_directory(path, directory); error != 0) {
      return system_error("list", path, error);
    }
    for (const auto& [name, node] : tree_->nodes) {
      if (name.empty() || parent_of(name) != path) continue;
      entries.push_back({name.substr(path.empty() ? 0 : path.size() + 1), node->kind});
    }
  }
  for (const DirEntry& entry : entries) visit(entry);
  return {};
}

Result<FileStat> MemFileSystem::stat(std::string_view path) {
  KVKEEP_TRY(split_path(path).status());
  MutexLock lock(tree_->mu);
  MemNodePtr node;
  if (const int error = tree_->find(path, node); error != 0)
    return system_error("stat", path, error);
  return tree_->stat_of(*node);
}

Result<std::unique_ptr<ReadFile>> MemFileSystem::open_read(std::string_view path) {
  KVKEEP_TRY(split_path(path).status());
  MutexLock lock(tree_->mu);
  MemNodePtr node;
  if (const int error = tree_->find_file(path, node); error != 0) {
    return system_error("open", path, error);
  }
  ++node->opens;
  return make_mem_reader(tree_, std::move(node));
}

Result<std::unique_ptr<WriteFile>> MemFileSystem::create_exclusive(std::string_view path) {
  KVKEEP_TRY(split_path(path).status());
  MemNodePtr node;
  int error = 0;
  {
    MutexLock lock(tree_->mu);
    error = tree_->create(path, FileKind::kFile);
    if (error == 0) node = tree_->get(path);
    if (error == 0) ++node->opens;
  }
  KVKEEP_TRY(tree_->finish(error, operation_on(Op::kCreate, path)));
  return make_mem_writer(tree_, std::move(node), std::string(path));
}

Status MemFileSystem::rename(std::string_view from, std::string_view to) {
  KVKEEP_TRY(split_path(from).status());
  KVKEEP_TRY(split_path(to).status());
  Operation operation = operation_on(Op::kRename, from);
  operation.to = to;
  int error = 0;
  {
    MutexLock lock(tree_->mu);
    error = tree_->rename(from, to);
  }
  return tree_->finish(error, operation);
}

Status MemFileSystem::unlink(std::string_view path) {
  KVKEEP_TRY(split_path(path).status());
  int error = 0;
  {
    MutexLock lock(tree_->mu);
    error = tree_->unlink(path);
  }
  return tree_->finish(error, operation_on(Op::kUnlink, path));
}

Status MemFileSystem::set_mtime(std::string_view path, double mtime) {
  KVKEEP_TRY(split_path(path).status());
  Operation operation = operation_on(Op::kSetMtime, path);
  operation.mtime = mtime;
  int error = 0;
  {
    MutexLock lock(tree_->mu);
    MemNodePtr node;
    error = tree_->find(path, node);
    if (error == 0) node->mtime = mtime;
  }
  return tree_->finish(error, operation);
}

Status MemFileSystem::sync_dir(std::string_view path) {
  KVKEEP_TRY(split_path(path).status());
  int error = 0;
  {
    MutexLock lock(tree_->mu);
    MemNodePtr node;
    error = tree_->find_directory(path, node);
  }
  return tree_->finish(error, operation_on(Op::kSyncDir, path));
}

Result<SpaceInfo> MemFileSystem::space() {
  constexpr uint64_t kEndless = 1ull << 50;
  MutexLock lock(tree_->mu);
  SpaceInfo space;
  space.capacity = tree_->options.capacity == 0 ? kEndless : tree_->options.capacity;
  space.free = space.capacity - std::min(space.capacity, tree_->charged());
  space.block_bytes = tree_->options.block_bytes;
  return space;
}

Result<std::unique_ptr<FileLock>> MemFileSystem::try_lock(std::string_view path) {
  KVKEEP_TRY(split_path(path).status());
  MutexLock lock(tree_->mu);
  MemNodePtr node;
  if (const int error = tree_->find_file(path, node); error != 0) {
    return system_error("lock", path, error);
  }
  if (node->locked) {
    return Status::from_errno(Code::kFailedPrecondition,
                              "'" + std::string(path) + "' is locked by somebody else", EAGAIN);
  }
  node->locked = true;
  ++node->opens;
  return make_mem_lock(tree_, std::move(node));
}

std::optional<std::string> MemFileSystem::read_all(std::string_view path) const {
  MutexLock lock(tree_->mu);
  const MemNodePtr node = tree_->get(path);
  if (node == nullptr || node->kind != FileKind::kFile) return std::nullopt;
  return node->bytes;
}

void MemFileSystem::write_all(std::string_view path, std::string_view bytes) {
  MutexLock lock(tree_->mu);
  const MemNodePtr node = replace(*tree_, path, FileKind::kFile);
  tree_->resize(*node, bytes.size());
  node->bytes = bytes;
}

void MemFileSystem::make_link(std::string_view path) {
  MutexLock lock(tree_->mu);
  replace(*tree_, path, FileKind::kLink);
}

void MemFileSystem::flip_bit(std::string_view path, uint64_t bit) {
  MutexLock lock(tree_->mu);
  const MemNodePtr node = need(*tree_, "flip_bit", path);
  if (bit / 8 >= node->bytes.size())
    end_program("flip_bit", std::string(path) + "' at that bit of '");
  node->bytes[bit / 8] = static_cast<char>(node->bytes[bit / 8] ^ (1 << (bit % 8)));
}

void MemFileSystem::truncate(std::string_view path, uint64_t size) {
  MutexLock lock(tree_->mu);
  tree_->resize(*need(*tree_, "truncate", path), size);
}

void MemFileSystem::remove_tree(std::string_view path) {
  MutexLock lock(tree_->mu);
  need(*tree_, "remove_tree", path);
  std::vector<std::string> names;
  const std::string below = std::string(path) + "/";
  for (const auto& entry : tree_->nodes) {
    if (entry.first == path || entry.first.compare(0, below.size(), below) == 0) {
      names.push_back(entry.first);
    }
  }
  for (const std::string& name : names) tree_->drop(name);
}

void MemFileSystem::set_capacity(uint64_t bytes) {
  MutexLock lock(tree_->mu);
  tree_->options.capacity = bytes;
}

std::vector<std::string> MemFileSystem::paths() const {
  MutexLock lock(tree_->mu);
  std::vector<std::string> names;
  for (const auto& [name, node] : tree_->nodes) {
    if (node->kind != FileKind::kDirectory) names.push_back(name);
  }
  return names;
}

uint64_t MemFileSystem::allocated_bytes() const {
  MutexLock lock(tree_->mu);
  return tree_->charged();
}

std::shared_ptr<MemFileSystem> MemFileSystem::clone() const {
  MutexLock lock(tree_->mu);
  auto copy = std::make_shared<MemFileSystem>(tree_->options);
  MemTree& other = *copy->tree_;
  MutexLock other_lock(other.mu);
  for (const auto& [name, node] : tree_->nodes) {
    const MemNodePtr twin = name.empty() ? other.get("") : other.add(name, node->kind);
    other.resize(*twin, node->bytes.size());
    twin->bytes = node->bytes;
  }
  for (const auto& [name, node] : tree_->nodes) other.get(name)->mtime = node->mtime;
  return copy;
}

void MemFileSystem::on_operation(std::function<void(const Operation&)> observer) {
  MutexLock lock(tree_->mu);
  tree_->observer = std::move(observer);
}

}  // namespace kvkeep::testing
