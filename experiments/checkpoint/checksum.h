// The checksum of checkpoints: XXH3, 64 bits (Collet, xxHash's specification, "XXH3"). It detects damage by a disk or a
// crash; it does not protect against deliberate changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace syncopate::experiments {

// Computes the checksum of bytes that are added piece by piece. Used by one thread.
class Checksum {
 public:
  Checksum();

  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

std::uint64_t checksum_of(std::string_view bytes);

// Converts to and from the form in manifests, 16 hexadecimal digits. Parsing returns nothing for any other text.
std::string checksum_text(std::uint64_t checksum);
std::optional<std::uint64_t> parse_checksum(std::string_view text);

}  // namespace syncopate::experiments
