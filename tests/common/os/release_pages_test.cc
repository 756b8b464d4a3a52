#include "common/os/release_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "common/os/aligned_buffer.h"
#include "common/transport/shm_memory.h"

namespace syncopate {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 64;

// The pages of this memory that have memory behind them.
std::size_t present(std::span<std::byte> memory) {
  std::vector<unsigned char> pages(memory.size() / kPage);
  if (mincore(memory.data(), memory.size(), pages.data()) != 0) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

void expect_released(std::span<std::byte> memory) {
  std::ranges::fill(memory, std::byte{7});
  ASSERT_EQ(present(memory), kPages);
  // From the middle of a page to the middle of another.
  const std::span<std::byte> part = memory.subspan(kPage / 2, 10 * kPage);
  release_pages(part);
  EXPECT_EQ(present(memory), kPages - 9);
  EXPECT_EQ(memory[kPage - 1], std::byte{7});
  EXPECT_EQ(memory[kPage], std::byte{0});
  EXPECT_EQ(memory[10 * kPage - 1], std::byte{0});
  EXPECT_EQ(memory[10 * kPage], std::byte{7});
  std::ranges::fill(memory, std::byte{8});
  EXPECT_EQ(std::ranges::count(memory, std::byte{8}), std::ssize(memory));
}

TEST(ReleasePages, GivesPrivateMemoryBack) {
  AlignedBuffer buffer(kPages * kPage / sizeof(float));
  expect_released(std::as_writable_bytes(buffer.span()));
}

TEST(ReleasePages, GivesMemoryThatOthersMapBack) {
  Result<SharedMemory> memory = SharedMemory::create(kPages * kPage);
  ASSERT_TRUE(memory.ok());
  expect_released(memory->bytes());
  std::ranges::fill(memory->bytes(), std::byte{1});
  release_pages(memory->bytes());
  struct stat file {};
  ASSERT_EQ(fstat(memory->file().get(), &file), 0);
  EXPECT_EQ(file.st_blocks, 0) << "the file has none either";
}

TEST(ReleasePages, LeavesLessThanAPageAlone) {
  AlignedBuffer buffer(2 * kPage / sizeof(float));
  const std::span<std::byte> memory = std::as_writable_bytes(buffer.span());
  std::ranges::fill(memory, std::byte{7});
  release_pages(memory.subspan(1, kPage));
  release_pages({});
  EXPECT_EQ(std::ranges::count(memory, std::byte{7}), std::ssize(memory));
}

}  // namespace
}  // namespace syncopate
