// What is decoded may lie in memory that its sender can write at any time: what comes out is then worth nothing, but it
// stays where it belongs.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "common/clock.h"
#include "common/codec/codec.h"

namespace syncopate {
namespace {

// Bytes that another process turns to `other` ones and back, every few microseconds: what is checked is often something
// else when it is used.
class ChangingBytes {
 public:
  ChangingBytes(const std::vector<std::byte>& bytes, const std::vector<std::byte>& other) : size_(bytes.size()) {
    void* const memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    std::ranges::copy(bytes, memory_);
    child_ = fork();
    if (child_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const SteadyClock clock;
    for (TimePoint next = clock.now();; next += std::chrono::microseconds(20)) {
      while (clock.now() < next) {
      }
      std::ranges::copy(is_other_ ? bytes : other, memory_);
      is_other_ = !is_other_;
    }
  }
  ~ChangingBytes() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    munmap(memory_, size_);
  }

  std::span<const std::byte> bytes() const { return {memory_, size_}; }

 private:
  const std::size_t size_;
  std::byte* memory_ = nullptr;
  bool is_other_ = false;  // in the child
  pid_t child_ = -1;
};

class ChangingMemory : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Of, ChangingMemory,
                         testing::Values("topk:0.001", "topk2bit:0.001", "randomk:0.001", "int8", "sign", "fp16",
                                         "none"),
                         [](const auto& codec) {
                           std::string name(codec.param);
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

TEST_P(ChangingMemory, IsDecodedToNothingBeyondItsValues) {
  constexpr std::size_t kElements = 200'000, kGuard = 1 << 16;
  const Result<CodecConfig> config = parse_codec(GetParam());
  ASSERT_TRUE(config.ok()) << config.status().message();
  Codec codec(*config);
  std::vector<float> values(kElements);
  std::iota(values.begin(), values.end(), -300.0f);
  std::vector<std::byte> encoded(codec.encoded_size(kElements));
  codec.encode(values, 1, encoded);
  // Numbers that are a little out of range, so that a write there meets the guard.
  std::vector<std::byte> other = encoded;
  for (std::size_t i = 1; i < other.size(); i += 4) other[i] |= std::byte{0x10};
  const ChangingBytes changing(encoded, other);
  std::vector<float> out(kElements + kGuard, 7.0f);
  const std::span<float> decoded = std::span(out).first(kElements);
  for (int i = 0; i < 1000; ++i) {
    (void)codec.decode(changing.bytes(), 1, decoded);
    (void)codec.add_decoded(changing.bytes(), 1, decoded);
  }
  EXPECT_TRUE(std::all_of(out.begin() + kElements, out.end(), [](float value) { return value == 7.0f; }));
}

}  // namespace
}  // namespace syncopate
