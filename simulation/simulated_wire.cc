#include "simulation/simulated_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "common/os/aligned_buffer.h"

namespace syncopate::simulation {

class SimulatedTransport;

struct SimulatedWire::Shared : std::enable_shared_from_this<SimulatedWire::Shared> {
  struct Parcel {
    SimulatedTransport* from = nullptr;  // null once that is gone
    SimulatedTransport* to = nullptr;
    int from_rank = 0;
    std::string header;
    std::span<const std::byte> payload;  // the sender's, until it is sent
    AlignedBuffer copy;                  // afterwards
    PendingSends::Counter pending;
  };

  Shared(World& the_world, const Fabric& the_fabric, NetworkOptions options, std::int64_t the_scale)
      : world(the_world), fabric(the_fabric), scale(static_cast<std::uint64_t>(the_scale)) {
    options.links = fabric.links();
    network = make_network(options);
  }

  Tick now() const { return world.now().time_since_epoch().count() * 1000; }

  void begin(const std::vector<int>& path, int connection, Parcel parcel) {
    const std::uint64_t bytes = parcel.header.size() + scale * parcel.payload.size();
    std::size_t place = parcels.size();
    if (free.empty()) {
      parcels.push_back(std::move(parcel));
    } else {
      place = free.back();
      free.pop_back();
      parcels[place] = std::move(parcel);
    }
    network->begin(now(), {.id = place, .connection = connection, .path = path, .bytes = bytes});
    look_again();
  }

  // Has the world ask the network again when it next changes. A look that has become too early does no harm.
  void look_again() {
    const std::optional<Tick> next = network->next();
    if (!next || (next_look && *next_look <= *next)) return;
    next_look = next;
    // The world's time is in nanoseconds, the network's is finer: what happens within one is seen at its end.
    const TimePoint when{Duration((*next + 999) / 1000)};
    world.at(when, [self = weak_from_this(), look = *next] {
      const std::shared_ptr<Shared> shared = self.lock();
      if (shared) shared->look(look);
    });
  }

  void look(Tick due) {
    if (next_look == due) next_look.reset();
    happened.clear();
    for (auto time = network->next(); time && *time <= now(); time = network->next()) {
      network->advance(*time, happened);
    }
    for (const Network::Happening& each : happened) happen(each);
    look_again();
  }

  void happen(const Network::Happening& happening);

  World& world;
  const Fabric fabric;
  const std::uint64_t scale;
  std::unique_ptr<Network> network;
  std::deque<Parcel> parcels;  // under way, by the transfer's id
  std::vector<std::size_t> free;
  std::vector<Network::Happening> happened;
  std::optional<Tick> next_look;
  int connections = 0;
};

class SimulatedTransport final : public Transport {
 public:
  using Shared = SimulatedWire::Shared;
  using Parcel = Shared::Parcel;

  SimulatedTransport(std::shared_ptr<Shared> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}

  ~SimulatedTransport() override {
    for (Parcel& parcel : shared_->parcels) {
      if (parcel.from == this) sent(parcel);
      if (parcel.to == this) parcel.to = nullptr;
    }
    for (SimulatedTransport* peer : peers_) {
      if (peer != nullptr && peer != this) peer->peers_[static_cast<std::size_t>(rank_)] = nullptr;
    }
  }

  // All members of a group, by rank, with the way to each.
  void introduce(std::vector<SimulatedTransport*> peers, std::vector<std::vector<int>> paths, int first_connection) {
    peers_ = std::move(peers);
    paths_ = std::move(paths);
    first_connection_ = first_connection;
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  const char* name() const override { return "simulated"; }

  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    memory_.emplace_back((bytes + sizeof(float) - 1) / sizeof(float));
    return std::as_writable_bytes(memory_.back().span()).first(bytes);
  }

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint) override {
    SYNCOPATE_RETURN_IF_ERROR(check_message(header, payload, kMaxPayloadBytes));
    SimulatedTransport* const to = peers_[static_cast<std::size_t>(peer)];
    if (to == nullptr) return Status::peer_lost(fmt::format("peer {} is gone", peer));
    Parcel parcel{.from = this, .to = to, .from_rank = rank_, .header = std::string(header), .payload = payload};
    if (pending != nullptr && !payload.empty()) {
      parcel.pending = pending->counter();
      parcel.pending->fetch_add(1, std::memory_order_relaxed);
    }
    counters_.payload_bytes_out += static_cast<std::int64_t>(payload.size());
    shared_->begin(paths_[static_cast<std::size_t>(peer)], first_connection_ + peer, std::move(parcel));
    return Status();
  }

  Result<Message> receive(TimePoint deadline) override {
    if (!wait_until(deadline, [&] { return !inbox_.empty(); })) {
      return interrupted_ ? Status::cancelled("interrupted") : Status::deadline_exceeded("no message");
    }
    Parcel parcel = std::move(inbox_.front());
    inbox_.pop_front();
    counters_.payload_bytes_in += static_cast<std::int64_t>(parcel.payload.size());
    const std::span<const std::byte> payload = parcel.payload;
    return Message(parcel.from_rank, std::move(parcel.header), payload,
                   std::make_unique<Lease>(std::move(parcel.copy)));
  }

  Status wait(const PendingSends& pending, TimePoint deadline) override {
    if (wait_until(deadline, [&] { return pending.none(); })) return Status();
    return interrupted_ ? Status::cancelled("interrupted") : Status::deadline_exceeded("a payload is not sent yet");
  }

  void progress() override {}

  void interrupt() override {
    interrupted_ = true;
    wake();
  }

  TransportCounters counters() const override { return counters_; }

  // The last byte has left: the sender's memory is its own again.
  static void sent(Parcel& parcel) {
    if (!parcel.payload.empty() && !SharedZeros::holds(parcel.payload.data())) {
      parcel.copy = AlignedBuffer((parcel.payload.size() + sizeof(float) - 1) / sizeof(float));
      const std::span<std::byte> copy = std::as_writable_bytes(parcel.copy.span()).first(parcel.payload.size());
      std::ranges::copy(parcel.payload, copy.begin());
      parcel.payload = copy;
    }
    if (parcel.pending) parcel.pending->fetch_sub(1, std::memory_order_release);
    parcel.pending.reset();
    if (parcel.from != nullptr) parcel.from->wake();
    parcel.from = nullptr;
  }

  void take(Parcel parcel) {
    inbox_.push_back(std::move(parcel));
    wake();
  }

 private:
  class Lease final : public Message::Lease {
   public:
    explicit Lease(AlignedBuffer memory) : memory_(std::move(memory)) {}

   private:
    AlignedBuffer memory_;
  };

  template <typename Condition>
  bool wait_until(TimePoint deadline, const Condition& condition) {
    World& world = shared_->world;
    while (!interrupted_ && !condition()) {
      waiter_ = world.current();
      const bool goes_on = world.suspend_until(deadline);
      waiter_.reset();
      if (!goes_on) break;
    }
    return !interrupted_ && condition();
  }

  void wake() {
    if (waiter_) shared_->world.wake(*waiter_);
  }

  std::shared_ptr<Shared> shared_;
  const int rank_;
  std::vector<SimulatedTransport*> peers_;
  std::vector<std::vector<int>> paths_;
  int first_connection_ = 0;
  std::deque<Parcel> inbox_;
  std::deque<AlignedBuffer> memory_;
  std::optional<World::ActorId> waiter_;
  bool interrupted_ = false;
  TransportCounters counters_;
};

void SimulatedWire::Shared::happen(const Network::Happening& happening) {
  Parcel& parcel = parcels[happening.id];
  if (happening.what == Network::Happening::What::kSent) {
    SimulatedTransport::sent(parcel);
    return;
  }
  Parcel arrived = std::exchange(parcel, {});
  free.push_back(happening.id);
  if (arrived.to != nullptr) arrived.to->take(std::move(arrived));
}

SimulatedWire::SimulatedWire(World& world, const Fabric& fabric, NetworkOptions options, std::int64_t scale)
    : shared_(std::make_shared<Shared>(world, fabric, std::move(options), scale)) {}
SimulatedWire::~SimulatedWire() = default;

std::vector<std::unique_ptr<Transport>> SimulatedWire::connect(std::span<const int> hosts) {
  const int count = static_cast<int>(hosts.size());
  std::vector<std::unique_ptr<Transport>> endpoints;
  std::vector<SimulatedTransport*> members;
  for (int rank = 0; rank < count; ++rank) {
    auto endpoint = std::make_unique<SimulatedTransport>(shared_, rank);
    members.push_back(endpoint.get());
    endpoints.push_back(std::move(endpoint));
  }
  for (int rank = 0; rank < count; ++rank) {
    std::vector<std::vector<int>> paths;
    for (int peer = 0; peer < count; ++peer) {
      paths.push_back(
          shared_->fabric.path(hosts[static_cast<std::size_t>(rank)], hosts[static_cast<std::size_t>(peer)]));
    }
    members[static_cast<std::size_t>(rank)]->introduce(members, std::move(paths), shared_->connections);
    shared_->connections += count;
  }
  return endpoints;
}

}  // namespace syncopate::simulation
