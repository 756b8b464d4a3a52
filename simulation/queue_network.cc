#include "simulation/queue_network.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <queue>

namespace syncopate::simulation {
namespace {

constexpr std::uint64_t kWhole = std::numeric_limits<std::uint64_t>::max();

class QueueNetwork final : public Network {
 public:
  explicit QueueNetwork(const NetworkOptions& options)
      : in_turn_(options.model == NetworkModel::kFrames),
        frame_(in_turn_ ? std::max<std::uint64_t>(options.frame_bytes, 1) : kWhole),
        window_(in_turn_ ? std::max(options.window_bytes, frame_) : kWhole) {
    for (const Link& link : options.links) {
      links_.push_back({.picoseconds_per_byte = 1e12 / link.bytes_per_second, .latency = link.latency});
    }
  }

  void begin(Tick now, const Transfer& transfer) override {
    const std::size_t place = take_place(messages_, free_messages_);
    messages_[place] = {.id = transfer.id, .to_send = transfer.bytes, .to_arrive = transfer.bytes};
    Connection& connection = connection_of(transfer);
    connection.messages.push_back(place);
    // In order of arrival each message has a turn of its own; else each connection that has something to send has one.
    if (!in_turn_ || !connection.in_queue) enqueue(transfer.connection, connection);
    send_next(now, connection.path.front());
  }

  std::optional<Tick> next() const override {
    return events_.empty() ? std::nullopt : std::optional(events_.top().time);
  }

  void advance(Tick now, std::vector<Happening>& happened) override {
    while (!events_.empty() && events_.top().time <= now) {
      const Event event = events_.top();
      events_.pop();
      switch (event.what) {
        case Event::kLinkIsFree:
          links_[event.which].busy = false;
          send_next(event.time, static_cast<int>(event.which));
          break;
        case Event::kSent:
          happened.push_back({event.time, Happening::What::kSent, messages_[event.which].id});
          break;
        case Event::kReachesLink:
          pass(event.time, event.which);
          break;
        case Event::kArrives:
          arrive(event.time, event.which, happened);
          break;
        case Event::kAcknowledged:
          acknowledge(event.time, event.which);
          break;
      }
    }
  }

 private:
  struct LinkState {
    double picoseconds_per_byte = 0;
    Tick latency = 0;
    Tick free_at = 0;       // as a link on the way
    bool busy = false;      // as a sender's link
    std::deque<int> queue;  // as a sender's link: the connections that have something to send, the next one first
  };
  struct Connection {
    std::vector<int> path;
    std::deque<std::size_t> messages;  // that are not yet sent
    std::uint64_t under_way = 0;       // bytes
    bool in_queue = false;
  };
  struct MessageState {
    std::uint64_t id = 0, to_send = 0, to_arrive = 0;
  };
  struct Frame {
    std::size_t message = 0;
    int connection = 0;
    std::uint64_t bytes = 0;
    std::size_t hop = 0;       // the place in its path of the link that it comes to
    Tick end_of_last_hop = 0;  // when its last byte leaves the link before, with that link's latency
  };
  struct Event {
    enum What { kLinkIsFree, kSent, kReachesLink, kArrives, kAcknowledged };
    Tick time;
    std::uint64_t number;
    What what;
    std::size_t which;  // a link, a message, or a frame
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : number > other.number; }
  };

  template <typename T>
  static std::size_t take_place(std::vector<T>& all, std::vector<std::size_t>& free) {
    if (free.empty()) {
      all.emplace_back();
      return all.size() - 1;
    }
    const std::size_t place = free.back();
    free.pop_back();
    return place;
  }

  LinkState& link(int number) { return links_[static_cast<std::size_t>(number)]; }

  Connection& connection_of(const Transfer& transfer) {
    Connection& connection = connections_[transfer.connection];
    if (connection.path.empty()) connection.path = transfer.path;
    return connection;
  }

  void add(Tick time, Event::What what, std::size_t which) { events_.push({time, ++number_, what, which}); }

  static Tick time_for(std::uint64_t bytes, const LinkState& link) {
    return std::llround(static_cast<double>(bytes) * link.picoseconds_per_byte);
  }

  void enqueue(int number, Connection& connection) {
    link(connection.path.front()).queue.push_back(number);
    connection.in_queue = true;
  }

  bool window_is_open(const Connection& connection) const {
    return connection.under_way == 0 || window_ - std::min(window_, connection.under_way) >= frame_;
  }

  // Begins to send the next frame over a sender's link, if it is free and has one.
  void send_next(Tick now, int number) {
    LinkState& over = link(number);
    if (over.busy || over.queue.empty()) return;
    const int from = over.queue.front();
    over.queue.pop_front();
    Connection& connection = connections_[from];
    MessageState& message = messages_[connection.messages.front()];
    const std::uint64_t bytes = std::min(frame_, message.to_send);
    const Tick end = now + time_for(bytes, over);
    const std::size_t place = take_place(frames_, free_frames_);
    frames_[place] = {connection.messages.front(), from, bytes, 1, end + over.latency};
    message.to_send -= bytes;
    connection.under_way += bytes;
    over.busy = true;
    if (message.to_send == 0) {
      add(end, Event::kSent, connection.messages.front());
      connection.messages.pop_front();
    }
    if (connection.path.size() > 1) {
      add(now + over.latency, Event::kReachesLink, place);
    } else {
      add(end + over.latency, Event::kArrives, place);
    }
    add(end, Event::kLinkIsFree, static_cast<std::size_t>(number));
    if (!in_turn_) return;
    connection.in_queue = false;
    if (!connection.messages.empty() && window_is_open(connection)) enqueue(from, connection);
  }

  // A frame comes to a link on its way, behind those that are there.
  void pass(Tick now, std::size_t place) {
    Frame& frame = frames_[place];
    const std::vector<int>& path = connections_[frame.connection].path;
    LinkState& over = link(path[frame.hop]);
    const Tick begin = std::max(now, over.free_at);
    over.free_at = std::max(begin + time_for(frame.bytes, over), frame.end_of_last_hop);
    frame.end_of_last_hop = over.free_at + over.latency;
    if (++frame.hop < path.size()) {
      add(begin + over.latency, Event::kReachesLink, place);
    } else {
      add(frame.end_of_last_hop, Event::kArrives, place);
    }
  }

  void arrive(Tick now, std::size_t place, std::vector<Happening>& happened) {
    const Frame& frame = frames_[place];
    MessageState& message = messages_[frame.message];
    message.to_arrive -= frame.bytes;
    if (message.to_arrive == 0) {
      happened.push_back({now, Happening::What::kArrived, message.id});
      free_messages_.push_back(frame.message);
    }
    if (!in_turn_) {
      free_frames_.push_back(place);
      return;
    }
    Tick way_back = 0;
    for (const int number : connections_[frame.connection].path) way_back += link(number).latency;
    add(now + way_back, Event::kAcknowledged, place);
  }

  void acknowledge(Tick now, std::size_t place) {
    const Frame frame = frames_[place];
    free_frames_.push_back(place);
    Connection& connection = connections_[frame.connection];
    connection.under_way -= frame.bytes;
    if (connection.in_queue || connection.messages.empty() || !window_is_open(connection)) return;
    enqueue(frame.connection, connection);
    send_next(now, connection.path.front());
  }

  const bool in_turn_;
  const std::uint64_t frame_, window_;
  std::vector<LinkState> links_;
  std::map<int, Connection> connections_;
  std::vector<MessageState> messages_;
  std::vector<Frame> frames_;
  std::vector<std::size_t> free_messages_, free_frames_;
  std::priority_queue<Event> events_;
  std::uint64_t number_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_queue_network(const NetworkOptions& options) {
  return std::make_unique<QueueNetwork>(options);
}

}  // namespace syncopate::simulation
