#include "experiments/lab/report/space_reserve.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

// What this process holds open in `folder`, which has no name there.
std::string text_of_reserve(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (fs::read_symlink(entry.path(), ignored).string().starts_with(folder + "/.reserve-")) {
      return testing_support::text_of(entry.path());
    }
  }
  return {};
}

TEST(SpaceReserve, CannotBeMadeSmallerByAFileSystemThatCompresses) {
  const testing_support::TemporaryFolder folder;
  constexpr std::size_t kBytes = (std::size_t{3} << 20) + 5;
  Result<SpaceReserve> reserve = SpaceReserve::take(folder.path(), kBytes);
  ASSERT_TRUE(reserve.ok()) << reserve.status().message();
  const std::string text = text_of_reserve(fs::canonical(folder.path()));
  ASSERT_EQ(text.size(), kBytes);
  uLongf size = ::compressBound(text.size());
  std::vector<Bytef> compressed(size);
  ASSERT_EQ(::compress(compressed.data(), &size, reinterpret_cast<const Bytef*>(text.data()), text.size()), Z_OK);
  EXPECT_GE(size, text.size());
  EXPECT_NE(text.substr(0, 1 << 20), text.substr(1 << 20, 1 << 20)) << "nor by one that keeps equal blocks once";
  reserve->release();
  EXPECT_EQ(text_of_reserve(folder.path()), "");
}

}  // namespace
}  // namespace syncopate::experiments
