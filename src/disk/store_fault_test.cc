// Every call to the file system fails once, in turn.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "disk/store_directory.h"
#include "disk/store_layout.h"
#include "testing/faulty_file_system.h"
#include "testing/mem_file_system.h"
#include "testing/proves.h"
#include "testing/seed_block.h"
#include "testing/status_matchers.h"

namespace kvkeep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::image_of;
using testing::is_ok;
using ::testing::Not;
using testing::Op;
using testing::Operation;
using testing::seed_bytes;
using testing::seed_key;

constexpr double kNow = 1'800'000'000;
constexpr uint64_t kQuarantineBytes = 1 << 20;

// A store on a disk that can fail.
struct Store {
  explicit Store(Durability d = Durability::kNone) : durability(d) {}

  Status open() {
    StoreDirectory::Settings settings;
    settings.nonce = "00000000000000aa";
    settings.root_name = "/srv/store";
    settings.durability = durability;
    settings.quarantine_max_bytes = kQuarantineBytes;
    auto opened = StoreDirectory::open(files, settings);
    if (opened.ok()) directory = *std::move(opened);
    return opened.status();
  }
  Status write(const std::string& bytes) {
    const auto temp = directory->write_temp(seed_key(), *image_of(seed_key(), bytes));
    if (!temp.ok()) return temp.status();
    const auto committed = directory->commit(*temp, seed_key());
    return committed.ok() ? committed->durable : committed.status();
  }
  std::string block() const { return disk->read_all(block_path(seed_key())).value_or("none"); }
  uint64_t bytes_below(std::string_view dir) const {
    uint64_t total = 0;
    for (const std::string& path : disk->paths()) {
      if (path.substr(0, dir.size()) == dir) total += disk->read_all(path)->size();
    }
    return total;
  }

  const Durability durability;
  std::shared_ptr<testing::MemFileSystem> disk = std::make_shared<testing::MemFileSystem>();
  std::shared_ptr<testing::FaultyFileSystem> files =
      std::make_shared<testing::FaultyFileSystem>(disk);
  std::unique_ptr<StoreDirectory> directory;
};

// Plans that the call which a run without faults made as number `n` fails.
void fail_call(testing::FaultPlan& plan, const std::vector<Operation>& calls, size_t n, int error) {
  uint64_t nth = 0;
  for (size_t i = 0; i <= n; ++i) {
    const bool matches =
        calls[i].op == calls[n].op && (calls[i].path.find(calls[n].path) != std::string::npos ||
                                       calls[i].to.find(calls[n].path) != std::string::npos);
    nth += matches ? 1 : 0;
  }
  plan.fail(calls[n].op, calls[n].path, error, nth);
}

// Runs `act` on a fresh store once for each call that it makes, with that call failing, and then
// looks.
void fail_each_call(Durability durability, const std::function<void(Store&)>& prepare,
                    const std::function<Status(Store&)>& act,
                    const std::function<void(Store&, const Status&)>& look) {
  Store sound(durability);
  prepare(sound);
  sound.files->clear_record();
  ASSERT_THAT(act(sound), is_ok());
  const std::vector<Operation> calls = sound.files->calls();
  ASSERT_FALSE(calls.empty());
  for (size_t n = 0; n < calls.size(); ++n) {
    SCOPED_TRACE(std::string(name_of(calls[n].op)) + " '" + calls[n].path + "'");
    for (const int error : {EIO, ENOSPC, EACCES}) {
      Store store(durability);
      prepare(store);
      fail_call(store.files->plan(), calls, n, error);
      const Status status = act(store);
      store.files->plan().clear();
      look(store, status);
    }
  }
}

class StoreFaultTest : public ::testing::TestWithParam<Durability> {};

TEST_P(StoreFaultTest, FailedWriteLeavesTheOldBlockAndNoTemporaryFile) {
  testing::proves("ERR-09", "DEF-14", "DEF-10");
  const std::string older = seed_bytes();
  const std::string newer = testing::with_padding(older, 5000);
  for (const bool overwrite : {false, true}) {
    const auto prepare = [&](Store& store) {
      ASSERT_THAT(store.open(), is_ok());
      if (overwrite) store.disk->write_all(block_path(seed_key()), older);
    };
    const auto write = [&](Store& store) { return store.write(newer); };
    const auto look = [&](Store& store, const Status& status) {
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.code(), Code::kUnavailable) << status.to_string();
      const bool in_place = store.block() == newer;  // Only the directory's sync comes later.
      if (!in_place) {
        EXPECT_EQ(store.block(), overwrite ? older : "none");
      }
      EXPECT_THAT(store.disk->paths(), Not(Contains(HasSubstr(".tmp"))));
      EXPECT_EQ(store.directory->leftover_bytes(), 0u);
      EXPECT_THAT(store.write(newer), is_ok());
      EXPECT_EQ(store.block(), newer);
    };
    fail_each_call(GetParam(), prepare, write, look);
  }
}

TEST_P(StoreFaultTest, FailedDirectorySyncSaysThatTheBlockIsInPlace) {
  testing::proves("DEF-10");
  Store store(GetParam());
  ASSERT_THAT(store.open(), is_ok());
  store.files->plan().fail_every(Op::kSyncDir, "3", EIO);
  const auto temp = store.directory->write_temp(seed_key(), *image_of(seed_key(), seed_bytes()));
  ASSERT_THAT(temp, is_ok());
  const auto committed = store.directory->commit(*temp, seed_key());
  ASSERT_THAT(committed, is_ok());
  EXPECT_EQ(committed->durable.ok(), GetParam() != Durability::kDataAndDir);
  EXPECT_EQ(store.block(), seed_bytes());
}

TEST_P(StoreFaultTest, OpeningFailsWithAStatusAndHoldsNothing) {
  testing::proves("INIT-07", "RUL-36");
  const auto prepare = [](Store& store) {
    store.disk->write_all(owner_path("00000000000000bb"), "pid 1");
    store.disk->write_all(quarantine_path(seed_key(), 1), "damaged");
  };
  const auto open = [](Store& store) { return store.open(); };
  const auto look = [](Store& store, const Status& status) {
    EXPECT_TRUE(status.ok() || status.code() == Code::kUnavailable ||
                status.code() == Code::kFailedPrecondition)
        << status.to_string();
    if (!status.ok()) {
      EXPECT_THAT(status.message(), HasSubstr("/srv/store"));
    }
    store.directory.reset();
    EXPECT_THAT(store.open(), is_ok());
  };
  fail_each_call(GetParam(), prepare, open, look);
}

INSTANTIATE_TEST_SUITE_P(EveryDurability, StoreFaultTest,
                         ::testing::Values(Durability::kNone, Durability::kData,
                                           Durability::kDataAndDir));

TEST(StoreFault, DurabilityDecidesWhatIsSynced) {
  testing::proves("DEF-10");
  for (const auto& [durability, data, dirs] :
       {std::tuple(Durability::kNone, 0, 0), std::tuple(Durability::kData, 1, 0),
        std::tuple(Durability::kDataAndDir, 1, 1)}) {
    Store store(durability);
    ASSERT_THAT(store.open(), is_ok());
    store.files->clear_record();
    ASSERT_THAT(store.write(seed_bytes()), is_ok());
    EXPECT_EQ(store.files->count(Op::kSyncData), size_t(data));
    EXPECT_EQ(store.files->count(Op::kSyncDir), size_t(dirs));
  }
}

TEST(StoreFault, PartOfABlockIsRemovedWhenTheDiskIsFull) {
  testing::proves("ERR-09", "ERR-02");
  Store store;
  ASSERT_THAT(store.open(), is_ok());
  const auto before = store.disk->paths();
  store.files->plan().short_append(".kvkeep-", 1000, ENOSPC);
  const Status status = store.write(seed_bytes());
  EXPECT_EQ(status.sys_errno(), ENOSPC);
  EXPECT_EQ(store.disk->paths(), before);
}

TEST(StoreFault, TemporaryFileThatCannotBeRemovedStaysCountedUntilItCan) {
  Store store;
  ASSERT_THAT(store.open(), is_ok());
  store.files->plan().fail_every(Op::kRename, "3/", EIO);
  store.files->plan().fail_every(Op::kUnlink, ".tmp", EACCES);
  EXPECT_FALSE(store.write(seed_bytes()).ok());
  EXPECT_EQ(store.directory->leftover_bytes(), seed_bytes().size());
  EXPECT_FALSE(store.write(seed_bytes()).ok());
  EXPECT_EQ(store.directory->leftover_bytes(), 2 * seed_bytes().size());
  store.files->plan().clear();
  ASSERT_THAT(store.write(seed_bytes()), is_ok());
  EXPECT_EQ(store.directory->leftover_bytes(), 0u);
  EXPECT_THAT(store.disk->paths(), Not(Contains(HasSubstr(".tmp"))));
}

TEST(StoreFault, QuarantineReportsWhatReallyHappened) {
  testing::proves("RUL-14", "RUL-06");
  const std::string bytes = seed_bytes();
  const std::string older(kQuarantineBytes - 100, 'o');
  QuarantineReport report;
  const auto prepare = [&](Store& store) {
    store.disk->write_all(quarantine_path(seed_key(), 1), older);
    ASSERT_THAT(store.open(), is_ok());
    ASSERT_THAT(store.write(bytes), is_ok());
    report = {};
  };
  const auto act = [&](Store& store) {
    const auto done = store.directory->quarantine(seed_key(), bytes.size());
    if (done.ok()) report = *done;
    return done.status();
  };
  const auto look = [&](Store& store, const Status& status) {
    const uint64_t kept = store.bytes_below(kQuarantineDir);
    EXPECT_EQ(kept, older.size() + report.added_bytes - report.removed_bytes);
    EXPECT_EQ(store.block(), status.ok() ? "none" : bytes);
    if (kept <= kQuarantineBytes) return;
    // The oldest file could not be removed; the next one that comes makes it go.
    ASSERT_THAT(store.write(bytes), is_ok());
    EXPECT_THAT(store.directory->quarantine(seed_key(), bytes.size()), is_ok());
    EXPECT_LE(store.bytes_below(kQuarantineDir), kQuarantineBytes);
  };
  fail_each_call(Durability::kNone, prepare, act, look);
}

TEST(StoreFault, RemovalEitherHappensOrIsRefused) {
  testing::proves("DEL-05", "DEF-30");
  const auto prepare = [](Store& store) {
    ASSERT_THAT(store.open(), is_ok());
    ASSERT_THAT(store.write(seed_bytes()), is_ok());
  };
  const auto act = [](Store& store) { return store.directory->remove(seed_key()).status(); };
  const auto look = [](Store& store, const Status& status) {
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_EQ(store.block(), seed_bytes());
  };
  fail_each_call(Durability::kNone, prepare, act, look);
}

TEST(StoreFault, ScanFindsEveryBlockOrFails) {
  testing::proves("SCAN-06", "SCAN-10", "DEF-31");
  std::map<std::string, FoundBlock> found;
  const auto prepare = [&](Store& store) {
    found.clear();
    ASSERT_THAT(store.open(), is_ok());
    ASSERT_THAT(store.write(seed_bytes()), is_ok());
    store.disk->write_all("a/ab.safetensors", "no header");
    store.disk->write_all(temp_path(seed_key(), "00000000000000cc", 1), "left");
    store.disk->write_all("README", "foreign");
  };
  const auto act = [&](Store& store) {
    return store.directory
        ->scan(kNow, [&](FoundBlock block) { found.emplace(block.hash.to_hex(), block); })
        .status();
  };
  const auto look = [&](Store& store, const Status& status) {
    if (status.ok()) {
      EXPECT_EQ(found.size(), 2u);
    } else {
      EXPECT_EQ(status.code(), Code::kUnavailable);
    }
    EXPECT_EQ(store.block(), seed_bytes());
  };
  fail_each_call(Durability::kNone, prepare, act, look);
}

TEST(StoreFault, FileThatCannotBeReadIsFoundWithoutHeader) {
  testing::proves("SCAN-06", "DEF-36");
  for (const Op op : {Op::kOpenRead, Op::kRead, Op::kStatOpen}) {
    Store store;
    ASSERT_THAT(store.open(), is_ok());
    ASSERT_THAT(store.write(seed_bytes()), is_ok());
    store.files->plan().fail_every(op, block_path(seed_key()), EMFILE);
    std::vector<FoundBlock> found;
    const auto report =
        store.directory->scan(kNow, [&](FoundBlock block) { found.push_back(block); });
    ASSERT_THAT(report, is_ok());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_FALSE(found[0].header);
    EXPECT_EQ(found[0].why, MissReason::kUnreadable);
    EXPECT_EQ(found[0].file_bytes, seed_bytes().size());
    EXPECT_EQ(report->unreadable_files, 1u);
    EXPECT_EQ(store.directory->read_header(seed_key()).status().sys_errno(), EMFILE);
  }
}

TEST(StoreFault, ScanReadsHeadersOnly) {
  testing::proves("SCAN-05");
  Store store;
  ASSERT_THAT(store.open(), is_ok());
  const std::string block = seed_bytes();
  ASSERT_THAT(store.write(block + std::string(1 << 20, 'x')), is_ok());
  ASSERT_THAT(store.write(testing::with_padding(block, 10'000)), is_ok());
  store.disk->write_all("a/ab.safetensors", block + std::string(1 << 20, 'x'));
  store.files->clear_record();
  ASSERT_THAT(store.directory->scan(kNow, [](FoundBlock) {}), is_ok());
  std::map<std::string, uint64_t> read;
  for (const Operation& call : store.files->calls()) {
    if (call.op == Op::kRead) read[call.path] += call.bytes;
  }
  EXPECT_EQ(read["a/ab.safetensors"], 4096u);
  EXPECT_EQ(read[block_path(seed_key())], 12'288u);
}

TEST(StoreFault, ShortReadsOfAHeaderAreDamageThatIsNoticed) {
  for (uint64_t size : {0, 4, 8, 100, 1000}) {
    Store store;
    ASSERT_THAT(store.open(), is_ok());
    ASSERT_THAT(store.write(seed_bytes()), is_ok());
    store.files->plan().end_reads_at(block_path(seed_key()), size);
    EXPECT_EQ(store.directory->read_header(seed_key()).status().code(), Code::kDataLoss) << size;
  }
}

}  // namespace
}  // namespace kvkeep
