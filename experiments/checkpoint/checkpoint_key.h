// CheckpointKey: the secret of who writes checkpoints and goes on from them, by which a manifest is authenticated. Only
// the coordinator has it: what other processes write is named by digests in the manifest.
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
  // The bytes of a file, all of them as they are: 32 at least, 4096 at most. Invalid argument, with what to do, where
  // there are fewer or more, where the file is not the user's own or root's, or where others may read it; not found
  // where it is not there. No message shows what is in it.
  static Result<CheckpointKey> read(const std::string& path);
  // The same of bytes.
  static Result<CheckpointKey> of_bytes(std::string_view secret);

  // Authenticates a text (keyed BLAKE2b, RFC 7693, section 2.9). Who lacks the key can make none.
  Digest mac_of(std::string_view text) const;
  // Takes as long whatever is wrong.
  bool is_mac_of(std::string_view text, const Digest& mac) const;

 private:
  using Bytes = std::array<std::uint8_t, 32>;
  struct Wipe {
    void operator()(const Bytes* bytes) const;
  };

  CheckpointKey() = default;

  std::shared_ptr<const Bytes> key_;  // in memory of its own, which is wiped, not swapped out, and in no core dump
};

}  // namespace syncopate::experiments
