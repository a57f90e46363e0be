#include "testing/mem_open_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kvkeep::testing {
namespace {

// Keeps the tree alive and closes the node at the end.
class OpenNode {
 public:
  OpenNode(std::shared_ptr<MemTree> tree, MemNodePtr node)
      : tree_(std::move(tree)), node_(std::move(node)) {}
  ~OpenNode() { tree_->close(node_); }
  OpenNode(const OpenNode&) = delete;
  OpenNode& operator=(const OpenNode&) = delete;

  MemTree& tree() const { return *tree_; }
  MemNode& node() const { return *node_; }
  FileStat stat() const {
    MutexLock lock(tree_->mu);
    return tree_->stat_of(*node_);
  }

 private:
  const std::shared_ptr<MemTree> tree_;
  const MemNodePtr node_;
};

class MemReader : public ReadFile {
 public:
  MemReader(std::shared_ptr<MemTree> tree, MemNodePtr node)
      : open_(std::move(tree), std::move(node)) {}

  Result<FileStat> stat() override { return open_.stat(); }
  Result<size_t> pread(uint64_t offset, std::span<std::byte> into) override {
    MutexLock lock(open_.tree().mu);
    const std::string& bytes = open_.node().bytes;
    if (offset >= bytes.size() || into.empty()) return size_t{0};
    const size_t n = std::min<size_t>(into.size(), bytes.size() - offset);
    std::memcpy(into.data(), bytes.data() + offset, n);
    return n;
  }

 private:
  OpenNode open_;
};

class MemWriter : public WriteFile {
 public:
  MemWriter(std::shared_ptr<MemTree> tree, MemNodePtr node, std::string path)
      : open_(std::move(tree), std::move(node)), path_(std::move(path)) {}

  Status append(BytesView bytes) override {
    const uint64_t written = append_what_fits(bytes);
    const Operation operation = describe(Op::kAppend, written);
    if (written == bytes.size()) return open_.tree().finish(0, operation);
    if (written > 0) open_.tree().report(operation);
    return open_.tree().finish(ENOSPC, operation);
  }
  Status truncate(uint64_t size) override {
    return open_.tree().finish(cut(size), describe(Op::kTruncate, size));
  }
  Status sync_data() override { return open_.tree().finish(0, describe(Op::kSyncData, 0)); }
  Result<FileStat> stat() override { return open_.stat(); }

 private:
  Operation describe(Op op, uint64_t bytes) const {
    Operation operation;
    operation.op = op;
    operation.path = path_;
    operation.bytes = bytes;
    return operation;
  }

  // As on a real disk that runs full: the beginning of the bytes gets there.
  uint64_t append_what_fits(BytesView bytes) {
    MemTree& tree = open_.tree();
    MutexLock lock(tree.mu);
    const uint64_t size = open_.node().bytes.size();
    const uint64_t fitting = tree.room_for(open_.node(), bytes.size());
    tree.resize(open_.node(), size + fitting);
    if (fitting > 0) std::memcpy(open_.node().bytes.data() + size, bytes.data(), fitting);
    return fitting;
  }

  int cut(uint64_t size) {
    MemTree& tree = open_.tree();
    MutexLock lock(tree.mu);
    if (size > open_.node().bytes.size()) return EINVAL;
    tree.resize(open_.node(), size);
    return 0;
  }

  OpenNode open_;
  const std::string path_;
};

class MemLock : public FileLock {
 public:
  MemLock(std::shared_ptr<MemTree> tree, MemNodePtr node)
      : open_(std::move(tree), std::move(node)) {}
  ~MemLock() override {
    MutexLock lock(open_.tree().mu);
    open_.node().locked = false;
  }

 private:
  OpenNode open_;
};

}  // namespace

std::unique_ptr<ReadFile> make_mem_reader(std::shared_ptr<MemTree> tree, MemNodePtr node) {
  return std::make_unique<MemReader>(std::move(tree), std::move(node));
}

std::unique_ptr<WriteFile> make_mem_writer(std::shared_ptr<MemTree> tree, MemNodePtr node,
                                           std::string path) {
  return std::make_unique<MemWriter>(std::move(tree), std::move(node), std::move(path));
}

std::unique_ptr<FileLock> make_mem_lock(std::shared_ptr<MemTree> tree, MemNodePtr node) {
  return std::make_unique<MemLock>(std::move(tree), std::move(node));
}

}  // namespace kvkeep::testing
