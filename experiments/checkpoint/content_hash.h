// What a manifest says of the bytes of a block or a file, so that they can be told from any others: the checksum, which
// finds what a disk or a crash has done, and, where checkpoints are authenticated, a digest, which also finds what
// somebody has done on purpose (BLAKE2b of 32 bytes: RFC 7693, by libsodium).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "experiments/checkpoint/checksum.h"

namespace syncopate::experiments {

using Digest = std::array<std::uint8_t, 32>;

// As manifests have it: 64 hexadecimal digits; nothing where a text is anything else.
std::string digest_text(const Digest& digest);
std::optional<Digest> parse_digest(std::string_view text);

enum class Digests { kNo, kYes };

struct ContentSums {
  std::uint64_t checksum = 0;
  std::optional<Digest> digest = {};

  // Whether there is one.
  Digests digests() const { return digest ? Digests::kYes : Digests::kNo; }
  bool operator==(const ContentSums&) const = default;
};

// Of bytes that come piece by piece. One thread. A digest costs about as much as writing to a fast disk, and is only
// made where it is asked for.
class ContentHash {
 public:
  explicit ContentHash(Digests digests);
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;
  ~ContentHash();

  void add(std::span<const std::byte> bytes);
  // Once.
  ContentSums sums();

 private:
  struct State;
  Checksum checksum_;
  std::unique_ptr<State> digest_;  // null: none is made
};

ContentSums sums_of(std::string_view bytes, Digests digests);

}  // namespace syncopate::experiments
