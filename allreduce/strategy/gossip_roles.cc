#include "allreduce/strategy/gossip_roles.h"

#include <fmt/format.h>

#include "common/random.h"

namespace syncopate::allreduce {
namespace {

constexpr std::uint64_t kRolesStream = 0x616470736764ull << 16;  // apart from those of weights, data and pairs

std::string describe(const GossipHeader& header) {
  if (header.kind == GossipHeader::kEnd) return "its end";
  const char* what = header.kind == GossipHeader::kOffer ? "offer" : "mean";
  return fmt::format("{} {} of {} elements", what, header.meeting, header.elements);
}

}  // namespace

int gossip_partner(std::uint64_t seed, int rank, std::int64_t meeting, int size) {
  const int passive = passive_ranks(size);
  if (passive == 0) return rank;
  // Ranks are few beside 2^40, and so are the seeds that people give.
  Random random(seed + (static_cast<std::uint64_t>(rank) << 40), kRolesStream + static_cast<std::uint64_t>(meeting));
  return 2 * static_cast<int>(random.below(static_cast<std::uint64_t>(passive))) + 1;
}

GossipLedger::GossipLedger(int rank, int size, std::size_t elements)
    : rank_(rank), elements_(elements), peers_(static_cast<std::size_t>(size)) {
  peer(rank).has_ended = true;  // nobody waits for its own
}

GossipHeader GossipLedger::offer_to(int partner) {
  return {.meeting = ++peer(partner).meetings, .kind = GossipHeader::kOffer, .elements = elements_};
}

GossipHeader GossipLedger::answer_to(int partner) const {
  return {.meeting = peer(partner).meetings, .kind = GossipHeader::kMean, .elements = elements_};
}

Result<GossipLedger::Due> GossipLedger::on_message(int from, const GossipHeader& header, std::size_t payload_bytes) {
  const auto wrong = [&](const std::string& why) {
    return Status::data_loss(
        fmt::format("rank {} sent {} in {} bytes, {}", from, describe(header), payload_bytes, why));
  };
  if (from < 0 || from >= static_cast<int>(peers_.size()) || from == rank_) return wrong("and is no other rank");
  Peer& other = peer(from);
  if (header.kind == GossipHeader::kEnd) {
    if (header != end() || payload_bytes != 0) return wrong("where an end carries nothing");
    if (other.has_ended) return Due::kDrop;
    other.has_ended = true;
    return Due::kNoted;
  }
  const bool is_offer = header.kind == GossipHeader::kOffer;
  if (!is_offer && header.kind != GossipHeader::kMean) return wrong("which is nothing that ranks say");
  if (is_active(from) != is_offer || is_active(rank_) == is_offer)
    return wrong("where active ranks ask and passive ones answer");
  if (header.elements != elements_ || payload_bytes != elements_ * sizeof(float)) {
    return wrong(fmt::format("where the weights have {} elements", elements_));
  }
  std::uint64_t& newest = is_offer ? other.meetings : other.means;
  if (header.meeting <= newest) return Due::kDrop;
  if (other.has_ended) return wrong("behind its end");
  if (is_offer ? header.meeting != newest + 1 : header.meeting != other.meetings) {
    return wrong(fmt::format("where {} was due", is_offer ? newest + 1 : other.meetings));
  }
  newest = header.meeting;
  return is_offer ? Due::kAnswer : Due::kTake;
}

bool GossipLedger::all_active_have_ended() const {
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    if (is_active(rank) && !peer(rank).has_ended) return false;
  }
  return true;
}

bool GossipLedger::all_have_ended() const {
  for (const Peer& each : peers_) {
    if (!each.has_ended) return false;
  }
  return true;
}

}  // namespace syncopate::allreduce
