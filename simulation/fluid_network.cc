#include "simulation/fluid_network.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace syncopate::simulation {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

class FluidNetwork final : public Network {
 public:
  explicit FluidNetwork(const NetworkOptions& options) : links_(options.links) {}

  int connect(const Path& path) override {
    Connection connection{.path = path};
    for (const int link : path) connection.latency += links_[static_cast<std::size_t>(link)].latency;
    connections_.push_back(std::move(connection));
    return static_cast<int>(connections_.size()) - 1;
  }

  void begin(Tick now, const Transfer& transfer) override {
    drain_until(now);
    Connection& connection = connections_[static_cast<std::size_t>(transfer.connection)];
    connection.messages.push_back({transfer.id, static_cast<double>(transfer.bytes)});
    if (connection.messages.size() == 1) changed_ = true;
    share();
  }

  std::optional<Tick> next() const override {
    Tick next = next_end_;
    if (!arrivals_.empty()) next = std::min(next, arrivals_.top().time);
    return next == kNever ? std::nullopt : std::optional(next);
  }

  void advance(Tick now, std::vector<Happening>& happened) override {
    drain_until(now);
    if (now >= next_end_) {
      for (Connection& connection : connections_) {
        if (connection.messages.empty() || ticks_for(connection) > 0) continue;
        const std::uint64_t id = connection.messages.front().id;
        connection.messages.pop_front();
        changed_ = true;
        happened.push_back({now, Happening::What::kSent, id});
        arrivals_.push({now + connection.latency, ++number_, id});
      }
      share();
    }
    for (; !arrivals_.empty() && arrivals_.top().time <= now; arrivals_.pop()) {
      happened.push_back({arrivals_.top().time, Happening::What::kArrived, arrivals_.top().id});
    }
  }

 private:
  static constexpr Tick kNever = std::numeric_limits<Tick>::max();

  struct MessageState {
    std::uint64_t id = 0;
    double bytes_left = 0;
  };
  struct Connection {
    Path path;
    Tick latency = 0;
    std::deque<MessageState> messages;  // the first one flows
    double rate = 0;                    // bytes a picosecond
    bool is_settled = false;            // while shares are worked out
  };
  struct Arrival {
    Tick time;
    std::uint64_t number, id;
    bool operator<(const Arrival& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  // Rounded to whole ticks, so that what is left of a message at its end is nothing.
  static Tick ticks_for(const Connection& connection) {
    return std::llround(connection.messages.front().bytes_left / connection.rate);
  }

  void drain_until(Tick now) {
    const auto passed = static_cast<double>(now - now_);
    now_ = now;
    if (passed == 0) return;
    for (Connection& connection : connections_) {
      if (connection.messages.empty()) continue;
      double& left = connection.messages.front().bytes_left;
      left = std::max(0.0, left - connection.rate * passed);
    }
  }

  // Gives every flow its rate: the tightest link is shared evenly by its flows, which are then settled; and so on with
  // what they leave of the other links.
  void share() {
    if (changed_) {
      changed_ = false;
      struct Share {
        double left = 0;
        int flows = 0;
      };
      std::vector<Share> shares(links_.size());
      for (std::size_t i = 0; i < links_.size(); ++i) shares[i].left = links_[i].bytes_per_second * 1e-12;
      std::vector<Connection*> flows;
      for (Connection& connection : connections_) {
        if (connection.messages.empty()) continue;
        connection.is_settled = false;
        flows.push_back(&connection);
        for (const int link : connection.path) ++shares[static_cast<std::size_t>(link)].flows;
      }
      for (std::size_t settled = 0; settled < flows.size();) {
        double rate = kInfinite;
        for (const Share& each : shares) {
          if (each.flows > 0) rate = std::min(rate, each.left / each.flows);
        }
        std::vector<bool> is_tight(shares.size());
        for (std::size_t i = 0; i < shares.size(); ++i) {
          is_tight[i] = shares[i].flows > 0 && shares[i].left / shares[i].flows <= rate * (1 + 1e-12);
        }
        for (Connection* flow : flows) {
          if (flow->is_settled) continue;
          const auto tight = [&](int link) { return is_tight[static_cast<std::size_t>(link)]; };
          if (std::ranges::none_of(flow->path, tight)) continue;
          flow->rate = rate;
          flow->is_settled = true;
          ++settled;
          for (const int link : flow->path) {
            Share& each = shares[static_cast<std::size_t>(link)];
            each.left = std::max(0.0, each.left - rate);
            --each.flows;
          }
        }
      }
    }
    next_end_ = kNever;
    for (const Connection& connection : connections_) {
      if (!connection.messages.empty()) next_end_ = std::min(next_end_, now_ + ticks_for(connection));
    }
  }

  const std::vector<Link> links_;
  std::vector<Connection> connections_;
  std::priority_queue<Arrival> arrivals_;
  std::uint64_t number_ = 0;
  Tick now_ = 0;
  Tick next_end_ = kNever;
  bool changed_ = false;
};

}  // namespace

std::unique_ptr<Network> make_fluid_network(const NetworkOptions& options) {
  return std::make_unique<FluidNetwork>(options);
}

}  // namespace syncopate::simulation
