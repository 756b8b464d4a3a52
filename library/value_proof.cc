#include "library/value_proof.h"

#include <fmt/format.h>
#include <sodium.h>

#include <array>

namespace syncopate::library {
namespace {

constexpr char kSeparator = '#';
constexpr std::size_t kDigits = 2 * sizeof(RunKeys::Key);

// Keyed BLAKE2b: a key that is derived for the value itself.
std::string proof_of(const RunKeys& keys, const std::string& place, const std::string& value) {
  const RunKeys::Key key = keys.derive(fmt::format("value {} {}:{}", place.size(), place, value));
  std::array<char, kDigits + 1> text;
  return sodium_bin2hex(text.data(), text.size(), key.data(), key.size());
}

}  // namespace

std::string with_proof(const RunKeys& keys, const std::string& place, const std::string& value) {
  return value + kSeparator + proof_of(keys, place, value);
}

std::optional<std::string> proven(const RunKeys& keys, const std::string& place, const std::string& text) {
  if (text.size() <= kDigits || text[text.size() - kDigits - 1] != kSeparator) return std::nullopt;
  const std::string value = text.substr(0, text.size() - kDigits - 1), proof = proof_of(keys, place, value);
  if (sodium_memcmp(proof.data(), text.data() + text.size() - kDigits, kDigits) != 0) return std::nullopt;
  return value;
}

std::string place_in(const std::string& group, int rank, int size) {
  return fmt::format("{}/{} {}", rank, size, group);
}

Status forged(const std::string& whose) {
  return Status::data_loss(
      fmt::format("{} does not prove to be of this job: another process, most likely an intruder, has written to the "
                  "place where its ranks meet (MASTER_ADDR, MASTER_PORT). It was told nothing. Start the job again at "
                  "another port, and let nobody else reach it",
                  whose));
}

Result<std::vector<std::string>> ProvenRendezvous::exchange(const std::string& group, int rank, int size,
                                                            const std::string& value, TimePoint deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::vector<std::string> values,
      inner_.exchange(group, rank, size, with_proof(keys_, place_in(group, rank, size), value), deadline));
  for (std::size_t member = 0; member < values.size(); ++member) {
    std::optional<std::string> known = proven(keys_, place_in(group, static_cast<int>(member), size), values[member]);
    if (!known) return forged(fmt::format("the value of member {} for '{}'", member, group));
    values[member] = std::move(*known);
  }
  return values;
}

}  // namespace syncopate::library
