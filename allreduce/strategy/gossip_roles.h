// Who averages with whom under asynchronous gossip, and how a worker learns that all have finished: AD-PSGD (Lian,
// Zhang, Zhang and Liu 2018, "Asynchronous decentralized parallel stochastic gradient descent", ICML, algorithm 1).
// Pure: numbers in, decisions out.
//
// The workers form a bipartite graph, so that nobody waits for a worker that itself waits (the paper's remedy against
// deadlocks): active ranks ask for an average, passive ones respond. Ours is the complete bipartite graph of even and
// odd ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"

namespace syncopate::allreduce {

// Even ranks are active. A single rank is active, too, and meets nobody.
inline bool is_active(int rank) { return rank % 2 == 0; }
inline int passive_ranks(int size) { return size / 2; }

// Returns the rank that active rank `rank` of `size` asks in its meeting number `meeting`, from 0: a passive one, all
// equally likely, or `rank` itself if there is none.
int gossip_partner(std::uint64_t seed, int rank, std::int64_t meeting, int size);

// The header of a message between two ranks, sent as it lies in memory: all ranks run the same program on the same kind
// of machine.
struct GossipHeader {
  enum Kind : std::uint32_t {
    kOffer,  // an active rank's weights
    kMean,   // a passive rank's response: the mean of these and its own
    kEnd     // empty: the sender asks no more, and if it is passive, trains no more
  };

  std::uint64_t meeting = 0;  // number among the meetings of the two, from 1; 0 in kEnd
  Kind kind = kOffer;
  std::uint32_t reserved = 0;
  std::uint64_t elements = 0;  // of the payload

  bool operator==(const GossipHeader&) const = default;
};
static_assert(sizeof(GossipHeader) == 24);

// What one rank must expect from the others. It is given every message that arrives, and says what to do with it.
class GossipLedger {
 public:
  enum class Due {
    kAnswer,  // an offer: average with it, and respond with answer_to()
    kTake,    // the mean that this rank has asked for
    kNoted,   // an end; nothing to do
    kDrop     // a repeated message
  };

  // `elements` is the number of weights.
  GossipLedger(int rank, int size, std::size_t elements);

  // Returns the header of the next offer to the passive rank `partner`. Requires an active rank that waits for no
  // response.
  GossipHeader offer_to(int partner);
  // Returns the header of the response to the last offer from `partner`.
  GossipHeader answer_to(int partner) const;
  // Returns the header that each rank sends to all others in the end.
  static GossipHeader end() { return {.kind = GossipHeader::kEnd}; }

  // Takes a message from rank `from`. Fails with data loss if it cannot be valid: of another size, out of turn, after
  // an end, or not allowed by that rank's role.
  Result<Due> on_message(int from, const GossipHeader& header, std::size_t payload_bytes);

  // Whether the ends of all other active ranks, and of all other ranks, have arrived.
  bool all_active_have_ended() const;
  bool all_have_ended() const;

 private:
  struct Peer {
    std::uint64_t meetings = 0;  // offered, on either side
    std::uint64_t means = 0;     // taken from it
    bool has_ended = false;
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }

  const int rank_;
  const std::size_t elements_;
  std::vector<Peer> peers_;  // by rank
};

}  // namespace syncopate::allreduce
