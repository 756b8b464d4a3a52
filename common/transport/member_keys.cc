#include "common/transport/member_keys.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

namespace syncopate {

RunKeys::Pair MemberKeys::pair(const char* end, int rank) const {
  return keys_.pair(fmt::format("data {} {} {}", end, rank, group_));
}

std::string MemberKeys::password(int from, int to) const {
  RunKeys::Key key = keys_.derive(fmt::format("data password {}>{} {}", from, to, group_));
  std::array<char, 2 * sizeof(key) + 1> text;
  sodium_bin2hex(text.data(), text.size(), key.data(), key.size());
  sodium_memzero(key.data(), key.size());
  return text.data();
}

MemberKeys::Proof MemberKeys::proof(int from, int to) const {
  RunKeys::Key key = keys_.derive(fmt::format("data memory {}>{} {}", from, to, group_));
  Proof proof;
  std::copy_n(key.begin(), proof.size(), proof.begin());
  sodium_memzero(key.data(), key.size());
  return proof;
}

}  // namespace syncopate
