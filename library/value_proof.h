// Proofs of what goes through a place that others can write, such as a store of torch.distributed's: each value has one
// of who knows the job's secret, for where it stands. A value without it is not believed.
#pragma once

#include <optional>
#include <string>

#include "common/rendezvous.h"
#include "common/transport/run_keys.h"

namespace syncopate::library {

// Returns `value` with its proof, a text of the same lines, to stand at `place`.
std::string with_proof(const RunKeys& keys, const std::string& place, const std::string& value);
// Returns the value of what with_proof() has returned for `place`; nothing for any other text.
std::optional<std::string> proven(const RunKeys& keys, const std::string& place, const std::string& text);

// Where a member's value stands in a rendezvous.
std::string place_in(const std::string& group, int rank, int size);

// What is said of a value without a proof: `whose`, as in "rank 1's value for main".
Status forged(const std::string& whose);

// Another rendezvous, through which values go with their proofs.
class ProvenRendezvous final : public Rendezvous {
 public:
  // `inner` must outlive it.
  ProvenRendezvous(Rendezvous& inner, RunKeys keys) : inner_(inner), keys_(std::move(keys)) {}

  // Fails as `inner` does, and with data loss, naming it, if a value has no proof.
  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override;
  bool is_off() const override { return inner_.is_off(); }

 private:
  Rendezvous& inner_;
  const RunKeys keys_;
};

}  // namespace syncopate::library
