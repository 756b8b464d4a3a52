#include "common/transport/member_keys.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

namespace syncopate {

RunKeys::Pair MemberKeys::listener(int rank) const {
  return keys_.pair(fmt::format("data listener {} {}", rank, group_));
}

RunKeys::Pair MemberKeys::connector(int rank, int connection) const {
  return keys_.pair(fmt::format("data connector {}/{} {}", rank, connection, group_));
}

MemberKeys::Proof MemberKeys::proof(int from, int to) const {
  RunKeys::Key key = keys_.derive(fmt::format("data memory {}>{} {}", from, to, group_));
  Proof proof;
  std::copy_n(key.begin(), proof.size(), proof.begin());
  sodium_memzero(key.data(), key.size());
  return proof;
}

}  // namespace syncopate
