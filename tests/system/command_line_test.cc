// The program kvkeep as a process of its own, on stores that real caches wrote.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "kvkeep/kvkeep.h"
#include "kvkeep/prefix_cache.h"
#include "program.h"
#include "testing/block_builder.h"
#include "testing/prompts.h"
#include "testing/proves.h"

namespace kvkeep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Ran;

constexpr uint64_t kLimit = 1ull << 30;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    program_.variables["XDG_CACHE_HOME"] = (dir_.path() / "cache").string();
    program_.variables["PATH"] = "/usr/bin:/bin";
  }
  fs::path store() const { return dir_.path() / "cache" / "kvkeep" / "test"; }

  std::unique_ptr<TieredBlockCache> open(std::map<std::string, std::string> identity = {}) const {
    Options options;
    options.cache_dir = store();
    options.max_size_bytes = kLimit;
    options.identity = std::move(identity);
    auto cache = TieredBlockCache::open(options);
    EXPECT_TRUE(cache.ok()) << cache.status().to_string();
    return cache.ok() ? *std::move(cache) : nullptr;
  }
  static void save(TieredBlockCache& cache, uint64_t k, std::optional<uint64_t> parent = {},
                   const std::string& model = "m") {
    BlockInput input = testing::blk(k).input;
    input.model_name = model;
    if (parent) input.parent = testing::key_of(*parent);
    EXPECT_TRUE(cache.save_block(testing::key_of(k), std::move(input)).ok());
  }
  // Blocks 0 … count-1, used in that order.
  void write(uint64_t count) const {
    const auto cache = open();
    for (uint64_t k = 0; k < count; ++k) save(*cache, k);
    EXPECT_TRUE(cache->close().ok());
    for (uint64_t k = 0; k < count; ++k) age(k, 1'700'000'000 + static_cast<time_t>(k));
  }
  void age(uint64_t k, time_t used) const {
    const std::array<timespec, 2> times{{{used, 0}, {used, 0}}};
    EXPECT_EQ(::utimensat(AT_FDCWD, file(k).c_str(), times.data(), 0), 0);
  }
  fs::path file(uint64_t k) const {
    const std::string hex = hex_of(k);
    return store() / hex.substr(0, 1) / (hex + ".safetensors");
  }
  static std::string hex_of(uint64_t k) { return testing::key_of(k).to_hex(); }
  std::set<uint64_t> left() const {
    std::set<uint64_t> numbers;
    for (uint64_t k = 0; k < 100; ++k) {
      if (fs::exists(file(k))) numbers.insert(k);
    }
    return numbers;
  }
  void flip(uint64_t k, uint64_t byte) const {
    std::fstream out(file(k), std::ios::in | std::ios::out | std::ios::binary);
    out.seekg(static_cast<std::streamoff>(byte));
    const int old = out.get();
    out.seekp(static_cast<std::streamoff>(byte));
    out.put(static_cast<char>(old ^ 4));
  }
  // Every name in the store with its size, times and inode.
  std::map<std::string, std::string> everything() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(store())) {
      struct stat st {};
      EXPECT_EQ(::lstat(entry.path().c_str(), &st), 0);
      all[entry.path().string()] = std::to_string(st.st_ino) + " " + std::to_string(st.st_size) +
                                   " " + std::to_string(st.st_mtim.tv_sec) + "." +
                                   std::to_string(st.st_mtim.tv_nsec);
    }
    return all;
  }
  uint64_t disk_usage() const {
    struct stat st {};
    EXPECT_EQ(::lstat(store().c_str(), &st), 0);
    uint64_t bytes = static_cast<uint64_t>(st.st_blocks) * 512;
    for (const auto& entry : fs::recursive_directory_iterator(store())) {
      EXPECT_EQ(::lstat(entry.path().c_str(), &st), 0);
      bytes += static_cast<uint64_t>(st.st_blocks) * 512;
    }
    return bytes;
  }

  Ran run(const std::vector<std::string>& arguments) const { return program_.run(arguments); }
  // The answer of a command that has to be fine and silent on stderr.
  std::string good(const std::vector<std::string>& arguments) const {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
    return ran.out;
  }
  std::vector<json> good_lines(const std::vector<std::string>& arguments) const {
    std::vector<json> out;
    for (const std::string& line : lines_of(good(arguments))) out.push_back(json::parse(line));
    return out;
  }

  const testing::TempDir dir_;
  testing::Program program_{KVKEEP_PROGRAM};
};

TEST_F(CommandLineTest, LsListsBlocksInEveryOrder) {
  write(4);
  const auto lines = lines_of(good({"ls"}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].rfind("KEY", 0), 0u);
  EXPECT_EQ(lines[1].rfind(hex_of(3).substr(0, 16) + "  m ", 0), 0u) << lines[1];
  EXPECT_EQ(lines[1].substr(lines[1].size() - 2), "ok");
  std::vector<std::string> keys;
  for (uint64_t k = 0; k < 4; ++k) keys.push_back(hex_of(k));
  std::sort(keys.begin(), keys.end());
  std::vector<std::string> listed;
  for (const json& block : good_lines({"ls", store(), "--json", "--sort", "key"})) {
    listed.push_back(block["hash"]);
  }
  EXPECT_EQ(listed, keys);
  EXPECT_EQ(good_lines({"ls", "--json", "--limit", "2"}).size(), 2u);
  EXPECT_EQ(good_lines({"ls", "--json", "--model", "another"}).size(), 0u);
  EXPECT_NE(good({"ls", "--long"}).find(hex_of(0)), std::string::npos);
}

TEST_F(CommandLineTest, JsonOfABlockIsItsRecordAndMore) {
  {
    const auto cache = open({{"engine_build", "b7"}, {"salt", "hush"}});
    save(*cache, 1);
  }
  const json block = good_lines({"ls", "--json"}).at(0);
  const auto meta = block_meta_from_json(block.dump());
  ASSERT_TRUE(meta.ok()) << meta.status().to_string();
  EXPECT_EQ(meta->hash, testing::key_of(1));
  EXPECT_EQ(meta->path, file(1));
  EXPECT_EQ(meta->file_size, fs::file_size(file(1)));
  EXPECT_EQ(block["state"], "ok");
  EXPECT_EQ(block["profile"], "extended");
  EXPECT_EQ(block["build"], "b7");
  EXPECT_EQ(block["identity_fields"]["salt"], "salted");
}

TEST_F(CommandLineTest, InspectShowsABlockByKeyAndByFile) {
  write(2);
  const json by_key = json::parse(good({"inspect", hex_of(1).substr(0, 12), "--json"}));
  EXPECT_EQ(by_key["hash"], hex_of(1));
  EXPECT_EQ(by_key["digest"], "ok");
  EXPECT_EQ(by_key["verdict"], "ok");
  EXPECT_EQ(by_key["layers"][0]["kind"], "pair");
  EXPECT_EQ(by_key["layers"][0]["tensors"][0]["dtype"], "F16");
  EXPECT_EQ(by_key["layers"][0]["tensors"][0]["shape"], json({1, 4, 64, 64}));
  const json by_file = json::parse(good({"inspect", file(1), "--json"}));
  EXPECT_EQ(by_file["metadata"], by_key["metadata"]);
  const std::string text = good({"inspect", store(), hex_of(1)});
  EXPECT_NE(text.find("F16"), std::string::npos);
  EXPECT_NE(text.find("digest"), std::string::npos);
  flip(1, fs::file_size(file(1)) - 1);
  const Ran bad = run({"inspect", hex_of(1)});
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.out.find("wrong"), std::string::npos);
}

TEST_F(CommandLineTest, WhySaysOfBlocksWhetherALoadWouldTakeThem) {
  write(3);
  EXPECT_NE(good({"why", hex_of(1).substr(0, 12)}).find(": ok: a load would take it"),
            std::string::npos);
  flip(1, fs::file_size(file(1)) - 1);
  fs::remove(file(2));
  const Ran ran = run({"why", store(), hex_of(0), hex_of(1), hex_of(2), "--json"});
  EXPECT_EQ(ran.status, 1);
  const json blocks = json::parse(ran.out)["blocks"];
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0]["state"], "ok");
  EXPECT_EQ(blocks[0]["hash"], hex_of(0));
  EXPECT_EQ(blocks[0]["file_size"], fs::file_size(file(0)));
  EXPECT_EQ(blocks[1]["state"], "damaged");
  EXPECT_EQ(blocks[2]["state"], "absent");
  EXPECT_EQ(run({"verify", "--quarantine"}).status, 1);
  const Ran aside = run({"why", hex_of(1).substr(0, 12)});
  EXPECT_EQ(aside.status, 1);
  EXPECT_NE(aside.out.find("kept aside in .kvkeep/quarantine/"), std::string::npos) << aside.out;
  EXPECT_EQ(run({"why", hex_of(0), "--model", "other"}).status, 1);
  EXPECT_EQ(run({"why", hex_of(0), "--identity", "build=b7"}).status, 1);
}

TEST_F(CommandLineTest, WhySaysWhereAPromptBreaksAndForWhatItIsStored) {
  const testing::Tokens tokens = testing::some_tokens(1, 40);
  {
    const auto cache = open();
    BlockPool pool(16, 100);
    const auto prefixes = PrefixCache::open(
        pool, *cache, {.fields = {{"model", "m"}, {"build", "b1234"}, {"salt", "hush"}}});
    ASSERT_TRUE(prefixes.ok());
    ASSERT_TRUE((*prefixes)->store({tokens, {}, {}}, testing::state_after(tokens)).ok());
  }
  const fs::path prompt = dir_.path() / "prompt.json";
  std::ofstream(prompt) << json(tokens);
  std::vector<std::string> words{"why",          "--tokens", prompt,    "--model",    "m",
                                 "--block-size", "16",       "--field", "build=b1234"};
  program_.variables["KVKEEP_SALT"] = "hush";
  const std::string table = good(words);
  EXPECT_NE(table.find("16-31"), std::string::npos) << table;
  EXPECT_NE(table.find("32 of 40 tokens are there, in 2 blocks"), std::string::npos) << table;

  words.back() = "build=b1240";
  const Ran other = run(words);
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.out.find("stored for build 'b1234'; asked for build 'b1240'"), std::string::npos)
      << other.out;
  EXPECT_EQ(other.out.find("hush"), std::string::npos);

  words.back() = "build=b1234";
  words[2] = "-";
  words.push_back("--json");
  program_.input = prompt;
  const json answer = json::parse(good(words));
  EXPECT_EQ(answer["state"], "ok");
  EXPECT_EQ(answer["tokens"], 32);
  EXPECT_EQ(answer["blocks"][1]["first_token"], 16);
  program_.variables["KVKEEP_BLOCK_SIZE"] = "20";
  words.erase(words.begin() + 5, words.begin() + 7);
  const json sizes = json::parse(run(words).out);
  EXPECT_EQ(sizes["state"], "absent");
  EXPECT_EQ(sizes["stored_block_size"], 16);
}

TEST_F(CommandLineTest, StatsShowTheLimitOfTheLastOwner) {
  write(1);
  const json stats = json::parse(good({"stats", "--json"}));
  EXPECT_EQ(stats["configured_max_size_bytes"], kLimit);
  EXPECT_GT(stats["utilization"], 0);
  const fs::path recorded = store() / ".kvkeep" / "limit.json";
  EXPECT_EQ(fs::status(recorded).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_NE(good({"stats"}).find("1.00GB, 0 % of it used"), std::string::npos);
  std::ofstream(recorded) << "{";
  EXPECT_FALSE(json::parse(good({"stats", "--json"})).contains("configured_max_size_bytes"));
}

TEST_F(CommandLineTest, StatsAddUp) {
  write(3);
  const json stats = json::parse(good({"stats", "--json"}));
  EXPECT_EQ(stats["blocks"], 3);
  EXPECT_EQ(stats["file_bytes"], 3 * fs::file_size(file(0)));
  EXPECT_EQ(stats["store_bytes"], disk_usage());
  EXPECT_EQ(stats["models"][0]["model_name"], "m");
  EXPECT_EQ(stats["states"]["ok"], 3);
  EXPECT_GT(stats["capacity_bytes"], 0);
  EXPECT_NE(good({"stats", "--prometheus"}).find("kvkeep_store_blocks{state=\"ok\"} 3\n"),
            std::string::npos);
  EXPECT_NE(good({"stats"}).find("3 blocks"), std::string::npos);
}

TEST_F(CommandLineTest, VerifyFindsAFlippedByteInEveryPartOfAFile) {
  write(3);
  EXPECT_NE(good({"verify"}).find("all fine"), std::string::npos);
  std::ifstream in(file(1), std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  const uint64_t digest = bytes.find("\"kvkeep_xxh3\":\"") + 15;
  const std::map<std::string, uint64_t> parts{{"header length", 0},
                                              {"name of a tensor", bytes.find("layer_0_state_0")},
                                              {"model", bytes.find("\"model_name\":\"") + 14},
                                              {"digest", digest},
                                              {"padding", digest + 40},
                                              {"first tensor", bytes.size() - 40000},
                                              {"last byte", bytes.size() - 1}};
  for (const auto& [part, byte] : parts) {
    ASSERT_LT(byte, bytes.size()) << part;
    flip(1, byte);
    const Ran ran = run({"verify", "--jobs", "2"});
    EXPECT_EQ(ran.status, 1) << part;
    EXPECT_NE(ran.out.find(hex_of(1)), std::string::npos) << part << ran.out;
    EXPECT_NE(ran.out.find("1 damaged"), std::string::npos) << part << ran.out;
    flip(1, byte);
  }
  EXPECT_EQ(run({"verify"}).status, 0);
}

TEST_F(CommandLineTest, VerifyTellsEachBlockAsJsonAndMovesDamageAside) {
  write(3);
  flip(1, fs::file_size(file(1)) - 1);
  const Ran ran = run({"verify", "--json"});
  EXPECT_EQ(ran.status, 1);
  std::map<std::string, std::string> states;
  for (const std::string& line : lines_of(ran.out)) {
    const json block = json::parse(line);
    states[block["hash"]] = block["state"];
  }
  EXPECT_EQ(states, (std::map<std::string, std::string>{
                        {hex_of(0), "ok"}, {hex_of(1), "damaged"}, {hex_of(2), "ok"}}));
  EXPECT_EQ(left(), (std::set<uint64_t>{0, 1, 2}));

  EXPECT_EQ(run({"verify", "--quarantine"}).status, 1);
  EXPECT_EQ(left(), (std::set<uint64_t>{0, 2}));
  EXPECT_EQ(json::parse(good({"stats", "--json"}))["quarantine_files"], 1);
  EXPECT_EQ(run({"verify", "--quarantine"}).status, 0);
}

TEST_F(CommandLineTest, CommandsThatLookChangeNothing) {
  testing::proves("RUL-65");
  write(3);
  flip(1, fs::file_size(file(1)) - 1);
  std::ofstream(store() / "a" / ".kvkeep-0123456789abcdef-1.tmp") << "left behind";
  const auto before = everything();
  run({"ls"});
  run({"inspect", hex_of(1)});
  run({"stats"});
  run({"verify"});
  run({"dir"});
  run({"why", hex_of(0), hex_of(1), hex_of(7)});
  run({"gc", "--max-size", "0", "--dry-run"});
  run({"rm", "--all", "--dry-run"});
  EXPECT_EQ(everything(), before);
}

TEST_F(CommandLineTest, CommandsThatLookWorkBesideAWriter) {
  const auto cache = open();
  for (uint64_t round = 0; round < 4; ++round) {
    for (uint64_t k = 0; k < 20; ++k) save(*cache, 100 * round + k);
    if (round > 0) {
      for (uint64_t k = 0; k < 20; ++k)
        EXPECT_TRUE(cache->delete_block(testing::key_of(100 * (round - 1) + k)).ok());
    }
    for (const char* verb : {"ls", "stats", "verify"}) {
      const Ran ran = run({verb, "--json"});
      EXPECT_EQ(ran.status, 0) << verb << ": " << ran.err;
      EXPECT_EQ(ran.err, "") << verb;
    }
  }
  EXPECT_TRUE(cache->flush().ok());
  EXPECT_NE(good({"why", hex_of(300)}).find(": ok: "), std::string::npos);
  EXPECT_EQ(good_lines({"ls", "--json"}).size(), 20u);
  EXPECT_EQ(cache->size(), 20u);
}

TEST_F(CommandLineTest, CommandsThatWriteLeaveAStoreInUseAlone) {
  testing::proves("RUL-65");
  const auto cache = open();
  save(*cache, 1);
  ASSERT_TRUE(cache->flush().ok());
  flip(1, fs::file_size(file(1)) - 1);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"rm", "--all"},
                                                {"gc", "--max-size", "0"},
                                                {"verify", "--quarantine"}}) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.status, 3) << words[0] << ran.out;
    EXPECT_NE(ran.err.find("process " + std::to_string(::getpid())), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.rfind("kvkeep: " + words[0] + ": ", 0), 0u) << ran.err;
  }
  EXPECT_EQ(left(), std::set<uint64_t>{1});
}

TEST_F(CommandLineTest, GcBringsADirectoryUnderASize) {
  write(40);
  const uint64_t limit = disk_usage() / 2 / 1024 * 1024;
  const std::string size = std::to_string(limit / 1024) + "KB";
  const std::string foretold = good({"gc", "--max-size", size, "--dry-run"});
  EXPECT_EQ(foretold.rfind("would remove ", 0), 0u) << foretold;
  EXPECT_EQ(left().size(), 40u);
  const json report = json::parse(good({"gc", "--max-size", size, "--json"}));
  EXPECT_LE(disk_usage(), limit);
  EXPECT_GT(report["removed_blocks"], 15);
  EXPECT_EQ(left().size(), 40 - report["removed_blocks"].get<uint64_t>());
  EXPECT_EQ(left().count(39), 1u) << "the most recently used stays";
  EXPECT_EQ(left().count(0), 0u);

  const Ran too_much = run({"gc", "--max-size", "1KB"});
  EXPECT_EQ(too_much.status, 1);
  EXPECT_TRUE(left().empty());
  EXPECT_NE(too_much.err.find("more than 1.00KB"), std::string::npos) << too_much.err;
}

TEST_F(CommandLineTest, GcByAgeKeepsTheParentsOfWhatStays) {
  {
    const auto cache = open();
    save(*cache, 1);
    save(*cache, 2, 1);
    save(*cache, 3);
  }
  age(1, 1'700'000'000);
  age(3, 1'700'000'000);
  EXPECT_EQ(good({"gc", "--older-than", "7d"}).rfind("removed 1 block, ", 0), 0u);
  EXPECT_EQ(left(), (std::set<uint64_t>{1, 2}));
}

TEST_F(CommandLineTest, RmRemovesBlocksAndTheirDescendantsForGood) {
  {
    const auto cache = open();
    save(*cache, 1);
    save(*cache, 2, 1);
    save(*cache, 3, 2);
    save(*cache, 4);
    save(*cache, 5, {}, "other");
  }
  const std::string expected = "removed 2 blocks, ";
  EXPECT_EQ(good({"rm", store(), hex_of(2).substr(0, 10)}).rfind(expected, 0), 0u);
  EXPECT_EQ(left(), (std::set<uint64_t>{1, 4, 5}));
  EXPECT_EQ(good({"rm", "--model", "other"}).rfind("removed 1 block, ", 0), 0u);
  EXPECT_EQ(left(), (std::set<uint64_t>{1, 4}));
  EXPECT_EQ(run({"rm", hex_of(2)}).status, 1);
  EXPECT_EQ(good({"rm", "--newer-than", "1h"}).rfind("removed 2 blocks, ", 0), 0u);
  EXPECT_TRUE(left().empty());
  const auto cache = open();
  EXPECT_EQ(cache->size(), 0u);
  EXPECT_FALSE(cache->load_block(testing::key_of(1)).ok());
}

TEST_F(CommandLineTest, RmByBuildTakesOnlyThatBuild) {
  for (const uint64_t k : {1, 2}) {
    const auto cache = open({{"build", "b" + std::to_string(k)}});
    save(*cache, k);
  }
  EXPECT_EQ(good({"rm", "--build", "b1"}).rfind("removed 1 block, ", 0), 0u);
  EXPECT_EQ(left(), std::set<uint64_t>{2});
  EXPECT_EQ(good({"rm", "--build", "b9"}).rfind("removed 0 blocks, ", 0), 0u);
  EXPECT_EQ(good({"rm", "--all"}).rfind("removed 1 block, ", 0), 0u);
}

TEST_F(CommandLineTest, DirIsTheStoreThatCommandsTake) {
  EXPECT_EQ(run({"dir"}).status, 1);
  write(1);
  EXPECT_EQ(good({"dir"}), store().string() + "\n");
  EXPECT_EQ(json::parse(good({"dir", "--json"}))["dir"], store().string());
  fs::create_directories(store().parent_path() / "another" / ".kvkeep");
  const Ran several = run({"ls"});
  EXPECT_EQ(several.status, 2);
  EXPECT_NE(several.err.find("another"), std::string::npos);
  EXPECT_NE(several.err.find(store().string()), std::string::npos);
  program_.variables["KVKEEP_DIR"] = store().string();
  EXPECT_EQ(good_lines({"ls", "--json"}).size(), 1u);
}

TEST_F(CommandLineTest, OptionsHaveVariablesAndTheCommandLineWins) {
  write(4);
  program_.variables["KVKEEP_LIMIT"] = "2";
  program_.variables["KVKEEP_JSON"] = "1";
  EXPECT_EQ(good_lines({"ls"}).size(), 2u);
  EXPECT_EQ(good_lines({"ls", "--limit", "3"}).size(), 3u);
}

TEST_F(CommandLineTest, MistakesHaveStatus2AndSayWhatToDo) {
  write(1);
  const std::vector<std::vector<std::string>> mistakes{{},
                                                       {"nonsense"},
                                                       {"ls", "--nonsense"},
                                                       {"ls", "a", "b"},
                                                       {"ls", "--sort", "colour"},
                                                       {"ls", "--limit", "0"},
                                                       {"verify", "--jobs", "x"},
                                                       {"gc"},
                                                       {"gc", "--max-size", "50GiB"},
                                                       {"gc", "--older-than", "soon"},
                                                       {"rm"},
                                                       {"rm", "abcde"},
                                                       {"rm", "--all", "--model", "m"},
                                                       {"rm", hex_of(0), "--all"},
                                                       {"inspect"},
                                                       {"inspect", store(), "zzz"},
                                                       {"why"},
                                                       {"why", "abcde"},
                                                       {"why", hex_of(0), "--tokens", "/dev/null"},
                                                       {"why", "--tokens", "/dev/null"},
                                                       {"why", hex_of(0), "--field", "build"},
                                                       {"stats", "--json", "--prometheus"},
                                                       {"--generate", "nonsense"}};
  for (const auto& words : mistakes) {
    const Ran ran = run(words);
    std::string all;
    for (const std::string& word : words) all += word + " ";
    EXPECT_EQ(ran.status, 2) << all << ran.err;
    EXPECT_EQ(ran.out, "") << all;
    EXPECT_EQ(ran.err.rfind("kvkeep: ", 0), 0u) << all << ran.err;
  }
  EXPECT_NE(run({"gc", "--max-size", "50GiB"}).err.find("write 50GB"), std::string::npos);
  EXPECT_EQ(left(), std::set<uint64_t>{0});
}

TEST_F(CommandLineTest, WhatIsNotThereHasStatus1) {
  write(1);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"ls", dir_.path() / "none"},
        {"ls", dir_.path()},
        {"inspect", "abcdefabcdef"},
        {"inspect", dir_.path() / "none.safetensors"},
        {"why", "abcdefabcdef"},
        {"why", "--tokens", dir_.path() / "none.json"},
        {"rm", "abcdefabcdef"},
        {"gc", dir_.path(), "--max-size", "1GB"}}) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.status, 1) << words[0] << ran.err;
    EXPECT_EQ(ran.err.rfind("kvkeep: " + words[0] + ": ", 0), 0u) << ran.err;
  }
}

TEST_F(CommandLineTest, AClosedPipeEndsQuietly) {
  write(40);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"ls"},
                                                {"ls", "--json"},
                                                {"stats"},
                                                {"verify", "--json"},
                                                {"--help"},
                                                {"--generate", "man"}}) {
    const Ran ran = program_.run_into_closed_pipe(words);
    EXPECT_EQ(ran.status, 0) << words[0];
    EXPECT_EQ(ran.err, "") << words[0];
  }
}

TEST_F(CommandLineTest, HelpVersionAndGeneratedTextsArePrinted) {
  for (const char* verb : {"ls", "inspect", "why", "stats", "verify", "gc", "rm", "dir"}) {
    EXPECT_NE(good({verb, "--help"}).find("Example:"), std::string::npos) << verb;
    EXPECT_EQ(good({verb, "--version"}), "kvkeep " KVKEEP_VERSION "\n") << verb;
  }
  EXPECT_NE(good({"--help"}).find("Example:"), std::string::npos);
  EXPECT_EQ(good({"--version"}), "kvkeep " KVKEEP_VERSION "\n");
  EXPECT_NE(good({"--generate", "complete-zsh"}).find("#compdef kvkeep"), std::string::npos);
  EXPECT_NE(good({"--generate", "complete-fish"}).find("complete -c kvkeep"), std::string::npos);
  EXPECT_EQ(good({"--generate", "man"}).rfind(".TH KVKEEP 1", 0), 0u);
}

TEST_F(CommandLineTest, BashCompletesVerbsFlagsAndChoices) {
  const fs::path script = dir_.path() / "completion";
  std::ofstream(script) << good({"--generate", "complete-bash"});
  testing::Program bash("bash");
  bash.variables["PATH"] = "/usr/bin:/bin";
  const auto complete = [&](const std::string& words, int at) {
    const std::string line = "source " + script.string() + "; COMP_WORDS=(" + words +
                             "); COMP_CWORD=" + std::to_string(at) +
                             "; _kvkeep; echo \"${COMPREPLY[*]}\"";
    return bash.run({"--norc", "-c", line}).out;
  };
  EXPECT_EQ(complete("kvkeep ver", 1), "verify\n");
  EXPECT_EQ(complete("kvkeep gc --max", 2), "--max-size\n");
  EXPECT_EQ(complete("kvkeep ls --sort s", 3), "size\n");
}

}  // namespace
}  // namespace kvkeep
