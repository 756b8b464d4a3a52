#include "tests/support/cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "common/transport/inproc_transport.h"
#include "common/transport/make_transport.h"
#include "common/transport/shaped_transport.h"
#include "tests/support/test_keys.h"

namespace syncopate::testing_support {

namespace {

// Every endpoint behind a link of its own, as that of a process is.
std::vector<std::unique_ptr<Transport>> shaped(std::vector<std::unique_ptr<Transport>> endpoints) {
  const LinkShape shape = *LinkShape::parse("100gbit+20us");
  for (std::unique_ptr<Transport>& endpoint : endpoints) {
    endpoint = std::make_unique<ShapedTransport>(std::move(endpoint), std::make_shared<ProcessLink>(shape));
  }
  return endpoints;
}

}  // namespace

std::vector<std::string> all_wires() { return {"inproc", "shm", "ipc", "tcp", "sockets", "shaped"}; }

std::vector<std::unique_ptr<Transport>> connect_group(const std::string& wire, int size, int connections,
                                                      bool encrypted) {
  if (wire == "shaped") return shaped(connect_group("shm", size));
  static std::atomic<int> groups{0};
  const std::string run = fmt::format("test-{}-{}", getpid(), groups++);
  std::vector<std::unique_ptr<Transport>> endpoints(static_cast<std::size_t>(size));
  if (wire == "inproc") {
    InProcHub hub(size);
    for (int rank = 0; rank < size; ++rank) endpoints[static_cast<std::size_t>(rank)] = hub.endpoint(rank);
    return endpoints;
  }
  const TransportKind kind = *parse_transport_kind(wire);
  InProcRendezvous rendezvous;
  run_ranks(size, [&](int rank) {
    const TransportOptions options{.run_id = run,
                                   .group = "test",
                                   .rank = rank,
                                   .size = size,
                                   .keys = test_keys(),
                                   .encrypted = encrypted,
                                   .connections = connections};
    Result<std::unique_ptr<Transport>> endpoint = make_transport(kind, options, rendezvous, soon());
    ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
    endpoints[static_cast<std::size_t>(rank)] = std::move(*endpoint);
  });
  return endpoints;
}

void run_ranks(int size, const std::function<void(int rank)>& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(body, rank);
}

TimePoint soon() { return SteadyClock().now() + std::chrono::seconds(60); }

}  // namespace syncopate::testing_support
