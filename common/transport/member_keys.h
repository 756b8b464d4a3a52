// MemberKeys: the keys by which the members of one group authenticate each other. All are derived from the run's
// secret, so that each member knows what each other one must show, and nobody else does.
#pragma once

#include <array>
#include <string>

#include "common/transport/run_keys.h"

namespace syncopate {

class MemberKeys {
 public:
  using Proof = std::array<unsigned char, 16>;

  MemberKeys(const RunKeys& keys, std::string group) : keys_(keys), group_(std::move(group)) {}

  // CURVE: the keys of a member that listens, and of one that connects.
  RunKeys::Pair listener(int rank) const { return pair("listener", rank); }
  RunKeys::Pair connector(int rank) const { return pair("connector", rank); }
  // Shared memory: what one member shows another. It opens nothing else.
  Proof proof(int from, int to) const;

 private:
  RunKeys::Pair pair(const char* end, int rank) const;

  RunKeys keys_;
  std::string group_;
};

}  // namespace syncopate
