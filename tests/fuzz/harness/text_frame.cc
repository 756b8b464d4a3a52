// A frame of texts, as anybody may send one to rank 0 of a job.
#include "library/text_frame.h"

#include <string>

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness text_frame("text_frame", [](Bytes input) {
  constexpr std::size_t kLongest = 1024;
  const std::string bytes(input.begin(), input.end());
  const Result<std::optional<std::vector<std::string>>> texts = library::read_frame(bytes, kLongest);
  if (!texts.ok() || !*texts) return;
  require(bytes.size() <= kLongest + 12, "no longer frame is read than is allowed");
  require(library::frame_of(**texts) == bytes, "what was read is what was written");
});

}  // namespace
}  // namespace syncopate::fuzz
