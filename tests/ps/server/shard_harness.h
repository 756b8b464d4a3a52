// A Shard of one chunk with the memory of a test, and workers that behave, as the transport would show them to it.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/os/aligned_buffer.h"
#include "ps/group.h"
#include "ps/server/shard.h"
#include "tests/ps/job/consistency_text.h"

namespace syncopate::ps {

class ShardHarness {
 public:
  static constexpr std::uint64_t kHash = 0xC0FFEE;

  ShardHarness(int workers, const std::string& consistency, std::size_t elements,
               OptimizerConfig optimizer = {.kind = OptimizerKind::kSgd}, StalenessOptions staleness = {},
               const TrainingState* restored = nullptr, const HostGroups& hosts = {})
      : workers_(static_cast<std::size_t>(workers)),
        elements_(elements),
        goes_on_(restored != nullptr),
        there_(pushers_among(workers, hosts)),
        shard(
            {.workers = workers,
             .consistency = consistency_of(consistency),
             .optimizer = optimizer,
             .staleness = staleness,
             .there = there_,
             .hosts = hosts,
             .restored = restored},
            [this](std::size_t size) { return Result<std::span<float>>(memory_.emplace_back(size).span()); },
            [](const PendingSends&) { return Status::internal("waited for a reader"); }) {}

  // What a worker knows of its own place.
  struct Worker {
    std::int64_t clock = 0;
    std::int64_t version = 0;
    bool joined = false;
    bool waiting = false;  // for an answer
    bool left = false;     // has had its final weights, or a rejection
    bool lost = false;
    std::vector<float> weights;  // of the last answer
    std::vector<float> gradient;
    std::vector<Chunk::Answer> answers;   // behind the greetings, and to its pushes
    std::vector<Answer::Kind> greetings;  // welcome, farewell, rejection
    std::optional<Chunk::Answer> reads;   // weights in the shard's memory that it still reads
  };

  Worker& worker(int rank) { return workers_[static_cast<std::size_t>(rank)]; }
  int worker_count() const { return static_cast<int>(workers_.size()); }

  ArenaClaim claim(std::uint64_t hash = kHash) const {
    return {.layout_hash = hash, .arena_size = elements_, .shard_size = elements_, .chunks = 1};
  }

  void join(int rank, std::uint64_t hash = kHash) {
    worker(rank).joined = worker(rank).waiting = true;
    take(shard.on_join(rank, claim(hash)));
    if (goes_on_) {
      take(shard.on_initial(rank, 0, {0, elements_}, {}));
    } else if (rank == kChief) {
      take(shard.on_initial(rank, 0, {0, elements_}, std::vector<float>(elements_, 0.0f)));
    }
  }

  void join_all() {
    for (int rank = 0; rank < worker_count(); ++rank) {
      if (there_[static_cast<std::size_t>(rank)]) join(rank);
    }
    for (Worker& each : workers_) each.answers.clear();
  }

  // Pushes a gradient that is `value` everywhere.
  void push(int rank, float value, float learning_rate = 1.0f) {
    push(rank, std::vector<float>(elements_, value), learning_rate);
  }

  void push(int rank, std::vector<float> gradient, float learning_rate = 1.0f) {
    Worker& from = worker(rank);
    finish_reading(from);
    from.gradient = std::move(gradient);
    from.waiting = true;
    ++from.clock;
    take(shard.on_push({.step = {.worker = rank, .clock = from.clock, .learning_rate = learning_rate, .arrived = now},
                        .version = from.version,
                        .gradient = from.gradient}));
    // A gradient that is not held may be overwritten at once.
    for (int i = 0; i < worker_count(); ++i) {
      if (!shard.has_pending_gradient(i, 0)) std::fill(worker(i).gradient.begin(), worker(i).gradient.end(), -1e30f);
    }
  }

  void leave(int rank) {
    finish_reading(worker(rank));
    worker(rank).waiting = true;
    take(shard.on_leave(rank));
  }

  void lose(int rank) {
    worker(rank).lost = true;
    worker(rank).waiting = false;
    std::fill(worker(rank).gradient.begin(), worker(rank).gradient.end(), -1e30f);
    take(shard.on_worker_lost(rank));
  }

  // Lets the shard act on the time that it is.
  void take_time() { take(shard.on_time(now)); }

  TimePoint now{};  // at which pushes arrive

  std::span<const float> weights() const { return shard.chunk(0).weights().current(); }
  std::int64_t version() const { return shard.chunk(0).weights().version(); }
  // Floats that the shard has taken.
  std::size_t memory() const {
    std::size_t floats = 0;
    for (const AlignedBuffer& buffer : memory_) floats += buffer.size();
    return floats;
  }

 private:
  static std::vector<bool> pushers_among(int workers, const HostGroups& hosts) {
    std::vector<bool> pushers;
    for (int worker = 0; worker < workers; ++worker) pushers.push_back(hosts.pusher_for(worker) == worker);
    return pushers;
  }

  void take(const Shard::Answers& answers) {
    ASSERT_TRUE(answers.ok()) << answers.status().message();
    for (const Answer& answer : *answers) {
      Worker& to = worker(answer.worker);
      EXPECT_TRUE(to.waiting) << "worker " << answer.worker << " is answered though it asked for nothing";
      EXPECT_FALSE(to.lost);
      if (answer.kind != Answer::Kind::kWeights) {
        to.greetings.push_back(answer.kind);
        to.left = answer.kind != Answer::Kind::kWelcome;
        to.waiting = answer.kind != Answer::Kind::kReject;
        continue;
      }
      if (goes_on_ && to.answers.empty()) to.clock = answer.weights.clock;  // of the welcome
      EXPECT_EQ(answer.weights.clock, to.clock);
      to.waiting = false;
      to.version = answer.weights.version;
      to.weights.assign(answer.weights.weights.begin(), answer.weights.weights.end());
      to.answers.push_back(answer.weights);
      answer.weights.pending->counter()->fetch_add(1);
      to.reads = answer.weights;
    }
  }

  // The latest moment at which a worker can still be reading what it was sent: nothing may have changed till now.
  void finish_reading(Worker& from) {
    if (!from.reads) return;
    EXPECT_TRUE(std::equal(from.weights.begin(), from.weights.end(), from.reads->weights.begin()))
        << "weights changed while they were being sent";
    from.reads->pending->counter()->fetch_sub(1);
    from.reads.reset();
  }

  std::deque<AlignedBuffer> memory_;
  std::vector<Worker> workers_;
  std::size_t elements_;
  bool goes_on_;
  std::vector<bool> there_;  // by worker

 public:
  Shard shard;
};

}  // namespace syncopate::ps
