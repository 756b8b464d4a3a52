// MembersTransport: the endpoint of a group of which not all members are present. Ranks are those of the whole group,
// so that its user need not know who is missing; the inner transport connects those that are present.
#pragma once

#include <memory>
#include <vector>

#include "common/transport/forwarding_transport.h"

namespace syncopate {

class MembersTransport final : public ForwardingTransport {
 public:
  // `inner` connects the members `there` of a group of `size`: ranks of the group, ascending, one for each rank of the
  // inner transport, in its order.
  MembersTransport(std::unique_ptr<Transport> inner, std::vector<int> there, int size);

  int rank() const override { return there_[static_cast<std::size_t>(wrapped().rank())]; }
  int size() const override { return static_cast<int>(inner_rank_.size()); }
  // Fails with peer lost for a member that is not present.
  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override;
  Result<Message> receive(TimePoint deadline) override { return renumbered(wrapped().receive(deadline)); }
  Result<Message> poll(TimePoint until) override { return renumbered(wrapped().poll(until)); }

 private:
  Result<Message> renumbered(Result<Message> message) const;

  std::vector<int> there_;       // by the inner transport's rank
  std::vector<int> inner_rank_;  // by the group's rank; -1: not present
};

}  // namespace syncopate
