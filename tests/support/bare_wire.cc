#include "tests/support/bare_wire.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <zmq.hpp>

#include "common/clock.h"
#include "common/os/futex.h"
#include "common/transport/shm_doorbell.h"
#include "tests/support/forked_ranks.h"

namespace syncopate::testing_support {
namespace {

constexpr Duration kLongest = std::chrono::seconds(30);  // of any wait: past it the benchmark has failed
constexpr std::size_t kChunkFloats = (256 << 10) / sizeof(float);

[[noreturn]] void fail(const char* what) {
  fmt::print(stderr, "bare wire: {}\n", what);
  std::_Exit(1);
}

// Returns the seconds of each of steps 0 .. steps-1, without the warm-up.
template <typename Step>
std::vector<double> timed(int steps, Step step) {
  const SteadyClock clock;
  std::vector<double> times;
  for (int i = 0; i < steps; ++i) {
    const TimePoint begin = clock.now();
    step(i);
    if (i >= steps / 10) times.push_back(microseconds(clock.now() - begin));
  }
  return times;
}

void receive(zmq::socket_t& socket, zmq::message_t& message) {
  if (!socket.recv(message)) fail("no message came");
}

std::vector<double> zmq_echo(const BareRoundTrips& trips, int rank, Rendezvous& rendezvous) {
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::pair);
  socket.set(zmq::sockopt::rcvtimeo, static_cast<int>(kLongest / std::chrono::milliseconds(1)));
  const bool echoes = rank % 2 != 0;
  std::string address;
  if (echoes) {
    socket.bind(trips.wire == "tcp" ? "tcp://127.0.0.1:*" : fmt::format("ipc://@bare-{}-{}", getppid(), rank));
    address = socket.get(zmq::sockopt::last_endpoint);
  }
  const auto addresses = rendezvous.exchange("", rank, 2 * trips.pairs, address, SteadyClock().now() + kLongest);
  if (!addresses.ok()) fail("the processes have not met");
  if (echoes) {
    for (int i = 0; i < trips.steps; ++i) {
      zmq::message_t message;
      receive(socket, message);
      socket.send(message, zmq::send_flags::none);
    }
    return {};
  }
  socket.connect((*addresses)[static_cast<std::size_t>(rank + 1)]);
  std::vector<std::byte> buffer(trips.bytes, std::byte{1});
  return timed(trips.steps, [&](int) {
    zmq::message_t message(
        buffer.data(), buffer.size(), [](void*, void*) {}, nullptr);
    socket.send(message, zmq::send_flags::none);
    receive(socket, message);
    if (message.size() != trips.bytes) fail("a message of another size came back");
  });
}

// Waits until the other process has rung so often in all: a short spin, then sleep, as our shm waits.
void wait_for_rings(ShmDoorbell& bell, std::uint32_t count) {
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  for (std::uint32_t rings = bell.rings.load(); rings < count; rings = bell.rings.load()) {
    const Duration waited = clock.now() - begin;
    if (waited > kLongest) fail("the other process is gone");
    if (waited < std::chrono::microseconds(30)) {
      sched_yield();
      continue;
    }
    bell.sleeping.store(1);
    futex_wait(bell.rings, rings, std::chrono::milliseconds(50));
    bell.sleeping.store(0);
  }
}

// What a pair shares, followed by the gradient and the weights.
struct SharedPlace {
  ShmDoorbell pushed, updated;  // rung for each gradient; for each chunk of weights
};

std::vector<double> memory_round_trips(const BareRoundTrips& trips, int rank, std::byte* memory) {
  SharedPlace& place = *reinterpret_cast<SharedPlace*>(memory);
  const std::size_t floats = trips.bytes / sizeof(float);
  float* const shared = reinterpret_cast<float*>(memory + sizeof(SharedPlace));
  const std::span<float> gradient(shared, floats), weights(shared + floats, floats);
  const std::size_t chunks = (floats + kChunkFloats - 1) / kChunkFloats;
  const auto range = [&](std::size_t chunk) {
    return std::pair(chunk * kChunkFloats, std::min(floats, (chunk + 1) * kChunkFloats));
  };
  if (rank % 2 != 0) {
    for (int i = 0; i < trips.steps; ++i) {
      wait_for_rings(place.pushed, static_cast<std::uint32_t>(i + 1));
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        const auto [begin, end] = range(chunk);
        for (std::size_t k = begin; k < end; ++k) weights[k] -= 0.1f * gradient[k];
        place.updated.ring();
      }
    }
    return {};
  }
  std::vector<float> own(floats);
  std::ranges::fill(gradient, 1.0f);
  return timed(trips.steps, [&](int step) {
    place.pushed.ring();
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      wait_for_rings(place.updated, static_cast<std::uint32_t>(static_cast<std::size_t>(step) * chunks + chunk + 1));
      const auto [begin, end] = range(chunk);
      std::copy(weights.data() + begin, weights.data() + end, own.data() + begin);
    }
  });
}

}  // namespace

std::vector<double> bare_round_trips(const BareRoundTrips& trips) {
  if (trips.wire != "shm") {
    return run_forked_ranks(2 * trips.pairs,
                            [&](int rank, Rendezvous& rendezvous) { return zmq_echo(trips, rank, rendezvous); })[0];
  }
  const std::size_t place = (sizeof(SharedPlace) + 2 * trips.bytes + 4095) / 4096 * 4096;
  const std::size_t size = place * static_cast<std::size_t>(trips.pairs);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no memory to share");
  std::vector<double> times = run_forked_ranks(2 * trips.pairs, [&](int rank, Rendezvous&) {
    return memory_round_trips(trips, rank,
                              static_cast<std::byte*>(memory) + place * static_cast<std::size_t>(rank / 2));
  })[0];
  munmap(memory, size);
  return times;
}

}  // namespace syncopate::testing_support
