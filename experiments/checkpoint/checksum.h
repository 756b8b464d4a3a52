// The checksum of checkpoints: XXH3, 64 bits (Collet, xxHash's specification, "XXH3"). It finds what a disk or a crash
// has done to bytes; it is no protection from those who want to deceive.
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

// Of bytes that come piece by piece. One thread.
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

// As manifests have it: 16 hexadecimal digits; nothing where a text is anything else.
std::string checksum_text(std::uint64_t checksum);
std::optional<std::uint64_t> parse_checksum(std::string_view text);

}  // namespace syncopate::experiments
