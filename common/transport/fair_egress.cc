#include "common/transport/fair_egress.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace syncopate {

LinkPassage FairEgress::send(TimePoint now, LinkConnection connection, Duration length) {
  assert(length > Duration::zero());
  advance(now);
  Flow flow;
  flow.connection = connection;
  LinkPassage passage{time_at(time_), {}};
  double begin = virtual_time_;
  if (const auto known = find(connection); known != flows_.end()) {
    known->is_outdated = is_outdated(*known);
    begin = known->ends.back();
    passage.begin = time_of(begin);
    flow = std::move(*known);
    flows_.erase(known);
  }
  flow.ends.push_back(begin + static_cast<double>(length.count()));
  const double end = flow.ends.back();
  const auto is_before = [](double value, const Flow& other) { return value < other.ends.back(); };
  const auto place = flows_.insert(std::upper_bound(flows_.begin(), flows_.end(), end, is_before), std::move(flow));
  place->said = passage.end = time_of(end);
  if (leaves_unevenly(begin, end)) place->is_outdated = true;
  return passage;
}

std::vector<LinkConnection> FairEgress::outdated(int endpoint) const {
  std::vector<LinkConnection> found;
  for (const Flow& flow : flows_) {
    if (flow.connection.endpoint == endpoint && is_outdated(flow)) found.push_back(flow.connection);
  }
  return found;
}

std::vector<LinkRemainder> FairEgress::say(LinkConnection connection, std::size_t most) {
  assert(most >= 2);
  const auto flow = find(connection);
  if (flow == flows_.end()) return {};
  const double end = flow->ends.back();
  std::vector<LinkRemainder> remainders;
  const auto add = [&](double value) {
    const auto left = static_cast<Duration::rep>(std::llround(end - value));
    remainders.push_back({time_of(value), Duration(left)});
  };
  add(virtual_time_);
  // The flow's rate changes where another one ends.
  for (auto other = flows_.begin(); other != flow && remainders.size() + 1 < most; ++other) {
    if (other->ends.back() < end) add(other->ends.back());
  }
  add(end);
  flow->said = remainders.back().time;
  flow->is_outdated = false;
  return remainders;
}

void FairEgress::unsay(LinkConnection connection) {
  if (const auto flow = find(connection); flow != flows_.end()) flow->is_outdated = true;
}

TimePoint FairEgress::next_end(int endpoint, TimePoint after) const {
  TimePoint next = TimePoint::max();
  for (const Flow& flow : flows_) {
    if (flow.connection.endpoint != endpoint) continue;
    const auto is_past = [&](double value) { return time_of(value) <= after; };
    const auto end = std::partition_point(flow.ends.begin(), flow.ends.end(), is_past);
    if (end != flow.ends.end()) next = std::min(next, time_of(*end));
  }
  return next;
}

void FairEgress::advance(TimePoint now) {
  const double until = in_nanoseconds(now);
  while (!flows_.empty() && time_ < until) {
    const auto sharing = static_cast<double>(flows_.size());
    const double next = flows_.front().ends.back();  // the first to have nothing left
    const double needed = (next - virtual_time_) * sharing;
    if (time_ + needed > until) {
      virtual_time_ += (until - time_) / sharing;
      break;
    }
    time_ += needed;
    virtual_time_ = next;
    flows_.erase(flows_.begin());
  }
  time_ = std::max(time_, until);
  std::erase_if(flows_, [&](const Flow& flow) { return flow.ends.back() <= virtual_time_; });
  if (flows_.empty()) virtual_time_ = 0;
  for (Flow& flow : flows_) {
    while (flow.ends.front() <= virtual_time_) flow.ends.pop_front();
  }
}

void FairEgress::leave(int endpoint) {
  std::erase_if(flows_, [&](const Flow& flow) { return flow.connection.endpoint == endpoint; });
}

std::vector<FairEgress::Flow>::iterator FairEgress::find(LinkConnection connection) {
  return std::ranges::find(flows_, connection, &Flow::connection);
}

bool FairEgress::leaves_unevenly(double begin, double end) const {
  constexpr int kMuch = 32;  // of its time, one part of so many
  const TimePoint from = time_of(begin), until = time_of(end);
  const Duration tolerance = std::max(kNoticed, (until - from) / kMuch);
  return std::ranges::any_of(flows_, [&](const Flow& other) {
    const double value = other.ends.back();
    if (value <= begin || value >= end) return false;
    const double evenly = static_cast<double>((until - from).count()) * (value - begin) / (end - begin);
    return time_of(value) - from > Duration(std::llround(evenly)) + tolerance;
  });
}

TimePoint FairEgress::time_of(double value) const {
  double time = time_, from = virtual_time_;
  auto sharing = static_cast<double>(flows_.size());
  for (const Flow& flow : flows_) {
    const double end = flow.ends.back();
    if (value <= end) break;
    time += (end - from) * sharing;
    from = end;
    --sharing;
  }
  return time_at(time + std::max(0.0, value - from) * sharing);
}

}  // namespace syncopate
