#include "simulation/simulated_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/container/flat_map.hpp>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "common/os/aligned_buffer.h"

namespace syncopate::simulation {
namespace {

// The loss of a peer that closes its endpoint is told this much later, as over sockets: others may still have last
// messages for each other.
constexpr Duration kGraceForLastMessages = std::chrono::seconds(1);

}  // namespace

class SimulatedTransport;

struct SimulatedWire::Shared final : EventSource, std::enable_shared_from_this<SimulatedWire::Shared> {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  enum class End { kClosed, kKilled };
  // Numbers of connections, by the receiver's rank: of the few of many that somebody sends to.
  using Numbers = boost::container::flat_map<int, int>;
  // Endpoints that know each other.
  struct Group {
    std::vector<int> hosts;                    // by rank
    std::vector<SimulatedTransport*> members;  // by rank; null once gone
    std::vector<Numbers> connections;          // by the sender's rank
  };
  // What one endpoint sends to one other, from its first message on.
  struct Connection {
    Group* group = nullptr;
    int from = 0, to = 0;    // ranks
    int under_way = 0;       // messages
    std::optional<End> end;  // has come as far as the receiver, which learns of it behind the messages under way

    SimulatedTransport* sender() const { return group->members[static_cast<std::size_t>(from)]; }
    SimulatedTransport* receiver() const { return group->members[static_cast<std::size_t>(to)]; }
  };
  // A parcel that its owner has, by its transfer.
  struct OwnedParcel {
    ParcelOwner* owner = nullptr;
    std::uint32_t number = 0;
    int connection = 0;
  };
  static constexpr std::uint64_t kOwned = std::uint64_t{1} << 63;  // in the transfer's id

  struct Parcel {
    int connection = 0;
    std::string header;
    std::span<const std::byte> payload;  // the sender's, until it is sent
    AlignedBuffer copy;                  // afterwards
    PendingSends::Counter pending;
    bool is_sent = false;
    std::size_t next = kNone;  // that has arrived at the same endpoint, and is not received yet
  };

  Shared(World& the_world, const Fabric& the_fabric, NetworkOptions options, std::int64_t the_scale)
      : world(the_world), fabric(the_fabric), scale(static_cast<std::uint64_t>(the_scale)) {
    options.links = fabric.links();
    network = make_network(options);
    world.set_source(*this);
  }
  ~Shared() override { world.forget_source(*this); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  Tick now() const { return world.now().time_since_epoch().count() * 1000; }
  Connection& connection(int number) { return connections[static_cast<std::size_t>(number)]; }

  int connection_between(Group& group, int from, int to) {
    const auto sender = static_cast<std::size_t>(from);
    Numbers& numbers = group.connections[sender];
    const auto found = numbers.find(to);
    if (found != numbers.end()) return found->second;
    connections.push_back({.group = &group, .from = from, .to = to});
    const Path path = fabric.path(group.hosts[sender], group.hosts[static_cast<std::size_t>(to)]);
    return numbers[to] = network->connect(path);
  }

  void begin(Parcel parcel) {
    const int number = parcel.connection;
    const std::uint64_t bytes = parcel.header.size() + scale * parcel.payload.size();
    std::size_t place = parcels.size();
    if (free.empty()) {
      parcels.push_back(std::move(parcel));
    } else {
      place = free.back();
      free.pop_back();
      parcels[place] = std::move(parcel);
    }
    ++messages_under_way;
    begin(number, place, bytes);
  }
  void begin(int number, std::uint64_t id, std::uint64_t bytes) {
    // A message that begins in the same nanosecond comes behind what is due, whichever of them the world asks for
    // first.
    if (!changes) change();
    ++connection(number).under_way;
    network->begin(now(), {.id = id, .connection = number, .bytes = bytes});
  }

  // The sender is gone. Its end takes the way's latency, and none of the links' room.
  void end(Group& group, int rank, End how) {
    const int host = group.hosts[static_cast<std::size_t>(rank)];
    for (const bool is_inside : {true, false}) {
      const auto tell = [self = weak_from_this(), &group, rank, how, host, is_inside] {
        const std::shared_ptr<Shared> shared = self.lock();
        for (std::size_t peer = 0; shared && peer < group.members.size(); ++peer) {
          if ((group.hosts[peer] == host) == is_inside) shared->end_between(group, rank, static_cast<int>(peer), how);
        }
      };
      world.at(world.now() + (is_inside ? fabric.local_latency : fabric.latency), tell);
    }
  }
  // The end of what `rank` sends has come to a peer.
  void end_between(Group& group, int rank, int peer, End how);
  // Tells the receiver, if the end and all that came before it are there.
  void tell_of_end(const Connection& over);

  // The world's time is in nanoseconds, the network's is finer: what happens within one is seen at its end.
  TimePoint next() const override {
    const std::optional<Tick> next = network->next();
    return next ? TimePoint(Duration((*next + 999) / 1000)) : TimePoint::max();
  }
  void change() override {
    happened.clear();
    for (auto time = network->next(); time && *time <= now(); time = network->next()) {
      network->advance(*time, happened);
    }
    changes = true;
    for (const Network::Happening& each : happened) {
      (each.id & kOwned) != 0 ? happen_to_owned(each) : happen(each);
    }
    changes = false;
  }

  // Returns a parcel, whose place is free again.
  Parcel take(std::size_t place) {
    free.push_back(place);
    return std::exchange(parcels[place], Parcel{.is_sent = true});
  }

  void release(Parcel& parcel);
  void happen(const Network::Happening& happening);
  void happen_to_owned(const Network::Happening& happening) {
    const auto place = static_cast<std::size_t>(happening.id & ~kOwned);
    const OwnedParcel parcel = owned[place];
    if (happening.what == Network::Happening::What::kSent) return parcel.owner->sent(parcel.number);
    free_owned.push_back(place);
    --connection(parcel.connection).under_way;
    parcel.owner->arrived(parcel.number);
    tell_of_end(connection(parcel.connection));
  }

  World& world;
  const Fabric fabric;
  const std::uint64_t scale;
  std::unique_ptr<Network> network;
  std::deque<Group> groups;
  std::vector<Connection> connections;         // by their numbers, which are the network's
  std::vector<SimulatedTransport*> endpoints;  // those that are not gone
  std::deque<Parcel> parcels;                  // under way, or not received yet, by the transfer's id
  std::vector<std::size_t> free;
  std::size_t messages_under_way = 0;
  std::vector<OwnedParcel> owned;  // by the transfer's id
  std::vector<std::size_t> free_owned;
  bool changes = false;  // what has happened is being told
  std::vector<Network::Happening> happened;
};

class SimulatedTransport final : public Transport {
 public:
  using Shared = SimulatedWire::Shared;
  using Parcel = Shared::Parcel;

  // The group outlives it.
  SimulatedTransport(std::shared_ptr<Shared> shared, Shared::Group& group, int rank, std::size_t process)
      : shared_(std::move(shared)), group_(group), rank_(rank), process_(process), gone_(group.members.size()) {
    shared_->endpoints.push_back(this);
    group_.members[static_cast<std::size_t>(rank)] = this;
  }
  ~SimulatedTransport() override { leave(Shared::End::kClosed); }

  // Called once more by the destructor, where it does nothing.
  void leave(Shared::End how) {
    if (std::erase(shared_->endpoints, this) == 0) return;
    while (first_arrived_ != Shared::kNone) next_arrived();
    for (auto parcel = shared_->parcels.begin(); unsent_ > 0 && parcel != shared_->parcels.end(); ++parcel) {
      if (shared_->connection(parcel->connection).sender() == this) shared_->release(*parcel);
    }
    group_.members[static_cast<std::size_t>(rank_)] = nullptr;
    shared_->end(group_, rank_, how);
  }
  std::size_t process() const { return process_; }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_.members.size()); }
  const char* name() const override { return "simulated"; }

  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    memory_.emplace_back((bytes + sizeof(float) - 1) / sizeof(float));
    return std::as_writable_bytes(memory_.back().span()).first(bytes);
  }

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint) override {
    SYNCOPATE_RETURN_IF_ERROR(check_message(header, payload, kMaxPayloadBytes));
    if (gone_[static_cast<std::size_t>(peer)]) return Status::peer_lost(fmt::format("peer {} is gone", peer));
    Parcel parcel{.connection = shared_->connection_between(group_, rank_, peer),
                  .header = std::string(header),
                  .payload = payload};
    if (pending != nullptr && !payload.empty()) {
      parcel.pending = pending->counter();
      parcel.pending->fetch_add(1, std::memory_order_relaxed);
    }
    counters_.payload_bytes_out += static_cast<std::int64_t>(payload.size());
    ++unsent_;
    shared_->begin(std::move(parcel));
    return Status();
  }

  Result<Message> receive(TimePoint deadline) override {
    const auto is_due = [this](const Loss& loss) { return loss.told_at <= shared_->world.now(); };
    auto loss = losses_.end();
    const auto something = [&] {
      return first_arrived_ != Shared::kNone || (loss = std::ranges::find_if(losses_, is_due)) != losses_.end();
    };
    SYNCOPATE_RETURN_IF_ERROR(wait_for(something, deadline, "no message"));
    if (first_arrived_ == Shared::kNone) {
      const int lost = loss->peer;
      losses_.erase(loss);
      return Status::peer_lost(fmt::format("peer {} is gone", lost));
    }
    Parcel parcel = next_arrived();
    const int from = shared_->connection(parcel.connection).from;
    counters_.payload_bytes_in += static_cast<std::int64_t>(parcel.payload.size());
    const std::span<const std::byte> payload = parcel.payload;
    auto lease = parcel.copy.span().empty() ? nullptr : std::make_unique<Lease>(std::move(parcel.copy));
    return Message(from, std::move(parcel.header), payload, std::move(lease));
  }

  Status wait(const PendingSends& pending, TimePoint deadline) override {
    awaits_sends_ = true;
    const Status done = wait_for([&] { return pending.none(); }, deadline, "a payload is not sent yet");
    awaits_sends_ = false;
    return done;
  }

  void progress() override {}

  void interrupt() override {
    interrupted_ = true;
    wake();
  }

  TransportCounters counters() const override { return counters_; }

  // A parcel has arrived.
  void take(std::size_t place) {
    (first_arrived_ == Shared::kNone ? first_arrived_ : shared_->parcels[last_arrived_].next) = place;
    last_arrived_ = place;
    wake();
  }

  // All that the peer has sent has come, and it is gone.
  void lose(int peer, Shared::End how) {
    gone_[static_cast<std::size_t>(peer)] = true;
    const Duration grace = how == Shared::End::kClosed ? kGraceForLastMessages : Duration::zero();
    losses_.push_back({peer, shared_->world.now() + grace});
    wake();
  }

  // A payload's memory is the sender's own again. Who waits for a message is not woken for that.
  void release() {
    --unsent_;
    if (awaits_sends_) wake();
  }

  void wake() {
    if (waiter_) shared_->world.wake(*waiter_);
  }

 private:
  class Lease final : public Message::Lease {
   public:
    explicit Lease(AlignedBuffer memory) : memory_(std::move(memory)) {}

   private:
    AlignedBuffer memory_;
  };

  struct Loss {
    int peer = 0;
    TimePoint told_at;
  };

  Parcel next_arrived() {
    Parcel parcel = shared_->take(first_arrived_);
    first_arrived_ = parcel.next;
    return parcel;
  }

  template <typename Ready>
  Status wait_for(const Ready& ready, TimePoint deadline, const char* late) {
    World& world = shared_->world;
    while (!ready()) {
      if (interrupted_) return Status::cancelled("interrupted");
      if (world.now() >= deadline) return Status::deadline_exceeded(late);
      TimePoint until = deadline;
      for (const Loss& loss : losses_) {
        if (loss.told_at > world.now()) until = std::min(until, loss.told_at);
      }
      waiter_ = world.current();
      world.suspend_until(until);
      waiter_.reset();
    }
    return Status();
  }

  std::shared_ptr<Shared> shared_;
  Shared::Group& group_;
  const int rank_;
  const std::size_t process_;
  std::size_t first_arrived_ = Shared::kNone, last_arrived_ = Shared::kNone;  // the parcels that are not received yet
  std::vector<bool> gone_;                                                    // by peer
  std::vector<Loss> losses_;                                                  // not told yet
  std::deque<AlignedBuffer> memory_;
  std::size_t unsent_ = 0;  // parcels of this endpoint of which a byte has not left
  std::optional<World::ActorId> waiter_;
  bool awaits_sends_ = false;
  bool interrupted_ = false;
  TransportCounters counters_;
};

// The last byte has left, or the sender is gone: the sender's memory is its own again.
void SimulatedWire::Shared::release(Parcel& parcel) {
  if (std::exchange(parcel.is_sent, true)) return;
  if (!parcel.payload.empty() && !SharedZeros::holds(parcel.payload.data())) {
    parcel.copy = AlignedBuffer((parcel.payload.size() + sizeof(float) - 1) / sizeof(float));
    const std::span<std::byte> copy = std::as_writable_bytes(parcel.copy.span()).first(parcel.payload.size());
    std::ranges::copy(parcel.payload, copy.begin());
    parcel.payload = copy;
  }
  if (parcel.pending) parcel.pending->fetch_sub(1, std::memory_order_release);
  parcel.pending.reset();
  if (SimulatedTransport* const from = connection(parcel.connection).sender()) from->release();
}

void SimulatedWire::Shared::happen(const Network::Happening& happening) {
  Parcel& parcel = parcels[happening.id];
  Connection& over = connection(parcel.connection);
  if (happening.what == Network::Happening::What::kSent) return release(parcel);
  --over.under_way;
  --messages_under_way;
  if (SimulatedTransport* const to = over.receiver()) {
    to->take(happening.id);
  } else {
    take(happening.id);
  }
  tell_of_end(over);
}

void SimulatedWire::Shared::end_between(Group& group, int rank, int peer, End how) {
  SimulatedTransport* const to = group.members[static_cast<std::size_t>(peer)];
  if (to == nullptr) return;
  const Numbers& numbers = group.connections[static_cast<std::size_t>(rank)];
  if (const auto found = numbers.find(peer); found != numbers.end()) {
    connection(found->second).end = how;
    tell_of_end(connection(found->second));
  } else {
    to->lose(rank, how);
  }
}

void SimulatedWire::Shared::tell_of_end(const Connection& over) {
  SimulatedTransport* const to = over.receiver();
  if (to != nullptr && over.end && over.under_way == 0) to->lose(over.from, *over.end);
}

SimulatedWire::SimulatedWire(World& world, const Fabric& fabric, NetworkOptions options, std::int64_t scale)
    : shared_(std::make_shared<Shared>(world, fabric, std::move(options), scale)) {}
SimulatedWire::~SimulatedWire() = default;

std::vector<std::unique_ptr<Transport>> SimulatedWire::connect(std::span<const int> hosts,
                                                               std::span<const std::size_t> processes) {
  Shared::Group& group =
      shared_->groups.emplace_back(Shared::Group{.hosts = {hosts.begin(), hosts.end()},
                                                 .members = std::vector<SimulatedTransport*>(hosts.size()),
                                                 .connections = std::vector<Shared::Numbers>(hosts.size())});
  std::vector<std::unique_ptr<Transport>> endpoints;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    endpoints.push_back(std::make_unique<SimulatedTransport>(shared_, group, static_cast<int>(rank),
                                                             processes.empty() ? kNoProcess : processes[rank]));
  }
  return endpoints;
}

std::size_t SimulatedWire::groups() const { return shared_->groups.size(); }

int SimulatedWire::connection(std::size_t group, int from, int to) {
  return shared_->connection_between(shared_->groups[group], from, to);
}

int SimulatedWire::receiver(int connection) const { return shared_->connection(connection).to; }

void SimulatedWire::send(int connection, std::size_t header_bytes, std::size_t payload_bytes, ParcelOwner& owner,
                         std::uint32_t number) {
  if (shared_->free_owned.empty()) {
    shared_->free_owned.push_back(shared_->owned.size());
    shared_->owned.emplace_back();
  }
  const std::size_t place = shared_->free_owned.back();
  shared_->free_owned.pop_back();
  shared_->owned[place] = {&owner, number, connection};
  shared_->begin(connection, Shared::kOwned | place, header_bytes + shared_->scale * payload_bytes);
}

std::size_t SimulatedWire::parcels_under_way() const { return shared_->owned.size() - shared_->free_owned.size(); }
std::size_t SimulatedWire::messages_under_way() const { return shared_->messages_under_way; }

void SimulatedWire::end_process(std::size_t process) {
  std::vector<SimulatedTransport*> ended = shared_->endpoints;
  std::erase_if(ended, [process](const SimulatedTransport* endpoint) { return endpoint->process() != process; });
  for (SimulatedTransport* const endpoint : ended) endpoint->leave(Shared::End::kKilled);
}

}  // namespace syncopate::simulation
