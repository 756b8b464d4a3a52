#include "allreduce/nccl/cuda/nccl_collective.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/allreduce/nccl/cuda/nccl_ranks.h"

namespace syncopate::allreduce {
namespace {

using namespace std::chrono_literals;
using testing_support::NcclRanks;
using Place = NcclRanks::Place;

constexpr std::size_t kElements = 100'003;
const SteadyClock kClock{};

TimePoint in(Duration time) { return kClock.now() + time; }

// A rank of a group that has come together, with a buffer, a stream and an event; or what went wrong.
class Rank {
 public:
  Rank(Place& place, Duration limit = 60s) : device_(place.device), host_(kElements) {
    auto collective = connect_nccl(place.options, place.device, place.rendezvous, kClock, in(limit));
    auto buffer = allocate_floats(place.device, kElements);
    auto stream = place.device.make_stream();
    auto event = place.device.make_event();
    for (const Status& status : {collective.status(), buffer.status(), stream.status(), event.status()}) {
      if (failure_.ok()) failure_ = status;
    }
    if (!failure_.ok()) return;
    collective_ = std::move(*collective);
    buffer_ = *buffer;
    collective_->prepare(buffer_);
    stream_ = std::move(*stream);
    event_ = std::move(*event);
  }

  const Status& failure() const { return failure_; }
  DeviceCollective& collective() { return *collective_; }
  std::span<float> buffer() { return buffer_; }
  // Gives the mean of the buffer as so many parts, together.
  Status mean(std::size_t parts = 1) {
    std::vector<TensorSpan> buffers;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t begin = kElements * part / parts, end = kElements * (part + 1) / parts;
      buffers.push_back(buffer_.subspan(begin, end - begin));
    }
    return collective_->all_reduce(buffers, Reduction::kMean, *stream_);
  }
  Stream& stream() { return *stream_; }
  const Event& event() { return *event_; }

  // Element i becomes value + i modulo 8: sums of few such are exact.
  void fill(float value) {
    for (std::size_t i = 0; i < kElements; ++i) host_[i] = value + static_cast<float>(i % 8);
    stream_->copy_to_device(std::as_bytes(std::span(host_)), std::as_writable_bytes(buffer_));
    stream_->record(*event_);
    if (const Status status = device_.wait(*event_, in(10s)); !status.ok()) failure_ = status;
  }

  // What is wrong with the buffer, once the collective has waited for it; nothing if it is as fill(value) makes it.
  std::string differs_from(float value, Duration limit = 30s) {
    stream_->record(*event_);
    if (const Status status = collective_->wait(*event_, in(limit)); !status.ok()) return status.message();
    std::vector<float> got(kElements);
    stream_->copy_to_host(std::as_bytes(buffer_), std::as_writable_bytes(std::span(got)));
    stream_->record(*event_);
    if (const Status status = device_.wait(*event_, in(10s)); !status.ok()) return status.message();
    for (std::size_t i = 0; i < kElements; ++i) {
      const float expected = value + static_cast<float>(i % 8);
      if (got[i] != expected) return fmt::format("element {} is {}, not {}", i, got[i], expected);
    }
    return "";
  }

  void record() { stream_->record(*event_); }

 private:
  Device& device_;
  Status failure_;
  std::vector<float> host_;
  std::span<float> buffer_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> event_;
  std::unique_ptr<DeviceCollective> collective_;  // leaves the group before its stream goes
};

std::string text_of(const Status& status) {
  return status.ok() ? "ok" : fmt::format("{}: {}", name_of(status.code()), status.message());
}

// Means and broadcasts of all ranks, checked exactly; how many ranks there are is a power of two.
std::string use_collective(Place& place) {
  Rank rank(place);
  if (!rank.failure().ok()) return "not together: " + text_of(rank.failure());
  DeviceCollective& collective = rank.collective();
  if (!collective.description().starts_with("NCCL 2.")) return "description: " + collective.description();
  const int size = place.options.size;
  for (int turn = 0; turn < 20; ++turn) {
    rank.fill(static_cast<float>(place.rank + turn));
    if (const Status status = rank.mean(1 + static_cast<std::size_t>(turn) % 4); !status.ok()) {
      return "all_reduce: " + text_of(status);
    }
    const float mean = static_cast<float>(turn) + static_cast<float>(size - 1) / 2;
    if (const std::string wrong = rank.differs_from(mean); !wrong.empty()) return "mean: " + wrong;

    const int root = turn % size;
    rank.fill(static_cast<float>(10 * place.rank));
    if (const Status status = collective.broadcast(rank.buffer(), root, rank.stream()); !status.ok()) {
      return "broadcast: " + text_of(status);
    }
    if (const std::string wrong = rank.differs_from(static_cast<float>(10 * root)); !wrong.empty()) {
      return "broadcast: " + wrong;
    }
  }
  return "";
}

// Rank 0 comes, and rank 1 only says that it would.
std::string miss_a_rank(Place& place) {
  if (place.rank == 1) {
    (void)place.rendezvous.exchange(place.options.group, 1, 2, "", in(30s));
    while (true) pause();  // until it is killed
  }
  const TimePoint begin = kClock.now();
  Rank rank(place, 3s);
  const double took = seconds(kClock.now() - begin);
  if (rank.failure().code() != Code::kDeadlineExceeded) return text_of(rank.failure());
  return took < 3 || took > 20 ? fmt::format("took {} s", took) : "";
}

// Rank 1 dies behind the first mean, in which rank 0 then does not wait until its deadline.
std::string lose_a_rank(Place& place) {
  Rank rank(place);
  if (!rank.failure().ok()) return "not together: " + text_of(rank.failure());
  if (const Status status = rank.mean(); !status.ok()) {
    return text_of(status);
  }
  if (const std::string wrong =
          [&] {
            rank.record();
            const Status status = rank.collective().wait(rank.event(), in(30s));
            return status.ok() ? std::string() : text_of(status);
          }();
      !wrong.empty()) {
    return wrong;
  }
  // Data that rank 1 has sent may die with it: not before rank 0 is done with the first mean, too.
  if (const auto all = place.rendezvous.exchange("done", place.rank, 2, "", in(30s)); !all.ok()) {
    return "not all are done: " + text_of(all.status());
  }
  if (place.rank == 1) raise(SIGKILL);
  const TimePoint begin = kClock.now();
  Status status;
  for (int turn = 0; turn < 10 && status.ok(); ++turn) {
    status = rank.mean();
    if (!status.ok()) break;
    rank.record();
    status = rank.collective().wait(rank.event(), in(20s));
  }
  if (status.code() != Code::kPeerLost) return text_of(status);
  const double took = seconds(kClock.now() - begin);
  if (took > 15) return fmt::format("took {} s", took);
  // The failure stays.
  const Status again = rank.mean();
  return again.code() == Code::kPeerLost ? "" : "again: " + text_of(again);
}

// Rank 1 does not take part in the second mean: rank 0 waits for it in vain.
std::string wait_in_vain(Place& place, bool interrupt) {
  Rank rank(place);
  if (!rank.failure().ok()) return "not together: " + text_of(rank.failure());
  if (const Status status = rank.mean(); !status.ok()) {
    return text_of(status);
  }
  rank.record();
  if (const Status status = rank.collective().wait(rank.event(), in(30s)); !status.ok()) return text_of(status);
  if (place.rank == 1) {
    while (true) pause();  // until it is killed
  }
  if (const Status status = rank.mean(); !status.ok()) {
    return text_of(status);
  }
  rank.record();
  std::jthread other;
  if (interrupt) {
    other = std::jthread([&] {
      std::this_thread::sleep_for(200ms);
      rank.collective().interrupt();
    });
  }
  const TimePoint begin = kClock.now();
  const Status status = rank.collective().wait(rank.event(), in(interrupt ? 60s : 2s));
  const double took = seconds(kClock.now() - begin);
  if (status.code() != (interrupt ? Code::kCancelled : Code::kDeadlineExceeded)) return text_of(status);
  // Up to its end in NCCL, which may wait for a peer that does not leave.
  if (took > 15) return fmt::format("took {} s", took);
  // The GPU is free again: what was given up does not hold it.
  return place.device.wait(rank.event(), in(10s)).ok() ? "" : "the GPU still works at what was given up";
}

// Rank 1 launches the graph of a mean once, rank 0 twice. Its owner holds the graph until the wait in vain has ended:
// what aborts the mean must not wait for that.
std::string launch_in_vain(Place& place) {
  Rank rank(place);
  if (!rank.failure().ok()) return "not together: " + text_of(rank.failure());
  Device& device = place.device;
  // The first operation connects the ranks, which no capture allows.
  if (const Status status = rank.mean(); !status.ok()) return text_of(status);
  rank.record();
  if (const Status status = rank.collective().wait(rank.event(), in(30s)); !status.ok()) return text_of(status);

  if (const Status status = device.begin_capture(); !status.ok()) return text_of(status);
  const TensorSpan buffer = rank.buffer();
  const Status captured = rank.collective().all_reduce({&buffer, 1}, Reduction::kMean, device.compute());
  const Result<std::unique_ptr<Graph>> graph = device.end_capture();
  if (!captured.ok()) return text_of(captured);
  if (!graph.ok()) return text_of(graph.status());
  const auto launch = [&](Duration limit) {
    device.launch(**graph);
    const Result<std::unique_ptr<Event>> end = device.make_event();
    if (!end.ok()) return end.status();
    device.compute().record(**end);
    return rank.collective().wait(**end, in(limit));
  };
  if (const Status status = launch(30s); !status.ok()) return text_of(status);
  if (place.rank == 1) {
    while (true) pause();  // until it is killed
  }
  const TimePoint begin = kClock.now();
  const Status status = launch(1s);
  const double took = seconds(kClock.now() - begin);
  if (status.code() != Code::kDeadlineExceeded) return text_of(status);
  return took < 1 || took > 8 ? fmt::format("took {} s", took) : "";
}

// The first operation connects the ranks, and rank 1 does not come to it.
std::string call_in_vain(Place& place, bool interrupt) {
  setenv("NCCL_RUNTIME_CONNECT", "1", 1);
  place.options.call_timeout = interrupt ? 60s : 1s;
  Rank rank(place);
  if (!rank.failure().ok()) return "not together: " + text_of(rank.failure());
  if (place.rank == 1) {
    while (true) pause();  // until it is killed
  }
  const std::jthread other([&] {
    if (interrupt) rank.collective().interrupt();
  });
  const TimePoint begin = kClock.now();
  const Status status = rank.mean(3);
  const double took = seconds(kClock.now() - begin);
  if (status.code() != (interrupt ? Code::kCancelled : Code::kDeadlineExceeded)) return text_of(status);
  if (took > 15) return fmt::format("took {} s", took);
  // The failure stays, and the GPU is free.
  if (rank.mean().code() != status.code()) return "again: " + text_of(rank.mean());
  rank.record();
  return place.device.wait(rank.event(), in(10s)).ok() ? "" : "the GPU still works at what was given up";
}

// Whether NCCL calls are direct.
class NcclCollectiveTest : public testing::TestWithParam<bool> {};

#define SKIP_WITHOUT_GPU_OR_GROUP(end) \
  if ((end).starts_with("no GPU: ") || (end).starts_with("not together")) GTEST_SKIP() << (end)

TEST_P(NcclCollectiveTest, OfOneRankChangesNothing) {
  NcclRanks ranks(1, GetParam(), use_collective);
  const std::string end = ranks.end_of(0);
  if (end.starts_with("no GPU: ")) GTEST_SKIP() << end;
  EXPECT_EQ(end, "");
}

TEST_P(NcclCollectiveTest, GivesEveryRankTheSameExactMean) {
  NcclRanks ranks(2, GetParam(), use_collective);
  const std::string end = ranks.end_of(0);
  SKIP_WITHOUT_GPU_OR_GROUP(end);
  EXPECT_EQ(end, "");
  EXPECT_EQ(ranks.end_of(1), "");
}

TEST_P(NcclCollectiveTest, ConnectEndsInTimeWhenARankNeverComes) {
  NcclRanks ranks(2, GetParam(), miss_a_rank);
  const std::string end = ranks.end_of(0);
  if (end.starts_with("no GPU: ")) GTEST_SKIP() << end;
  EXPECT_EQ(end, "");
}

TEST_P(NcclCollectiveTest, WaitEndsInTimeWhenARankIsKilled) {
  NcclRanks ranks(2, GetParam(), lose_a_rank);
  const std::string end = ranks.end_of(0);
  SKIP_WITHOUT_GPU_OR_GROUP(end);
  EXPECT_EQ(end, "");
  EXPECT_EQ(ranks.end_of(1), "killed by signal 9");
}

TEST_P(NcclCollectiveTest, WaitEndsAtItsDeadline) {
  NcclRanks ranks(2, GetParam(), [](Place& place) { return wait_in_vain(place, /*interrupt=*/false); });
  const std::string end = ranks.end_of(0);
  SKIP_WITHOUT_GPU_OR_GROUP(end);
  EXPECT_EQ(end, "");
}

TEST_P(NcclCollectiveTest, InterruptEndsAWait) {
  NcclRanks ranks(2, GetParam(), [](Place& place) { return wait_in_vain(place, /*interrupt=*/true); });
  const std::string end = ranks.end_of(0);
  SKIP_WITHOUT_GPU_OR_GROUP(end);
  EXPECT_EQ(end, "");
}

TEST_P(NcclCollectiveTest, WaitDoesNotWaitForAGraphThatIsHeld) {
  NcclRanks ranks(2, GetParam(), launch_in_vain);
  const std::string end = ranks.end_of(0);
  SKIP_WITHOUT_GPU_OR_GROUP(end);
  EXPECT_EQ(end, "");
}

TEST(NcclDirectCall, EndsInTimeWhenARankDoesNotConnect) {
  NcclRanks ranks(2, /*direct_calls=*/true, [](Place& place) { return call_in_vain(place, /*interrupt=*/false); });
  const std::string end = ranks.end_of(0);
  SKIP_WITHOUT_GPU_OR_GROUP(end);
  EXPECT_EQ(end, "");
}

TEST(NcclDirectCall, EndsWhenInterrupted) {
  NcclRanks ranks(2, /*direct_calls=*/true, [](Place& place) { return call_in_vain(place, /*interrupt=*/true); });
  const std::string end = ranks.end_of(0);
  SKIP_WITHOUT_GPU_OR_GROUP(end);
  EXPECT_EQ(end, "");
}

INSTANTIATE_TEST_SUITE_P(Calls, NcclCollectiveTest, testing::Values(false, true),
                         [](const auto& call) { return call.param ? "Direct" : "ByNcclsThread"; });

}  // namespace
}  // namespace syncopate::allreduce
