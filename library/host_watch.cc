#include "library/host_watch.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "common/hash.h"
#include "common/os/readiness.h"
#include "common/text/printable_text.h"
#include "common/transport/socket_links.h"

namespace syncopate::library {
namespace {

// What a line says: that its sender is alive, or "gone PID NAME" of a server that it has started.
constexpr std::string_view kAlive = "alive";
constexpr std::string_view kGone = "gone ";
constexpr std::size_t kLongestMessage = 256;
// Times in the timeout that each says it is alive, and at least every second.
constexpr int kTimesInTimeout = 10;

std::string text_of_loss(const WatchedProcess& process) {
  return fmt::format("{}{} {}", kGone, process.pid, process.name);
}

// The process of which `line`, after kGone, tells; none if it makes no sense.
std::optional<WatchedProcess> parse_loss(std::string_view line, const std::string& host) {
  const std::size_t space = std::min(line.find(' '), line.size());
  WatchedProcess process{.host = host, .is_here = false};
  const auto [end, error] = std::from_chars(line.data(), line.data() + space, process.pid);
  if (error != std::errc() || end != line.data() + space || space + 1 >= line.size()) return std::nullopt;
  process.name = printable(line.substr(space + 1));
  return process;
}

}  // namespace

Result<std::unique_ptr<HostWatch>> HostWatch::start(const TransportOptions& endpoint, Rendezvous& rendezvous,
                                                    const std::vector<WatchedProcess>& ranks, PeerWatch& watch,
                                                    Duration timeout, TimePoint deadline) {
  const std::uint64_t run = hash_of(endpoint.run_id + "/" + endpoint.group);
  SYNCOPATE_ASSIGN_OR_RETURN(SocketLinks links, connect_sockets(endpoint, run, rendezvous, deadline));
  std::unique_ptr<HostWatch> started(new HostWatch(watch, timeout));
  if (!started->wake_.open()) return Status::resource_exhausted("no descriptor is left to watch other hosts with");
  const TimePoint now = started->clock_.now();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (links.streams[rank] && !ranks[rank].is_here) {
      started->peers_.emplace_back(ranks[rank], std::move(links.streams[rank]), now);
    }
  }
  started->subscription_ = watch.subscribe([&each = *started] { eventfd_write(each.wake_.get(), 1); });
  started->thread_ = std::jthread([&each = *started] { each.loop(); });
  return started;
}

HostWatch::HostWatch(PeerWatch& watch, Duration timeout)
    : watch_(watch), timeout_(timeout), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

HostWatch::~HostWatch() {
  if (!thread_.joinable()) return;
  watch_.unsubscribe(subscription_);
  thread_.request_stop();
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void HostWatch::loop() {
  const Duration every = std::min<Duration>(std::chrono::seconds(1), timeout_ / kTimesInTimeout);
  TimePoint next = clock_.now() + every;
  TimePoint last = clock_.now();
  while (!thread_.get_stop_token().stop_requested()) {
    poll_peers(next);
    const TimePoint now = clock_.now();
    // Where this process did not run, it has heard of nobody meanwhile, and that says nothing of them.
    const bool has_stood_still = now - last > every + std::chrono::seconds(1);
    last = now;
    for (Peer& peer : peers_) {
      if (has_stood_still) peer.heard = now;
      if (!peer.is_over && now - peer.heard > timeout_ / 2) lose(peer, false);
    }
    pass_on_losses();
    if (now < next) continue;
    say(kAlive);
    next = now + every;
  }
}

// Returns when something has come, when woken, or at `until`.
void HostWatch::poll_peers(TimePoint until) {
  std::vector<pollfd> items{{wake_.get(), POLLIN, 0}};
  for (const Peer& peer : peers_) items.push_back({peer.is_over ? -1 : peer.stream->descriptor(), POLLIN, 0});
  ready_before(until, items);
  eventfd_t count = 0;
  if (items[0].revents != 0) eventfd_read(wake_.get(), &count);
  std::size_t item = 1;
  for (Peer& peer : peers_) {
    if (items[item++].revents != 0 && !peer.is_over) hear(peer);
  }
}

void HostWatch::hear(Peer& peer) {
  char part[1024];
  while (true) {
    iovec place{part, sizeof(part)};
    const std::optional<std::size_t> count = peer.stream->read({&place, 1});
    if (!count) return lose(peer, true);
    if (*count == 0) return;
    peer.heard = clock_.now();
    peer.begun.append(part, *count);
    for (std::size_t end; (end = peer.begun.find('\n')) != std::string::npos;) {
      hear_line(peer, std::string_view(peer.begun).substr(0, end));
      peer.begun.erase(0, end + 1);
    }
    if (peer.begun.size() > kLongestMessage) return lose(peer, true);
  }
}

void HostWatch::hear_line(Peer& peer, std::string_view line) {
  if (!line.starts_with(kGone)) return;
  if (const auto process = parse_loss(line.substr(kGone.size()), peer.rank.host)) watch_.report({*process});
}

void HostWatch::lose(Peer& peer, bool has_ended) {
  peer.is_over = true;
  watch_.report({peer.rank, has_ended});
}

void HostWatch::say(std::string_view line) {
  for (Peer& peer : peers_) {
    if (peer.is_over) continue;
    // One that takes nothing is told no more than it is behind with.
    if (peer.unsent.size() < kLongestMessage) peer.unsent.append(line).append("\n");
    const iovec part{peer.unsent.data(), peer.unsent.size()};
    const std::optional<std::size_t> count = peer.stream->write({&part, 1});
    if (count) peer.unsent.erase(0, *count);
    if (!count) lose(peer, true);
  }
}

// Ranks are watched by everybody; a server is the child of one, which alone is told of its end.
void HostWatch::pass_on_losses() {
  const std::vector<Loss> losses = watch_.losses();
  for (; passed_on_ < losses.size(); ++passed_on_) {
    const WatchedProcess& process = losses[passed_on_].process;
    if (process.is_here && process.rank < 0) say(text_of_loss(process));
  }
}

}  // namespace syncopate::library
