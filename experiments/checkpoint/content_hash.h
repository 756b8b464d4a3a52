// What a manifest records about the bytes of a block or a file, to detect changes: the checksum, which detects damage
// by a disk or a crash, and, if checkpoints are authenticated, a digest, which also detects deliberate changes (BLAKE2b
// of 32 bytes: RFC 7693, by libsodium).
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

// Converts to and from the form in manifests, 64 hexadecimal digits. Parsing returns nothing for any other text.
std::string digest_text(const Digest& digest);
std::optional<Digest> parse_digest(std::string_view text);

enum class Digests { kNo, kYes };

struct ContentSums {
  std::uint64_t checksum = 0;
  std::optional<Digest> digest = {};

  // Returns whether there is a digest.
  Digests digests() const { return digest ? Digests::kYes : Digests::kNo; }
  bool operator==(const ContentSums&) const = default;
};

// Computes the sums of bytes that are added piece by piece. Used by one thread. A digest costs about as much as writing
// to a fast disk, and is only computed on request.
class ContentHash {
 public:
  explicit ContentHash(Digests digests);
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;
  ~ContentHash();

  void add(std::span<const std::byte> bytes);
  // Returns the sums; may be called once.
  ContentSums sums();

 private:
  struct State;
  Checksum checksum_;
  std::unique_ptr<State> digest_;  // null: no digest is computed
};

ContentSums sums_of(std::string_view bytes, Digests digests);

}  // namespace syncopate::experiments
