// FairEgress: the sending direction of a link in virtual time, shared fairly among connections. Pure: times and lengths
// in, times out.
//
// Generalised processor sharing (Parekh and Gallager 1993, "A generalized processor sharing approach to flow control in
// integrated services networks", IEEE/ACM Transactions on Networking 1:3): of n connections that have something to send
// each has 1/n of the link, byte by byte. Packets in turn come to the same, to within one packet of each connection.
//
// The virtual time V runs at 1/n of time (section III). A message is through when V has come to a value that is known
// when it is sent, and never changes. What changes is when V comes there, and only at sends: then messages of other
// connections end later than was said. Nothing ends earlier than was said.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "common/transport/link_passage.h"

namespace syncopate {

class FairEgress {
 public:
  // Accepts a message of this length, above zero, at `now`, and moves on to there (times that run back count as the
  // latest before). Returns when its first and last byte leave if nothing more is sent. That counts as said, and so
  // does that it leaves evenly between them. Where that is wrong by much, the connection is outdated at once.
  LinkPassage send(TimePoint now, LinkConnection connection, Duration length);

  // Returns the connections of an endpoint whose messages leave later than was said by more than kNoticed.
  std::vector<LinkConnection> outdated(int endpoint) const;
  // Returns how the connection's messages will leave from now on: two remainders or more, at most `most`; more are
  // replaced by the even flow from the last but one to the end. That counts as said. Empty if nothing is under way.
  std::vector<LinkRemainder> say(LinkConnection connection, std::size_t most);
  // What was last said of the connection did not reach its peer.
  void unsay(LinkConnection connection);

  // Returns when the first of the endpoint's messages ends that ends after `after`; TimePoint::max() if none does.
  TimePoint next_end(int endpoint, TimePoint after) const;

  // Moves on to `now`.
  void advance(TimePoint now);
  // Forgets an endpoint's messages.
  void leave(int endpoint);

  // Differences that loopback's own latency hides.
  static constexpr Duration kNoticed = std::chrono::microseconds(2);

 private:
  struct Flow {
    LinkConnection connection;
    std::deque<double> ends;  // of its messages, by V
    TimePoint said;           // when the last one ends
    bool is_outdated = false;
  };

  std::vector<Flow>::iterator find(LinkConnection connection);
  bool is_outdated(const Flow& flow) const {
    return flow.is_outdated || time_of(flow.ends.back()) > flow.said + kNoticed;
  }
  // Returns whether a message leaves unevenly, by much, between these values of V: others end on the way.
  bool leaves_unevenly(double begin, double end) const;
  // Returns when V comes to this value, which lies ahead and is no later than the end of some flow.
  TimePoint time_of(double value) const;

  std::vector<Flow> flows_;  // that have something to send, by the ends of their last messages
  double time_ = 0;          // nanoseconds
  double virtual_time_ = 0;  // begins again when nothing is left
};

}  // namespace syncopate
