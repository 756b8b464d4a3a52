#include "common/transport/run_keys.h"

#include <sodium.h>
#include <zmq.h>

#include <cstring>
#include <new>

namespace syncopate {
namespace {

constexpr std::size_t kSecretBytes = 32;
static_assert(kSecretBytes == crypto_generichash_KEYBYTES);
// Another version of this program derives other keys.
constexpr std::string_view kDomain = "syncopate run 1: ";
constexpr std::string_view kJobDomain = "syncopate secret of jobs 1";
static_assert(kJobDomain.size() >= crypto_generichash_KEYBYTES_MIN);

Status check_curve() {
  if (zmq_has("curve") != 0) return {};
  return Status::internal("this ZeroMQ was built without CURVE, which every run needs; install one with it");
}

const unsigned char* raw(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string z85_of(const RunKeys::Key& key) {
  std::string text(41, '\0');  // of the right length, so that nothing of it is left elsewhere
  zmq_z85_encode(text.data(), key.data(), key.size());
  text.pop_back();
  return text;
}

}  // namespace

RunKeys::Pair::~Pair() { sodium_memzero(secret_key.data(), secret_key.size()); }

RunKeys::RunKeys() {
  if (sodium_init() >= 0) secret_.reset(static_cast<unsigned char*>(sodium_malloc(kSecretBytes)), sodium_free);
  if (!secret_) throw std::bad_alloc();
}

Result<RunKeys> RunKeys::make() {
  SYNCOPATE_RETURN_IF_ERROR(check_curve());
  RunKeys keys;
  randombytes_buf(keys.secret_.get(), kSecretBytes);
  return keys;
}

Result<RunKeys> RunKeys::of_job(const SecretText& secret, std::string_view job) {
  SYNCOPATE_RETURN_IF_ERROR(check_curve());
  RunKeys keys;
  // The secret is a key of another length than that of the hash: its hash is one.
  crypto_generichash(keys.secret_.get(), kSecretBytes, raw(secret.view()), secret.view().size(), raw(kJobDomain),
                     kJobDomain.size());
  Key of_job = keys.derive(job);
  std::memcpy(keys.secret_.get(), of_job.data(), of_job.size());
  sodium_memzero(of_job.data(), of_job.size());
  return keys;
}

RunKeys::Key RunKeys::derive(std::string_view purpose) const {
  Key key;
  crypto_generichash_state hash;
  crypto_generichash_init(&hash, secret_.get(), kSecretBytes, key.size());
  crypto_generichash_update(&hash, raw(kDomain), kDomain.size());
  crypto_generichash_update(&hash, raw(purpose), purpose.size());
  crypto_generichash_final(&hash, key.data(), key.size());
  sodium_memzero(&hash, sizeof(hash));
  return key;
}

RunKeys::Pair RunKeys::pair(std::string_view purpose) const {
  Key secret_half = derive(purpose), public_half{};
  crypto_scalarmult_base(public_half.data(), secret_half.data());
  Pair pair{z85_of(public_half), z85_of(secret_half)};
  sodium_memzero(secret_half.data(), secret_half.size());
  return pair;
}

SecretText RunKeys::to_text() const {
  std::array<char, 2 * kSecretBytes + 1> text{};
  sodium_bin2hex(text.data(), text.size(), secret_.get(), kSecretBytes);
  SecretText secret({text.data(), 2 * kSecretBytes});
  sodium_memzero(text.data(), text.size());
  return secret;
}

Result<RunKeys> RunKeys::parse(std::string_view text) {
  RunKeys keys;
  std::size_t bytes = 0;
  const bool complete =
      text.size() == 2 * kSecretBytes &&
      sodium_hex2bin(keys.secret_.get(), kSecretBytes, text.data(), text.size(), nullptr, &bytes, nullptr) == 0 &&
      bytes == kSecretBytes && keys.to_text().view() == text;
  if (!complete) return Status::data_loss("what came is not the secret of a run");
  return keys;
}

}  // namespace syncopate
