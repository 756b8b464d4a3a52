// What encrypts a connection between hosts, by libsodium: keys of its own for each connection and direction, from the
// run's keys and fresh ones of both ends, and records sealed with them.
#pragma once

#include <sodium.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "common/transport/run_keys.h"

namespace syncopate {

// One direction of one connection. Both ends count records, and a record opens only as the one that it was sealed as:
// it cannot be changed, left out, sent again or moved to another connection. After one that does not open, none does.
class SocketCipher {
 public:
  // AES-256-GCM is the faster one where processors have instructions for it, ChaCha20-Poly1305 (RFC 8439) elsewhere.
  enum class Kind : std::uint32_t { kChaCha20Poly1305 = 1, kAes256Gcm = 2 };
  using Key = std::array<unsigned char, 32>;
  static constexpr std::size_t kTagBytes = 16;

  // The faster one that this processor has.
  static Kind best();

  SocketCipher(Kind kind, const Key& key);
  ~SocketCipher();
  SocketCipher(const SocketCipher&) = default;

  // `sealed` has room for kTagBytes more than `plain` has.
  void seal(std::span<const std::byte> plain, std::byte* sealed);
  // False, and `plain` is worth nothing, if that is not the next record, or one before it was not. `plain` has room for
  // kTagBytes less.
  [[nodiscard]] bool open(std::span<const std::byte> sealed, std::byte* plain);

 private:
  using Nonce = std::array<unsigned char, 12>;
  Nonce nonce() const;

  Kind kind_;
  Key key_;                            // of ChaCha20-Poly1305
  crypto_aead_aes256gcm_state aes_{};  // of AES-256-GCM: its key, made ready
  std::uint64_t records_ = 0;          // sealed, or opened
  bool is_broken_ = false;             // one did not open
};

// A key pair that lives as long as a handshake does (X25519).
class EphemeralPair {
 public:
  EphemeralPair();
  ~EphemeralPair();
  EphemeralPair(const EphemeralPair&) = default;
  EphemeralPair& operator=(const EphemeralPair&) = default;

  const SocketCipher::Key& public_key() const { return public_key_; }

  struct Session {
    SocketCipher::Key from_connector;
    SocketCipher::Key from_listener;
  };
  // The keys of a connection: BLAKE2b, keyed with what is derived from the run's secret for that, of the secret that
  // the ephemeral pairs share and of all that was said. So they are new each time, known to nobody without the run's
  // keys, and not to be found from those later; and both ends have them only if they have heard the same. False if the
  // other end's key is not one.
  [[nodiscard]] bool agree(const RunKeys& keys, const SocketCipher::Key& others, std::string_view said,
                           Session& session) const;

 private:
  SocketCipher::Key secret_key_;
  SocketCipher::Key public_key_;
};

}  // namespace syncopate
