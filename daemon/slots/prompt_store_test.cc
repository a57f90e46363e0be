// Prompts in and out of a store, and blocks that change between the match and the reading.

#include "daemon/slots/prompt_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "daemon/testing/fake_server.h"
#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using std::filesystem::path;

constexpr uint32_t kBlock = 16;  // Tokens.
constexpr size_t kBlocks = 6;

std::vector<uint32_t> prompt(uint32_t first) {
  std::vector<uint32_t> tokens(kBlocks * kBlock + 5);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = first + static_cast<uint32_t>(i);
  return tokens;
}

std::string bytes_of(const path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

class PromptStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { open("b1"); }

  void open(const std::string& build) {
    store_.reset();
    const std::vector<std::byte> file = server_.slot_file(prompt(1), 0);
    ServerIdentity identity;
    identity.model_name = "model";
    identity.fields = {{"build", build}};
    identity.layout = llama::parse_slot_file(file, nullptr)->layout;
    StoreSettings settings;
    settings.dir = dir_.path() / "store";
    settings.max_size = 64 << 20;
    settings.block_size = kBlock;
    store_ = *PromptStore::open(settings, identity, {});
  }

  // Stores a prompt, as it is saved by the server, and waits until it is on disk.
  void keep(std::span<const uint32_t> tokens) {
    const path saved = dir_.path() / "saved";
    std::filesystem::remove(saved);
    ASSERT_TRUE(write_new_file(saved, server_.slot_file(tokens, 0)).ok());
    const Result<SavedSlot> slot = store_->read(*MappedFile::open(saved));
    ASSERT_TRUE(slot.ok()) << slot.status().to_string();
    ASSERT_TRUE(store_->keep(*slot, "").ok());
    ASSERT_TRUE(store_->cache().flush().ok());
  }
  path file_of(const PrefixMatch& match, size_t block) const {
    return store_->cache().block_path(match.blocks[block].key);
  }
  // What is put together holds `blocks` blocks and no wrong byte.
  void expect_first(const PrefixMatch& match, std::span<const uint32_t> tokens, size_t blocks) {
    const path file = dir_.path() / "assembled";
    std::filesystem::remove(file);
    const Result<Assembled> made = store_->assemble(match, tokens, 1, file);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    ASSERT_EQ(made->tokens, blocks * kBlock);
    EXPECT_EQ(made->end.has_value(), blocks < kBlocks);
    if (blocks == 0) {
      EXPECT_FALSE(std::filesystem::exists(file)) << "nobody needs it";
      return;
    }
    const std::vector<std::byte> right = server_.slot_file(tokens.first(blocks * kBlock), 1);
    const std::string text(reinterpret_cast<const char*>(right.data()), right.size());
    EXPECT_TRUE(bytes_of(file) == text);
  }

  testing::TempDir dir_;
  net::io_context io_;
  FakeServer server_{io_, dir_.path(), 2};
  std::unique_ptr<PromptStore> store_;
};

TEST_F(PromptStoreTest, AStoredPromptIsPutTogetherAgainByteForByte) {
  const std::vector<uint32_t> tokens = prompt(1);
  keep(tokens);
  const Result<PrefixMatch> match = store_->match(tokens, "");
  ASSERT_TRUE(match.ok());
  ASSERT_EQ(match->blocks.size(), kBlocks);
  expect_first(*match, tokens, kBlocks);
}

// Each thing that may happen to the file of a block.
struct Damage {
  const char* name;
  std::function<void(const path& file, const path& next, const path& other)> happen;
};
const Damage kDamages[] = {
    {"a bit flips",
     [](const path& file, const path&, const path&) {
       std::string bytes = bytes_of(file);
       bytes[bytes.size() - 100] ^= 1;
       write(file, bytes);
     }},
    {"cut off",
     [](const path& file, const path&, const path&) {
       std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
     }},
    {"emptied",
     [](const path& file, const path&, const path&) { std::filesystem::resize_file(file, 0); }},
    {"removed", [](const path& file, const path&, const path&) { std::filesystem::remove(file); }},
    {"swapped with the next",
     [](const path& file, const path& next, const path&) {
       const std::string here = bytes_of(file), there = bytes_of(next);
       write(file, there);
       write(next, here);
     }},
    {"overwritten by the same block of another prompt",
     [](const path& file, const path&, const path& other) { write(file, bytes_of(other)); }},
    {"replaced by a directory",
     [](const path& file, const path&, const path&) {
       std::filesystem::remove(file);
       std::filesystem::create_directory(file);
     }},
};

TEST_F(PromptStoreTest, BlocksThatChangeAfterTheMatchEndThePrefixAndNothingIsWrong) {
  const std::vector<uint32_t> tokens = prompt(1), another = prompt(1000);
  for (const Damage& damage : kDamages) {
    for (size_t block = 0; block < kBlocks; ++block) {
      SCOPED_TRACE(std::string(damage.name) + ", block " + std::to_string(block));
      ASSERT_TRUE(store_->cache().clear().ok());
      keep(another);
      const Result<PrefixMatch> other = store_->match(another, "");
      keep(tokens);
      const Result<PrefixMatch> match = store_->match(tokens, "");
      ASSERT_TRUE(match.ok() && other.ok());
      ASSERT_EQ(match->blocks.size(), kBlocks);
      ASSERT_EQ(other->blocks.size(), kBlocks);
      const size_t next = block + 1 < kBlocks ? block + 1 : 0;
      damage.happen(file_of(*match, block), file_of(*match, next), file_of(*other, block));
      const bool swapped_first = next == 0 && std::string(damage.name) == "swapped with the next";
      expect_first(*match, tokens, swapped_first ? 0 : block);
      std::filesystem::remove(file_of(*match, block));
    }
  }
}

TEST_F(PromptStoreTest, WhatAnotherBuildStoredIsFoundElsewhere) {
  keep(prompt(1));
  EXPECT_FALSE(store_->find_elsewhere(prompt(1)).has_value()) << "that is here";
  open("b2");
  const std::optional<Elsewhere> found = store_->find_elsewhere(prompt(1));
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->differences.size(), 1u);
  EXPECT_EQ(found->differences[0].name, "build");
  EXPECT_EQ(found->differences[0].stored, "b1");
  EXPECT_THAT(found->text, ::testing::HasSubstr("stored for build 'b1'; asked for build 'b2'"));
  EXPECT_FALSE(store_->find_elsewhere(prompt(9000)).has_value());
}

// The key of a block is a hash: what it says of its tokens is compared with the prompt's.
TEST_F(PromptStoreTest, ABlockOfOtherTokensUnderTheSameKeyEndsThePrefix) {
  const std::vector<uint32_t> tokens = prompt(1), another = prompt(1000);
  keep(another);
  keep(tokens);
  const Result<PrefixMatch> match = store_->match(tokens, "");
  const Result<PrefixMatch> other = store_->match(another, "");
  ASSERT_TRUE(match.ok() && other.ok());
  PrefixMatch mixed = *match;
  mixed.blocks[3].key = other->blocks[3].key;
  expect_first(mixed, tokens, 3);
}

}  // namespace
}  // namespace kvkeep::daemon
