// Encrypts a connection between hosts, using libsodium: each connection and direction has keys of its own, made from
// the run's keys and fresh ones of both ends, with which records are sealed.
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

// One direction of one connection. Both ends count records, and a record opens only at the position at which it was
// sealed: it cannot be changed, left out, repeated or moved to another connection. After one that does not open, none
// does.
class SocketCipher {
 public:
  // AES-256-GCM is faster if the processor has instructions for it, ChaCha20-Poly1305 (RFC 8439) otherwise.
  enum class Kind : std::uint32_t { kChaCha20Poly1305 = 1, kAes256Gcm = 2 };
  using Key = std::array<unsigned char, 32>;
  static constexpr std::size_t kTagBytes = 16;

  // Returns the faster one that this processor supports.
  static Kind best();

  SocketCipher(Kind kind, const Key& key);
  ~SocketCipher();
  SocketCipher(const SocketCipher&) = default;

  // `sealed` must have room for kTagBytes more than `plain` has.
  void seal(std::span<const std::byte> plain, std::byte* sealed);
  // Returns false, with `plain` undefined, if `sealed` is not the next record, or an earlier one was not. `plain` must
  // have room for kTagBytes less.
  [[nodiscard]] bool open(std::span<const std::byte> sealed, std::byte* plain);

 private:
  using Nonce = std::array<unsigned char, 12>;
  Nonce nonce() const;

  Kind kind_;
  Key key_;                            // for ChaCha20-Poly1305
  crypto_aead_aes256gcm_state aes_{};  // for AES-256-GCM: its prepared key
  std::uint64_t records_ = 0;          // sealed, or opened
  bool is_broken_ = false;             // one did not open
};

// A key pair that lives as long as a handshake (X25519).
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
  // Derives the keys of a connection: BLAKE2b, keyed from the run's secret, of the secret that the ephemeral pairs
  // share and of the whole transcript `said`. So they are new each time, unknown to anybody without the run's keys, and
  // cannot be computed from these later; and both ends get them only if they have received the same bytes. Returns
  // false if the other end's key is invalid.
  [[nodiscard]] bool agree(const RunKeys& keys, const SocketCipher::Key& others, std::string_view said,
                           Session& session) const;

 private:
  SocketCipher::Key secret_key_;
  SocketCipher::Key public_key_;
};

}  // namespace syncopate
