// FairIngress: the receiving direction of a link in virtual time, shared fairly among connections. Pure: it is told
// when messages reach the link, and says when they have passed.
//
// Generalised processor sharing again (fair_egress.h), of what comes as a flow: at each moment a connection that has
// something waiting has an equal share of the link, one that has not has as much as reaches the link, and what it
// leaves of its share is the others' (max-min fairness: Bertsekas and Gallager 1992, "Data Networks", section 6.5.2).
//
// The past is settled only as far as messages have been taken (`take`): what is told later counts from its own time on,
// as long as that is not before the last message taken. What is told later still uses what the link had free then.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/transport/link_passage.h"

namespace syncopate {

class FairIngress {
 public:
  // A message of this length, above zero, reaches the link evenly between these times, behind the connection's others.
  void add(LinkConnection connection, LinkPassage passage, Duration length);
  // From the first of these times on the connection's messages reach the link so, and no longer as was said before.
  // What has not reached it by then counts, whatever the sender has meant: there is never more or less than add() said.
  void revise(LinkConnection connection, std::span<const LinkRemainder> remainders);

  // Returns the connections whose first message has passed by `now`, in order of time; one may come several times.
  std::vector<LinkConnection> take(TimePoint now);
  // Returns when the endpoint's next message has passed, as far as is known; TimePoint::max() if none is on its way.
  TimePoint next(int endpoint) const;

  // Forgets an endpoint's messages.
  void leave(int endpoint);

  // The number of intervals that are remembered in which the link was not full.
  static constexpr std::size_t kMostRemembered = 1024;

 private:
  // What reaches the link evenly.
  struct Piece {
    double begin = 0, end = 0;
    double amount = 0;
  };
  struct Flow {
    std::deque<Piece> pieces;  // in order, none of them before time_
    double waiting = 0;        // has reached the link and not passed
    double passed = 0;
    std::deque<double> ends;  // of its messages, by what has passed then
  };
  struct Free {
    double begin = 0, end = 0;
    double rate = 0;  // of the link that nobody used, 0 to 1
  };
  class Course;

  void reach(Flow& flow, Piece piece);
  // Lets a message pass that reached an otherwise empty flow in what was free before time_. Returns how much did.
  double catch_up(const Piece& piece);
  void settle(const Course& course);

  std::map<LinkConnection, Flow> flows_;
  std::deque<Free> free_;  // in order
  double time_ = 0;        // nanoseconds; all before is settled
};

}  // namespace syncopate
