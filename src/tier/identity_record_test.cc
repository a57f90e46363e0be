#include "tier/identity_record.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "disk/namespaces.h"
#include "testing/test_store.h"

namespace kvkeep {
namespace {

using testing::TestStore;

const std::string kFile(kNamespacesFile);

TEST(IdentityRecord, ACacheWithAnIdentityIsListedFromOpenOn) {
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

TEST(IdentityRecord, ACacheWithoutOneWritesNothing) {
  TestStore store;
  store.open();
  EXPECT_FALSE(store.disk->read_all(kFile));
}

TEST(IdentityRecord, ItsBytesCountAgainstTheLimit) {
  TestStore plain;
  plain.open();
  TestStore store;
  store.options.identity = {{"build", "b7"}};
  store.open();
  EXPECT_EQ(store.cache->tracked_size(),
            plain.cache->tracked_size() + store.disk->read_all(kFile)->size());
}

TEST(IdentityRecord, ADamagedFileIsOneWarningAndWrittenAnew) {
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

TEST(IdentityRecord, AFileThatCannotBeWrittenDoesNotKeepACacheFromOpening) {
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

}  // namespace
}  // namespace kvkeep
