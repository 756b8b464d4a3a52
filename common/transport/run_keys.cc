#include "common/transport/run_keys.h"

#include <zmq.h>

#include <array>

namespace syncopate {
namespace {

constexpr std::size_t kKeyCharacters = 40;
constexpr std::size_t kKeyBytes = 32;

bool make_pair(RunKeys::Pair& pair) {
  std::array<char, kKeyCharacters + 1> public_key{}, secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) return false;
  pair = {public_key.data(), secret_key.data()};
  return true;
}

bool is_key(const std::string& text) {
  std::array<std::uint8_t, kKeyBytes> bytes{};
  return text.size() == kKeyCharacters && zmq_z85_decode(bytes.data(), text.c_str()) != nullptr;
}

}  // namespace

Result<RunKeys> RunKeys::make() {
  RunKeys keys;
  if (make_pair(keys.listener) && make_pair(keys.connector)) return keys;
  return Status(Code::kInternal, "ZeroMQ makes no keys (built without CURVE): several hosts cannot be used");
}

std::string RunKeys::to_text() const {
  return listener.public_key + listener.secret_key + connector.public_key + connector.secret_key;
}

std::array<unsigned char, 32> RunKeys::bytes_of(const std::string& key) {
  std::array<unsigned char, kKeyBytes> bytes{};
  zmq_z85_decode(bytes.data(), key.c_str());
  return bytes;
}

Result<RunKeys> RunKeys::parse(std::string_view text) {
  const auto key = [&](std::size_t index) {
    const std::size_t begin = index * kKeyCharacters;
    return std::string(begin < text.size() ? text.substr(begin, kKeyCharacters) : std::string_view());
  };
  RunKeys keys{.listener = {key(0), key(1)}, .connector = {key(2), key(3)}};
  const bool complete = text.size() == 4 * kKeyCharacters && is_key(keys.listener.public_key) &&
                        is_key(keys.listener.secret_key) && is_key(keys.connector.public_key) &&
                        is_key(keys.connector.secret_key);
  if (!complete) return Status(Code::kDataLoss, "what came are not the keys of a run");
  return keys;
}

}  // namespace syncopate
