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

  // CURVE: the keys of a member that listens, and of one that connects, for each of its connections to a listener.
  RunKeys::Pair listener(int rank) const;
  RunKeys::Pair connector(int rank, int connection = 0) const;
  // Shared memory: what one member shows another. It opens nothing else.
  Proof proof(int from, int to) const;

 private:
  RunKeys keys_;
  std::string group_;
};

}  // namespace syncopate
