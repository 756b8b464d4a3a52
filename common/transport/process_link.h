// ProcessLink: the emulated network link of a process, shared by all of its endpoints (ShapedTransport). It guards the
// two directions, which are pure, and knows which messages of which endpoint have come through. Any thread.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "common/transport/fair_egress.h"
#include "common/transport/fair_ingress.h"
#include "common/transport/link_shape.h"

namespace syncopate {

// All members of a group have links of one shape. At rate 0 a link delays messages, and carries as many as come.
class ProcessLink {
 public:
  explicit ProcessLink(const LinkShape& shape) : shape_(shape) {}

  // Returns the number of a new endpoint.
  int enter();
  void leave(int endpoint);

  // Accepts a message of this size at `now`. Returns when its first and last byte leave, as far as is known.
  LinkPassage send(TimePoint now, LinkConnection connection, std::size_t bytes);

  // What the peer of a connection is to be told: its messages leave later than it was told with them.
  struct Revision {
    int peer = 0;
    std::vector<LinkRemainder> remainders;  // at most `most`
  };
  // Returns all that is to be told by an endpoint now. It counts as told.
  std::vector<Revision> revisions(TimePoint now, int endpoint, std::size_t most);
  // A peer could not be told.
  void untold(LinkConnection connection);
  // Returns when the endpoint must look for revisions again, because other endpoints may have sent meanwhile: when an
  // eighth of the time to the end of its next message is left. TimePoint::max() if it is alone or has sent nothing.
  TimePoint next_look(TimePoint now, int endpoint);

  // A message of this size is on its way, which leaves its sender so.
  void receive(LinkConnection connection, LinkPassage leaves, std::size_t bytes);
  // What is on its way leaves its sender so, and no longer as was said before.
  void revise(LinkConnection connection, std::vector<LinkRemainder> leaves);
  // Returns the peers whose first message has arrived at the endpoint by `now`, in order; one may be there several
  // times.
  std::vector<int> arrivals(TimePoint now, int endpoint);
  // Returns when the endpoint's next message arrives, as far as is known; TimePoint::max() if none is on its way.
  TimePoint next_arrival(int endpoint);

 private:
  // A message that ends sooner than this is not looked at again.
  static constexpr Duration kNotice = std::chrono::microseconds(100);

  Duration length(std::size_t bytes) const;

  const LinkShape shape_;
  std::mutex mutex_;
  // All guarded by mutex_.
  FairEgress out_;
  FairIngress in_;
  int entered_ = 0;
  std::map<int, std::vector<int>> arrived_;  // by endpoint: what it has not asked for
};

}  // namespace syncopate
