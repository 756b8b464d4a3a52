// Network: when messages that share links arrive. Pure: it is told the time, and says when something happens next. It
// keeps no bytes. Three models, of which a run names the one it used, because in lockstep they differ by tens of
// percent:
//
// - fifo: A link carries one message after the other, in the order in which they come to it. It is the coarsest and the
//   fastest.
// - frames: A message is cut into frames. The sender's link serves its connections in turn, every other link in the
//   order of arrival, and a connection has no more under way than its window, as TCP over Ethernet does while nothing
//   is lost.
// - fluid: Messages flow side by side, each at its fair share of the links that it takes: max-min fairness (Bertsekas,
//   Gallager 1992, "Data Networks", section 6.5.2).
//
// In none of them anything is lost, so that what follows from loss (retransmission, collapse under incast) is not
// shown. Links cut through: a message begins to leave a link when its beginning has come in.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

namespace syncopate::simulation {

// Picoseconds: fine enough that a frame's time needs no rounding that adds up. Lasts for 106 days.
using Tick = std::int64_t;

// One direction of an interface or of a line between switches.
struct Link {
  double bytes_per_second = 0;
  Tick latency = 0;  // from this link to the next one, or to the receiver
};

// The links that a message takes, by their numbers: one to four.
class Path {
 public:
  Path(std::initializer_list<int> links) {
    for (const int link : links) links_[size_++] = link;
  }
  std::size_t size() const { return size_; }
  int operator[](std::size_t hop) const { return links_[hop]; }
  int front() const { return links_.front(); }
  int back() const { return links_[size_ - 1]; }
  const int* begin() const { return links_.data(); }
  const int* end() const { return links_.data() + size_; }

 private:
  std::array<int, 4> links_{};
  std::size_t size_ = 0;
};

enum class NetworkModel { kFifo, kFrames, kFluid };

struct NetworkOptions {
  NetworkModel model = NetworkModel::kFrames;
  std::vector<Link> links;
  std::uint64_t window_bytes = 1 << 20;  // frames only: the most of a connection under way, not yet acknowledged
};

class Network {
 public:
  struct Transfer {
    std::uint64_t id = 0;
    int connection = 0;
    std::uint64_t bytes = 0;
  };
  // Something that has happened to a transfer.
  struct Happening {
    enum class What { kSent, kArrived };  // its last byte has left the sender; has come to the receiver
    Tick time = 0;
    What what = What::kSent;
    std::uint64_t id = 0;
  };

  virtual ~Network() = default;

  // Returns the number of a new connection, whose messages take this path and arrive in the order in which they began.
  virtual int connect(const Path& path) = 0;
  // Times never run back: `now` is at least what the call before was given, and what was due before it has happened.
  virtual void begin(Tick now, const Transfer& transfer) = 0;
  // Returns when this network next changes by itself; none while nothing is under way.
  virtual std::optional<Tick> next() const = 0;
  // Moves on to `now`, which is no later than next(), and appends what has happened to `happened`.
  virtual void advance(Tick now, std::vector<Happening>& happened) = 0;
};

// Returns the most bytes of a frame: what the link carries in an eighth of a millisecond, from 4 KiB to 64 KiB. Linux
// cuts what it hands to a card in this way (Dumazet 2013, "tcp: TSO packets automatic sizing", with a millisecond).
std::uint64_t frame_bytes(const Link& link);

std::unique_ptr<Network> make_network(const NetworkOptions& options);

// Returns how long a message takes to leave over a link that it has to itself, as have those before and behind it; none
// if its connection's window may close. Its way's other links are as fast, and its latency is `way`.
std::optional<Tick> ticks_alone(const NetworkOptions& options, const Link& link, Tick way, std::uint64_t bytes);

}  // namespace syncopate::simulation
