#include "simulation/queue_network.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>

namespace syncopate::simulation {
namespace {

constexpr std::uint64_t kWhole = std::numeric_limits<std::uint64_t>::max();

class QueueNetwork final : public Network {
 public:
  explicit QueueNetwork(const NetworkOptions& options)
      : in_turn_(options.model == NetworkModel::kFrames), window_(in_turn_ ? options.window_bytes : kWhole) {
    for (const Link& link : options.links) {
      links_.push_back({.picoseconds_per_byte = 1e12 / link.bytes_per_second,
                        .latency = link.latency,
                        .frame = in_turn_ ? frame_bytes(link) : kWhole});
    }
  }

  int connect(const Path& path) override {
    Connection connection{.path = path};
    for (const int over : path) connection.way_back += link(over).latency;
    for (std::size_t hop = 1; hop < path.size(); ++hop) {
      LinkState& over = link(path[hop]);
      const Tick latency = path.size() == 2 ? link(path.front()).latency : kNever;
      over.comes_after = over.comes_after.value_or(latency) == latency ? latency : kNever;
    }
    connections_.push_back(std::move(connection));
    return static_cast<int>(connections_.size()) - 1;
  }

  void begin(Tick now, const Transfer& transfer) override {
    const Place place = take_place(messages_, free_messages_);
    messages_[place] = {.id = transfer.id, .to_send = transfer.bytes, .next = kNone};
    const auto number = static_cast<Place>(transfer.connection);
    Connection& connection = connections_[number];
    (connection.first == kNone ? connection.first : messages_[connection.last].next) = place;
    connection.last = place;
    // In order of arrival each message has a turn of its own; else each connection that has something to send has one.
    if (!in_turn_) {
      enqueue(number);
    } else {
      enqueue_if_it_may_send(now, number);
    }
    send_next(now, connection.path.front());
  }

  std::optional<Tick> next() const override {
    return events_.empty() ? std::nullopt : std::optional(events_.top().time);
  }

  void advance(Tick now, std::vector<Happening>& happened) override {
    while (!events_.empty() && events_.top().time <= now) {
      const Event event = events_.top();
      events_.pop();
      switch (event.what()) {
        case Event::kLinkIsFree:
          links_[event.which].looks_again = false;
          send_next(event.time, static_cast<int>(event.which));
          break;
        case Event::kSent:
          happened.push_back({event.time, Happening::What::kSent, messages_[event.which].id});
          break;
        case Event::kReachesLink:
          pass(event.time, event.which);
          break;
        case Event::kArrives:
          happened.push_back({event.time, Happening::What::kArrived, messages_[event.which].id});
          free_messages_.push_back(event.which);
          break;
        case Event::kMaySend:
          connections_[event.which].looks_again = false;
          enqueue_if_it_may_send(event.time, event.which);
          send_next(event.time, connections_[event.which].path.front());
          break;
      }
    }
  }

 private:
  using Place = std::uint32_t;
  static constexpr Place kNone = std::numeric_limits<Place>::max();
  static constexpr Tick kNever = std::numeric_limits<Tick>::max();

  struct LinkState {
    double picoseconds_per_byte = 0;
    Tick latency = 0;
    std::uint64_t frame = 0;  // the most bytes of one, as a sender's link
    Tick free_at = 0;
    // As a link on the way: what all frames take to it from their senders' links, which they come from directly, so
    // that they come in the order in which they were sent; kNever where they may not. None: it has no connection yet.
    std::optional<Tick> comes_after;
    std::deque<Place> queue;   // as a sender's link: the connections that have something to send, the next first
    bool looks_again = false;  // as a sender's link: an event will, once it is free
  };
  // A frame that is to be acknowledged.
  struct Acknowledgement {
    Tick time = 0;
    std::uint64_t bytes = 0;
  };
  // Those of a connection, the next first. A std::deque takes 576 bytes for none.
  class Acknowledgements {
   public:
    bool empty() const { return first_ == all_.size(); }
    const Acknowledgement& front() const { return all_[first_]; }
    void push(Acknowledgement last) { all_.push_back(last); }
    void pop() {
      if (++first_ < all_.size() / 2 && !empty()) return;
      all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }

   private:
    std::vector<Acknowledgement> all_;
    std::size_t first_ = 0;
  };
  struct Connection {
    Path path;
    Tick way_back = 0;                  // of an acknowledgement
    Place first = kNone, last = kNone;  // messages that are not yet sent
    bool in_queue = false;
    bool looks_again = false;       // an event will
    std::uint64_t under_way = 0;    // bytes of frames that are awaited, and of those still on their way
    Acknowledgements awaited = {};  // frames only
  };
  struct MessageState {
    std::uint64_t id = 0, to_send = 0;
    Place next = kNone;  // of the same connection
  };
  struct Frame {
    Place message = 0;
    Place connection = 0;
    std::uint64_t bytes = 0;
    std::size_t hop = 0;       // the place in its path of the link that it comes to
    Tick end_of_last_hop = 0;  // when its last byte leaves the link before, with that link's latency
    bool is_last = false;      // of its message
  };
  struct Event {
    enum What : std::uint8_t { kLinkIsFree, kSent, kReachesLink, kArrives, kMaySend };
    Tick time;
    std::uint64_t order;  // its number, and what
    Place which;          // a link, a message, a frame, or a connection

    What what() const { return static_cast<What>(order % 8); }
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : order > other.order; }
  };

  template <typename T>
  static Place take_place(std::vector<T>& all, std::vector<Place>& free) {
    if (free.empty()) {
      all.emplace_back();
      return static_cast<Place>(all.size() - 1);
    }
    const Place place = free.back();
    free.pop_back();
    return place;
  }

  LinkState& link(int number) { return links_[static_cast<std::size_t>(number)]; }

  void add(Tick time, Event::What what, std::size_t which) {
    events_.push({time, ++number_ * 8 + what, static_cast<Place>(which)});
  }

  static Tick time_for(std::uint64_t bytes, const LinkState& link) {
    return std::llround(static_cast<double>(bytes) * link.picoseconds_per_byte);
  }

  void enqueue(Place number) {
    link(connections_[number].path.front()).queue.push_back(number);
    connections_[number].in_queue = true;
  }

  bool window_is_open(const Connection& connection) const {
    const std::uint64_t frame = links_[static_cast<std::size_t>(connection.path.front())].frame;
    return connection.under_way == 0 || window_ - std::min(window_, connection.under_way) >= frame;
  }

  // Frames only: a connection has a turn as soon as it has something to send and its window lets it.
  void enqueue_if_it_may_send(Tick now, Place number) {
    Connection& connection = connections_[number];
    if (connection.in_queue || connection.first == kNone) return;
    while (!connection.awaited.empty() && connection.awaited.front().time <= now) {
      connection.under_way -= connection.awaited.front().bytes;
      connection.awaited.pop();
    }
    if (window_is_open(connection)) return enqueue(number);
    look_again(number);
  }

  // Has the connection look at its window when the next frame is acknowledged. While none has arrived, its arrival
  // will.
  void look_again(Place number) {
    Connection& connection = connections_[number];
    if (connection.looks_again || connection.awaited.empty()) return;
    connection.looks_again = true;
    add(connection.awaited.front().time, Event::kMaySend, number);
  }

  // Begins to send the next frame over a sender's link, if it has one, now or once the link is free.
  void send_next(Tick now, int number) {
    LinkState& over = link(number);
    if (now >= over.free_at && !over.queue.empty()) send_first(now, over);
    if (over.queue.empty() || over.looks_again) return;
    over.looks_again = true;
    add(over.free_at, Event::kLinkIsFree, static_cast<std::size_t>(number));
  }

  void send_first(Tick now, LinkState& over) {
    const Place from = over.queue.front();
    over.queue.pop_front();
    Connection& connection = connections_[from];
    const Place first = connection.first;
    MessageState& message = messages_[first];
    const std::uint64_t bytes = std::min(over.frame, message.to_send);
    over.free_at = now + time_for(bytes, over);
    message.to_send -= bytes;
    connection.under_way += bytes;
    Frame frame{first, from, bytes, 1, over.free_at + over.latency, message.to_send == 0};
    if (frame.is_last) {
      connection.first = message.next;
      add(over.free_at, Event::kSent, first);
    }
    if (connection.path.size() == 1) {
      will_arrive(frame);
    } else if (link(connection.path[1]).comes_after == over.latency) {
      take_turn(now + over.latency, frame, link(connection.path[1]));
      will_arrive(frame);
    } else {
      const Place place = take_place(frames_, free_frames_);
      frames_[place] = frame;
      add(now + over.latency, Event::kReachesLink, place);
    }
    if (!in_turn_) return;
    connection.in_queue = false;
    enqueue_if_it_may_send(now, from);
  }

  // A frame comes to a link on its way, behind those that are there. Returns when it begins to leave it.
  static Tick take_turn(Tick now, Frame& frame, LinkState& over) {
    const Tick begin = std::max(now, over.free_at);
    over.free_at = std::max(begin + time_for(frame.bytes, over), frame.end_of_last_hop);
    frame.end_of_last_hop = over.free_at + over.latency;
    return begin;
  }

  void pass(Tick now, Place place) {
    Frame& frame = frames_[place];
    const Path& path = connections_[frame.connection].path;
    LinkState& over = link(path[frame.hop]);
    const Tick begin = take_turn(now, frame, over);
    if (++frame.hop < path.size()) {
      add(begin + over.latency, Event::kReachesLink, place);
    } else {
      free_frames_.push_back(place);
      will_arrive(frame);
    }
  }

  // The frame's last link is known: it arrives at its end, and is acknowledged a way back later. A connection's frames
  // arrive in the order in which they were sent.
  void will_arrive(const Frame& frame) {
    if (frame.is_last) add(frame.end_of_last_hop, Event::kArrives, frame.message);
    if (!in_turn_) return;
    Connection& connection = connections_[frame.connection];
    connection.awaited.push({frame.end_of_last_hop + connection.way_back, frame.bytes});
    if (!connection.in_queue && connection.first != kNone) look_again(frame.connection);
  }

  const bool in_turn_;
  const std::uint64_t window_;
  std::vector<LinkState> links_;
  std::vector<Connection> connections_;
  std::vector<MessageState> messages_;
  std::vector<Frame> frames_;
  std::vector<Place> free_messages_, free_frames_;
  std::priority_queue<Event> events_;
  std::uint64_t number_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_queue_network(const NetworkOptions& options) {
  return std::make_unique<QueueNetwork>(options);
}

}  // namespace syncopate::simulation
