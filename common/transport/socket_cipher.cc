#include "common/transport/socket_cipher.h"

#include <cstring>

namespace syncopate {
namespace {

constexpr std::string_view kPurpose = "syncopate sockets 1";

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
const unsigned char* raw(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

SocketCipher::Kind SocketCipher::best() {
  return crypto_aead_aes256gcm_is_available() != 0 ? Kind::kAes256Gcm : Kind::kChaCha20Poly1305;
}

SocketCipher::SocketCipher(Kind kind, const Key& key) : kind_(kind), key_(key) {
  if (kind == Kind::kAes256Gcm) crypto_aead_aes256gcm_beforenm(&aes_, key.data());
}

SocketCipher::~SocketCipher() {
  sodium_memzero(key_.data(), key_.size());
  sodium_memzero(&aes_, sizeof(aes_));
}

SocketCipher::Nonce SocketCipher::nonce() const {
  Nonce nonce{};
  std::memcpy(nonce.data(), &records_, sizeof(records_));
  return nonce;
}

void SocketCipher::seal(std::span<const std::byte> plain, std::byte* sealed) {
  const Nonce of_record = nonce();
  ++records_;
  if (kind_ == Kind::kAes256Gcm) {
    crypto_aead_aes256gcm_encrypt_afternm(raw(sealed), nullptr, raw(plain.data()), plain.size(), nullptr, 0, nullptr,
                                          of_record.data(), &aes_);
  } else {
    crypto_aead_chacha20poly1305_ietf_encrypt(raw(sealed), nullptr, raw(plain.data()), plain.size(), nullptr, 0,
                                              nullptr, of_record.data(), key_.data());
  }
}

bool SocketCipher::open(std::span<const std::byte> sealed, std::byte* plain) {
  if (is_broken_) return false;
  const Nonce of_record = nonce();
  const int outcome =
      kind_ == Kind::kAes256Gcm
          ? crypto_aead_aes256gcm_decrypt_afternm(raw(plain), nullptr, nullptr, raw(sealed.data()), sealed.size(),
                                                  nullptr, 0, of_record.data(), &aes_)
          : crypto_aead_chacha20poly1305_ietf_decrypt(raw(plain), nullptr, nullptr, raw(sealed.data()), sealed.size(),
                                                      nullptr, 0, of_record.data(), key_.data());
  is_broken_ = outcome != 0;
  if (!is_broken_) ++records_;
  return !is_broken_;
}

EphemeralPair::EphemeralPair() { crypto_kx_keypair(public_key_.data(), secret_key_.data()); }

EphemeralPair::~EphemeralPair() { sodium_memzero(secret_key_.data(), secret_key_.size()); }

bool EphemeralPair::agree(const RunKeys& keys, const SocketCipher::Key& others, std::string_view said,
                          Session& session) const {
  static_assert(sizeof(Session) == crypto_generichash_BYTES_MAX);
  SocketCipher::Key of_run = keys.derive("sockets"), fresh{};
  const bool agreed = crypto_scalarmult(fresh.data(), secret_key_.data(), others.data()) == 0;
  crypto_generichash_state hash;
  crypto_generichash_init(&hash, of_run.data(), of_run.size(), sizeof(session));
  crypto_generichash_update(&hash, raw(kPurpose), kPurpose.size());
  crypto_generichash_update(&hash, fresh.data(), fresh.size());
  crypto_generichash_update(&hash, raw(said), said.size());
  crypto_generichash_final(&hash, reinterpret_cast<unsigned char*>(&session), sizeof(session));
  sodium_memzero(of_run.data(), of_run.size());
  sodium_memzero(fresh.data(), fresh.size());
  return agreed;
}

}  // namespace syncopate
