#include "experiments/checkpoint/content_hash.h"

#include <sodium.h>

#include <algorithm>

namespace syncopate::experiments {

static_assert(std::tuple_size_v<Digest> == crypto_generichash_BYTES);

struct ContentHash::State {
  crypto_generichash_state of_sodium;
};

std::string digest_text(const Digest& digest) {
  std::string text(2 * digest.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  text.pop_back();
  return text;
}

std::optional<Digest> parse_digest(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  Digest digest;
  if (text.size() != 2 * digest.size() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  sodium_hex2bin(digest.data(), digest.size(), text.data(), text.size(), nullptr, nullptr, nullptr);
  return digest;
}

ContentHash::ContentHash(Digests digests) {
  if (digests == Digests::kNo) return;
  digest_ = std::make_unique<State>();
  crypto_generichash_init(&digest_->of_sodium, nullptr, 0, std::tuple_size_v<Digest>);
}

ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;
ContentHash::~ContentHash() = default;

void ContentHash::add(std::span<const std::byte> bytes) {
  checksum_.add(bytes);
  if (!digest_) return;
  crypto_generichash_update(&digest_->of_sodium, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

ContentSums ContentHash::sums() {
  ContentSums sums{.checksum = checksum_.value()};
  if (!digest_) return sums;
  crypto_generichash_final(&digest_->of_sodium, sums.digest.emplace().data(), std::tuple_size_v<Digest>);
  return sums;
}

ContentSums sums_of(std::string_view bytes, Digests digests) {
  ContentHash hash(digests);
  hash.add(std::as_bytes(std::span(bytes)));
  return hash.sums();
}

}  // namespace syncopate::experiments
