#include "tier/store_notes.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "disk/namespaces.h"
#include "disk/recorded_limit.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::TestStore;

const std::string kFile(kNamespacesFile);

TEST(StoreNotes, ACacheWithAnIdentityIsListedFromOpenOn) {
  TestStore store;
  store.options.model_name = "m";
  store.options.identity = {{"build", "b7"}, {"salt", "secret"}};
  store.open();
  const auto all = read_namespaces(*store.disk);
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  ASSERT_EQ(all->size(), 1u);
  const auto& [digest, entry] = *all->begin();
  EXPECT_EQ(digest, *expectation_of(store.options).identity);
  EXPECT_EQ(entry.fields,
            (std::map<std::string, std::string>{{"build", "b7"}, {"salt", "salted"}}));
  EXPECT_EQ(entry.model_names, std::vector<std::string>{"m"});
}

TEST(StoreNotes, ACacheWithoutOneWritesNothing) {
  TestStore store;
  store.open();
  EXPECT_FALSE(store.disk->read_all(kFile));
}

TEST(StoreNotes, ItsBytesCountAgainstTheLimit) {
  TestStore plain;
  plain.open();
  TestStore store;
  store.options.identity = {{"build", "b7"}};
  store.open();
  EXPECT_EQ(store.cache->tracked_size(),
            plain.cache->tracked_size() + store.disk->read_all(kFile)->size());
}

TEST(StoreNotes, ADamagedFileIsOneWarningAndWrittenAnew) {
  TestStore store;
  store.options.identity = {{"build", "b7"}};
  store.open();
  store.close();
  store.disk->write_all(kFile, "{");
  store.open();
  EXPECT_EQ(store.logger->count("namespaces.json"), 1u);
  EXPECT_EQ(read_namespaces(*store.disk)->size(), 1u);
  store.restart();
  EXPECT_EQ(store.logger->count("namespaces.json"), 1u);
}

TEST(StoreNotes, AFileThatCannotBeWrittenDoesNotKeepACacheFromOpening) {
  TestStore store;
  store.options.identity = {{"build", "b7"}};
  store.open();
  store.close();
  store.disk->write_all(kFile, "{");
  store.files->plan().fail_every(testing::Op::kCreate, "namespaces", ENOSPC);
  store.open();
  ASSERT_NE(store.cache, nullptr);
  EXPECT_EQ(store.save(testing::blk(1)), "queued");
}

class NotedNamespaces : public ::testing::Test {
 protected:
  NotedNamespaces() { store_.options.model_name = "m"; }
  Namespaces written() {
    const auto all = read_namespaces(*store_.disk);
    EXPECT_TRUE(all.ok()) << all.status().to_string();
    return all.ok() ? *all : Namespaces();
  }
  static BlockHash root(uint64_t n) { return testing::key_of(n); }

  TestStore store_;
};

TEST_F(NotedNamespaces, AreWrittenOnTheExecutorWithoutTheirSalt) {
  store_.open();
  store_.cache->note_namespace(root(1), {{"model", "q"}, {"salt", "hush"}});
  store_.cache->note_namespace(root(2), {{"build", "b7"}});
  EXPECT_TRUE(written().empty()) << "the call itself must not wait for the disk";
  EXPECT_EQ(store_.executor->pending(), 1u);
  store_.executor->run_all();
  const Namespaces all = written();
  ASSERT_EQ(all.size(), 2u);
  const NamespaceEntry& first = all.at(root(1).to_hex());
  EXPECT_TRUE(first.is_root);
  EXPECT_EQ(first.model_names, std::vector<std::string>{"q"});
  EXPECT_EQ(first.fields.at("salt"), "salted");
  EXPECT_EQ(all.at(root(2).to_hex()).model_names, std::vector<std::string>{"m"});
  EXPECT_EQ(store_.disk->read_all(kFile)->find("hush"), std::string::npos);
}

TEST_F(NotedNamespaces, AreWrittenByCloseAtTheLatest) {
  store_.open();
  store_.cache->note_namespace(root(1), {{"build", "b7"}});
  ASSERT_TRUE(store_.cache->close(Duration::zero()).ok());
  EXPECT_EQ(written().size(), 1u);
  store_.cache->note_namespace(root(2), {{"build", "b8"}});
  store_.executor->run_all();
  EXPECT_EQ(written().size(), 1u) << "a closed cache does not own its store any more";
}

TEST_F(NotedNamespaces, TheirBytesCountAgainstTheLimit) {
  store_.open();
  const uint64_t before = store_.cache->tracked_size();
  store_.cache->note_namespace(root(1), {{"build", "b7"}});
  store_.executor->run_all();
  EXPECT_EQ(store_.cache->tracked_size(), before + store_.disk->read_all(kFile)->size());
  const uint64_t with_one = store_.cache->tracked_size();
  store_.cache->note_namespace(root(1), {{"build", "b7"}});  // Is there already.
  store_.executor->run_all();
  EXPECT_EQ(store_.cache->tracked_size(), with_one);
}

TEST_F(NotedNamespaces, AStoreAtItsLimitGoesWithoutThem) {
  store_.open();
  store_.cache->set_configured_max_size(store_.cache->tracked_size());
  store_.cache->enforce_size_limit();
  store_.cache->note_namespace(root(1), {{"build", "b7"}});
  store_.executor->run_all();
  EXPECT_FALSE(store_.disk->read_all(kFile));
  EXPECT_EQ(store_.logger->count("at its limit"), 1u);
  EXPECT_EQ(read_recorded_limit(*store_.disk), store_.cache->configured_max_size());
}

TEST_F(NotedNamespaces, AFailureIsALogLineAndTheNextNoteIsTriedAgain) {
  store_.open();
  store_.files->plan().fail(testing::Op::kCreate, "namespaces", ENOSPC);
  store_.cache->note_namespace(root(1), {{"build", "b7"}});
  store_.executor->run_all();
  EXPECT_EQ(store_.logger->count("what namespaces wrote here"), 1u);
  store_.cache->note_namespace(root(2), {{"build", "b8"}});
  store_.executor->run_all();
  EXPECT_EQ(written().size(), 1u);
}

TEST_F(NotedNamespaces, ACacheInRamWritesNothing) {
  store_.options = {};
  store_.options.hot_only = true;
  store_.options.hot_max_bytes = 1 << 20;
  store_.open();
  store_.cache->note_namespace(root(1), {{"build", "b7"}});
  store_.executor->run_all();
  EXPECT_TRUE(store_.files->changes().empty());
}

TEST(RecordedLimit, IsThatOfTheLastOwnerAndFollowsChanges) {
  TestStore store;
  store.open();
  EXPECT_EQ(read_recorded_limit(*store.disk), store.options.max_size_bytes);
  store.cache->set_configured_max_size(5 << 20);
  EXPECT_EQ(read_recorded_limit(*store.disk), store.options.max_size_bytes);
  store.executor->run_all();
  EXPECT_EQ(read_recorded_limit(*store.disk), 5u << 20);
  store.close();
  store.options.max_size_bytes = 7 << 20;
  store.open();
  EXPECT_EQ(read_recorded_limit(*store.disk), 7u << 20);
}

TEST(RecordedLimit, IsWrittenOnlyWhereItChangesOrIsDamaged) {
  TestStore store;
  store.open();
  store.close();
  const size_t before = store.files->count(testing::Op::kCreate);
  store.open();
  const size_t of_open = store.files->count(testing::Op::kCreate) - before;
  store.close();
  store.disk->write_all(std::string(kLimitFile), "{");
  store.open();
  EXPECT_EQ(store.files->count(testing::Op::kCreate) - before, 2 * of_open + 1);
  EXPECT_EQ(read_recorded_limit(*store.disk), store.options.max_size_bytes);
}

TEST(RecordedLimit, AFailureToWriteItIsALogLine) {
  TestStore store;
  store.files->plan().fail_every(testing::Op::kCreate, "limit.json", ENOSPC);
  store.open();
  ASSERT_NE(store.cache, nullptr);
  EXPECT_EQ(store.logger->count("know the limit"), 1u);
  EXPECT_EQ(read_recorded_limit(*store.disk), std::nullopt);
}

}  // namespace
}  // namespace kvkeep
