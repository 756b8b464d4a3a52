#include "experiments/checkpoint/checkpoint_key.h"

#include <sodium.h>

#include "common/transport/secret_file.h"

namespace syncopate::experiments {
namespace {

// Derived keys are bound to this purpose.
constexpr std::string_view kPurpose = "syncopate checkpoint manifest 1";
static_assert(kPurpose.size() >= crypto_generichash_KEYBYTES_MIN);

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

void CheckpointKey::Wipe::operator()(const Bytes* bytes) const { sodium_free(const_cast<Bytes*>(bytes)); }

Result<CheckpointKey> CheckpointKey::read(const std::string& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(const SecretText secret, read_secret_file(path));
  return of_bytes(secret.view());
}

Result<CheckpointKey> CheckpointKey::of_bytes(std::string_view secret) {
  SYNCOPATE_RETURN_IF_ERROR(check_secret_size(secret.size()));
  if (sodium_init() < 0) return Status::internal("libsodium cannot be used");
  auto* const bytes = static_cast<Bytes*>(sodium_malloc(sizeof(Bytes)));
  if (bytes == nullptr) return Status::resource_exhausted("no memory for a key");
  crypto_generichash(bytes->data(), bytes->size(), bytes_of(secret), secret.size(), bytes_of(kPurpose),
                     kPurpose.size());
  CheckpointKey key;
  key.key_ = std::shared_ptr<const Bytes>(bytes, Wipe());
  return key;
}

Digest CheckpointKey::mac_of(std::string_view text) const {
  Digest mac;
  crypto_generichash(mac.data(), mac.size(), bytes_of(text), text.size(), key_->data(), key_->size());
  return mac;
}

bool CheckpointKey::is_mac_of(std::string_view text, const Digest& mac) const {
  const Digest right = mac_of(text);
  return sodium_memcmp(right.data(), mac.data(), mac.size()) == 0;
}

}  // namespace syncopate::experiments
