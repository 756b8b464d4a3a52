#include "common/transport/member_keys.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

namespace syncopate {

RunKeys::Pair MemberKeys::pair(const char* end, int rank) const {
  return keys_.pair(fmt::format("data {} {} {}", end, rank, group_));
}

MemberKeys::Proof MemberKeys::proof(int from, int to) const {
  RunKeys::Key key = keys_.derive(fmt::format("data memory {}>{} {}", from, to, group_));
  Proof proof;
  std::copy_n(key.begin(), proof.size(), proof.begin());
  sodium_memzero(key.data(), key.size());
  return proof;
}

}  // namespace syncopate
