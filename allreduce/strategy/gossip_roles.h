// Who averages with whom, and how a worker knows when all have come to an end, under asynchronous gossip: AD-PSGD
// (Lian, Zhang, Zhang and Liu 2018, "Asynchronous decentralized parallel stochastic gradient descent", ICML,
// algorithm 1). Pure: numbers in, decisions out.
//
// The workers are a bipartite graph, so that nobody who waits for an answer is waited for (the paper's remedy
// against deadlocks): active ranks ask for an average, passive ones answer. Ours is the complete one of even and odd
// ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"

namespace syncopate::allreduce {

// Even ranks are active. A rank alone is active, too, and meets nobody.
inline bool is_active(int rank) { return rank % 2 == 0; }
inline int passive_ranks(int size) { return size / 2; }

// Whom active rank `rank` of `size` asks for its meeting `meeting`, from 0: a passive one, each as likely as every
// other, or itself where there is none.
int gossip_partner(std::uint64_t seed, int rank, std::int64_t meeting, int size);

// The header of a message between two of them, as its bytes lie in memory: all ranks are the same program on the same
// kind of machine.
struct GossipHeader {
  enum Kind : std::uint32_t {
    kOffer,  // an active rank's weights
    kMean,   // a passive rank's answer: the mean of these and its own
    kEnd     // nothing: the sender asks no more, and if it is passive, trains no more
  };

  std::uint64_t meeting = 0;  // its number among those of the two, from 1; 0 in kEnd
  Kind kind = kOffer;
  std::uint32_t reserved = 0;
  std::uint64_t elements = 0;  // of the payload

  bool operator==(const GossipHeader&) const = default;
};
static_assert(sizeof(GossipHeader) == 24);

// What one rank has to expect from the others. It is told of all that comes, and says what is to be done with it.
class GossipLedger {
 public:
  enum class Due {
    kAnswer,  // an offer: to be averaged with, and answered with answer_to()
    kTake,    // the mean that this rank has asked for
    kNoted,   // an end
    kDrop     // it has come before
  };

  // Weights have `elements` elements.
  GossipLedger(int rank, int size, std::size_t elements);

  // Of an active rank that waits for no answer: the header of its next offer to the passive rank `partner`.
  GossipHeader offer_to(int partner);
  // Of the offer from `partner` that was taken last.
  GossipHeader answer_to(int partner) const;
  // Of what each rank tells all others in the end.
  static GossipHeader end() { return {.kind = GossipHeader::kEnd}; }

  // A message from rank `from`. Data loss where it cannot be: of another size, out of turn, behind an end, or not what
  // that rank's role lets it say.
  Result<Due> on_message(int from, const GossipHeader& header, std::size_t payload_bytes);

  // Whether so many messages are due no more: the ends of all other active ranks, and of all other ranks.
  bool all_active_have_ended() const;
  bool all_have_ended() const;

 private:
  struct Peer {
    std::uint64_t meetings = 0;  // offered, on either side
    std::uint64_t means = 0;     // taken
    bool has_ended = false;
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }

  const int rank_;
  const std::size_t elements_;
  std::vector<Peer> peers_;  // by rank
};

}  // namespace syncopate::allreduce
