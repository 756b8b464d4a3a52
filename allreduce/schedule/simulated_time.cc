#include "allreduce/schedule/simulated_time.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace syncopate::allreduce {
namespace {

// Ranks that go through their schedules. Next is always the one that can move first.
class TimedRanks {
 public:
  // Ranks of a host share its link to others; `host_of` is empty if none do.
  TimedRanks(const std::vector<Schedule>& schedules, const std::function<LinkModel(int, int)>& link,
             std::vector<std::size_t> host_of = {})
      : schedules_(schedules),
        link_(link),
        ranks_(schedules.size()),
        host_of_(std::move(host_of)),
        hosts_(host_of_.empty() ? 0 : 1 + std::ranges::max(host_of_)) {}

  double run() {
    while (true) {
      std::optional<std::size_t> first;
      double when = std::numeric_limits<double>::infinity();
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const std::optional<double> time = next_time(rank);
        if (!time || *time >= when) continue;
        first = rank;
        when = *time;
      }
      if (!first) break;
      move(*first);
    }
    double end = 0;
    for (const Rank& rank : ranks_) end = std::max(end, rank.now);
    return end;
  }

 private:
  struct Rank {
    std::size_t step = 0;
    bool sent = false;          // this step's part
    double now = 0;             // when it has carried out all up to here
    double sends_until = 0;     // its link out is busy
    double receives_until = 0;  // its link in is busy
  };
  struct Host {
    double sends_until = 0, receives_until = 0;  // its link to others is busy
  };

  std::deque<double>& arrivals(std::size_t from, std::size_t to) { return arrivals_[{from, to}]; }
  static double bytes_of(const Range& range) { return static_cast<double>(range.size() * sizeof(float)); }

  bool is_to_send(std::size_t rank) const {
    const ScheduleStep& step = schedules_[rank][ranks_[rank].step];
    return step.send.has_value() && !ranks_[rank].sent;
  }

  // When the rank's next part is put on the link or taken from it; nothing if it has come to its end, or what it waits
  // for is not yet on its way.
  std::optional<double> next_time(std::size_t rank) {
    const Rank& state = ranks_[rank];
    if (state.step == schedules_[rank].size()) return std::nullopt;
    const ScheduleStep& step = schedules_[rank][state.step];
    if (is_to_send(rank)) return std::max(state.now, state.sends_until);
    if (!step.receive) return state.now;
    const std::deque<double>& due = arrivals(static_cast<std::size_t>(step.receive->peer), rank);
    return due.empty() ? std::nullopt : std::optional(std::max(state.now, due.front()));
  }

  void move(std::size_t rank) {
    Rank& state = ranks_[rank];
    const ScheduleStep& step = schedules_[rank][state.step];
    if (is_to_send(rank)) {
      send(rank, *step.send);
      state.sent = true;
      if (step.receive) return;
    } else {
      receive(rank, *step.receive);
    }
    ++state.step;
    state.sent = false;
  }

  void send(std::size_t rank, const SendPart& part) {
    const auto peer = static_cast<std::size_t>(part.peer);
    Rank& state = ranks_[rank];
    if (peer == rank) {
      arrivals(rank, rank).push_back(state.now);
      return;
    }
    const LinkModel link = link_(static_cast<int>(rank), part.peer);
    const double occupied = link.seconds_per_byte * bytes_of(part.range), taken = link.latency + occupied;
    double begin = std::max(state.now, state.sends_until);
    double arrived_at_host = 0;
    if (!host_of_.empty() && host_of_[rank] != host_of_[peer]) {
      Host& from = hosts_[host_of_[rank]];
      Host& to = hosts_[host_of_[peer]];
      begin = std::max(begin, from.sends_until);
      from.sends_until = begin + occupied;
      to.receives_until = std::max(begin, to.receives_until) + occupied;
      arrived_at_host = to.receives_until + link.latency;
    }
    state.sends_until = begin + taken;
    double& receives_until = ranks_[peer].receives_until;
    receives_until = std::max(std::max(begin, receives_until) + taken, arrived_at_host);
    arrivals(rank, peer).push_back(receives_until);
  }

  void receive(std::size_t rank, const ReceivePart& part) {
    const auto peer = static_cast<std::size_t>(part.peer);
    Rank& state = ranks_[rank];
    state.now = std::max(state.now, arrivals(peer, rank).front());
    arrivals(peer, rank).pop_front();
    if (part.then == ReceivePart::Then::kCopy) return;
    state.now += link_(part.peer, static_cast<int>(rank)).reduce_seconds_per_byte * bytes_of(part.range);
  }

  const std::vector<Schedule>& schedules_;
  const std::function<LinkModel(int, int)>& link_;
  std::vector<Rank> ranks_;
  const std::vector<std::size_t> host_of_;  // by rank
  std::vector<Host> hosts_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<double>> arrivals_;  // by sender and receiver
};

}  // namespace

double simulated_seconds(const std::vector<Schedule>& schedules,
                         const std::function<LinkModel(int from, int to)>& link) {
  return TimedRanks(schedules, link).run();
}

double simulated_seconds(const std::vector<Schedule>& schedules, const RanksByHost& hosts, const GroupLinks& links) {
  std::vector<std::size_t> host_of(schedules.size());
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (const int rank : hosts[host]) host_of[static_cast<std::size_t>(rank)] = host;
  }
  const auto host = [&](int rank) { return host_of[static_cast<std::size_t>(rank)]; };
  const std::function<LinkModel(int, int)> link = [&](int from, int to) {
    return host(from) == host(to) ? links.inside : links.across;
  };
  return TimedRanks(schedules, link, host_of).run();
}

}  // namespace syncopate::allreduce
