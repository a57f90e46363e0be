#include "daemon/server/long_rope.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

class LongRope : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& content) {
    const std::filesystem::path path = dir_.path() / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  testing::TempDir dir_;
};

TEST_F(LongRope, IsSeenWhereverTheNameStands) {
  const std::string name = "rope_factors_long.weight";
  for (const size_t before : {size_t{0}, size_t{100}, (size_t{1} << 20) - name.size(),
                              (size_t{1} << 20) - 10, size_t{1} << 20, size_t{5} << 20}) {
    const auto model = write("m.gguf", std::string(before, 'x') + name + "and more");
    EXPECT_TRUE(has_long_rope({model})) << before;
  }
}

TEST_F(LongRope, OneOfSeveralPartsIsEnough) {
  const auto first = write("m-00001-of-00002.gguf", "rope_freqs.weight rope_factors_short.weight");
  const auto second = write("m-00002-of-00002.gguf", "…rope_factors_long.weight");
  EXPECT_FALSE(has_long_rope({first}));
  EXPECT_TRUE(has_long_rope({first, second}));
}

TEST_F(LongRope, FilesThatCannotBeReadHaveNone) {
  EXPECT_FALSE(has_long_rope({}));
  EXPECT_FALSE(has_long_rope({dir_.path() / "none.gguf", dir_.path()}));
  EXPECT_FALSE(has_long_rope({write("empty.gguf", "")}));
}

}  // namespace
}  // namespace kvkeep::daemon
