// CheckpointKey: the secret that authenticates manifests, shared by the runs that write checkpoints and resume from
// them. Only the coordinator has it: the manifest names the files of other processes by their digests.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"
#include "experiments/checkpoint/content_hash.h"

namespace syncopate::experiments {

class CheckpointKey {
 public:
  // Reads the bytes of a file, unchanged: 32 at least, 4096 at most. Fails with invalid argument, saying what to do, if
  // there are fewer or more, if the file does not belong to the user or root, or if others may read it. Fails with not
  // found if it does not exist. No message shows the contents.
  static Result<CheckpointKey> read(const std::string& path);
  // Makes a key of such bytes.
  static Result<CheckpointKey> of_bytes(std::string_view secret);

  // Authenticates a text (keyed BLAKE2b, RFC 7693, section 2.9). It cannot be made without the key.
  Digest mac_of(std::string_view text) const;
  // Compares in constant time.
  bool is_mac_of(std::string_view text, const Digest& mac) const;

 private:
  using Bytes = std::array<std::uint8_t, 32>;
  struct Wipe {
    void operator()(const Bytes* bytes) const;
  };

  CheckpointKey() = default;

  // in memory of its own, which is wiped when freed, never swapped out, and not in core dumps
  std::shared_ptr<const Bytes> key_;
};

}  // namespace syncopate::experiments
