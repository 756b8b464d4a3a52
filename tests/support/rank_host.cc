#include "tests/support/rank_host.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <utility>

#include "common/transport/forwarding_transport.h"
#include "simulation/simulated_wire.h"
#include "simulation/world_threads.h"
#include "tests/support/cluster.h"

namespace syncopate::testing_support {
namespace {

class RealRankHost final : public RankHost {
 public:
  RealRankHost(std::string wire, int connections, bool encrypted)
      : wire_(std::move(wire)), connections_(connections), encrypted_(encrypted) {}

  Threads& threads() override { return os_threads(); }
  std::vector<std::unique_ptr<Transport>> connect(int size) override {
    return connect_group(wire_, size, connections_, encrypted_);
  }
  void run_ranks(int size, const std::function<void(int)>& body) override { testing_support::run_ranks(size, body); }

 private:
  const std::string wire_;
  const int connections_;
  const bool encrypted_;
};

// An endpoint whose waits may also be called by who is no actor.
class CalledFromOutside final : public ForwardingTransport {
 public:
  CalledFromOutside(simulation::World& world, std::unique_ptr<Transport> inner)
      : ForwardingTransport(std::move(inner)), world_(world) {}

  Result<Message> receive(TimePoint deadline) override {
    return by_an_actor([&] { return wrapped().receive(deadline); });
  }
  Status wait(const PendingSends& pending, TimePoint deadline) override {
    return by_an_actor([&] { return wrapped().wait(pending, deadline); });
  }

 private:
  template <typename Call>
  auto by_an_actor(const Call& call) -> decltype(call()) {
    if (world_.running_group()) return call();
    std::optional<decltype(call())> result;
    world_.start("the test", [&] { result = call(); });
    const Status ran = world_.run();
    if (!ran.ok()) return ran;
    return *std::move(result);
  }

  simulation::World& world_;
};

class SimulatedRankHost final : public RankHost {
 public:
  Threads& threads() override { return threads_; }

  std::vector<std::unique_ptr<Transport>> connect(int size) override {
    std::vector<int> hosts(static_cast<std::size_t>(size));
    std::iota(hosts.begin(), hosts.end(), 0);
    const simulation::Fabric fabric{.hosts = size,
                                    .bytes_per_second = 1.25e9,
                                    .latency = std::chrono::microseconds(10),
                                    .local_bytes_per_second = 1e10};
    wires_.push_back(std::make_unique<simulation::SimulatedWire>(world_, fabric, simulation::NetworkOptions{}));
    std::vector<std::unique_ptr<Transport>> endpoints = wires_.back()->connect(hosts);
    for (std::unique_ptr<Transport>& endpoint : endpoints) {
      endpoint = std::make_unique<CalledFromOutside>(world_, std::move(endpoint));
    }
    return endpoints;
  }

  void run_ranks(int size, const std::function<void(int)>& body) override {
    for (int rank = 0; rank < size; ++rank) {
      world_.start(fmt::format("rank {}", rank), [&body, rank] { body(rank); });
    }
    const Status ran = world_.run();
    EXPECT_TRUE(ran.ok()) << ran.message();
  }

 private:
  simulation::World world_;
  simulation::WorldThreads threads_{world_};
  std::vector<std::unique_ptr<simulation::SimulatedWire>> wires_;
};

}  // namespace

std::unique_ptr<RankHost> real_rank_host(const std::string& wire, int connections, bool encrypted) {
  return std::make_unique<RealRankHost>(wire, connections, encrypted);
}

std::unique_ptr<RankHost> simulated_rank_host() { return std::make_unique<SimulatedRankHost>(); }

}  // namespace syncopate::testing_support
