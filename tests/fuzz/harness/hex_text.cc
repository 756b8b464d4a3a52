// Bytes as hexadecimal text, in which NCCL's unique id travels.
#include "common/text/hex_text.h"

#include <array>

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness hex_text("hex_text", [](Bytes input) {
  std::array<std::byte, 16> bytes{};
  if (!from_hex(text_of(input), bytes)) return;
  require(to_hex(bytes) == text_of(input), "bytes are the text that they were read from");
});

}  // namespace
}  // namespace syncopate::fuzz
