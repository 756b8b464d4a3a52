// A Shard that holds a table and nothing else, and workers that behave, as the transport would show them to it.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "ps/group.h"
#include "ps/server/shard.h"
#include "ps/tables/row_partition.h"
#include "tests/ps/job/consistency_text.h"

namespace syncopate::ps {

class TableHarness {
 public:
  static constexpr std::uint64_t kRows = 1000;
  static constexpr std::uint64_t kRowsAStep = 8;

  TableHarness(int workers, const std::string& consistency, std::size_t width = 1,
               OptimizerConfig optimizer = {.kind = OptimizerKind::kSgd}, float limit = 0, std::size_t shards = 1)
      : workers_(static_cast<std::size_t>(workers)),
        width_(width),
        limit_(limit),
        shard(
            {.workers = workers,
             .consistency = consistency_of(consistency),
             .optimizer = optimizer,
             .staleness = {},
             .shards = shards},
            [](std::size_t) { return Result<std::span<float>>(std::span<float>()); },
            [](const PendingSends&) { return Status::internal("waited for a reader"); }) {}

  // What a worker knows of its own place.
  struct Worker {
    std::int64_t clock = 0;
    std::vector<RowKey> keys;  // of its last pull
    KeyLists lists;
    bool waiting = false;   // for an answer
    bool has_rows = false;  // and may push
    bool left = false;      // has had its farewell
    bool lost = false;
    std::vector<float> rows;       // of the last answer
    std::vector<float> gradients;  // pushed last: held by the shard, or overwritten
    std::int64_t staleness = 0;    // that the last answer told
    int answers = 0;
    std::vector<Answer::Kind> greetings;
    std::optional<std::vector<float>> read;  // what it asked for
  };

  Worker& worker(int rank) { return workers_[static_cast<std::size_t>(rank)]; }
  int worker_count() const { return static_cast<int>(workers_.size()); }

  TableOwnership table_claim() const {
    return {.rows = kRows, .width = width_, .rows_a_step = kRowsAStep, .limit = limit_};
  }
  void join(int rank) {
    worker(rank).waiting = true;
    take(shard.on_join(rank, {.layout_hash = 0xC0FFEE, .arena_size = kRowsAStep * width_, .tables = 1}));
    if (rank == kChief) take(shard.on_table(rank, 0, table_claim()));
  }
  void join_all() {
    for (int rank = 0; rank < worker_count(); ++rank) join(rank);
  }

  PullRequest next_pull(int rank, const std::vector<RowKey>& keys) {
    worker(rank).keys = keys;
    const KeyLists::Place place = worker(rank).lists.place(keys);
    return {.worker = rank,
            .clock = worker(rank).clock,
            .slot = place.slot,
            .known = place.known,
            .keys = place.known ? RowKeys() : RowKeys(worker(rank).keys)};
  }
  void pull(int rank, const std::vector<RowKey>& keys) {
    worker(rank).waiting = true;
    take(shard.on_pull(next_pull(rank, keys)));
  }

  RowsPush next_push(int rank, float learning_rate = 1.0f) {
    return {.step = {.worker = rank, .clock = worker(rank).clock + 1, .learning_rate = learning_rate},
            .gradients = worker(rank).gradients};
  }
  void push(int rank, std::vector<float> gradients, float learning_rate = 1.0f) {
    worker(rank).gradients = std::move(gradients);
    take(shard.on_rows_push(next_push(rank, learning_rate)));
    ++worker(rank).clock;
    worker(rank).has_rows = false;
    spoil_gradients();
  }

  void leave(int rank) {
    worker(rank).waiting = true;
    take(shard.on_leave(rank));
    spoil_gradients();
  }

  void lose(int rank) {
    worker(rank).lost = true;
    worker(rank).waiting = false;
    take(shard.on_worker_lost(rank));
    spoil_gradients();
  }

  void ask(int rank, const std::vector<RowKey>& keys) {
    worker(rank).read.reset();
    take(shard.on_read_rows({.worker = rank, .keys = keys}));
  }

  // The rows as the shard has them. Makes them.
  std::vector<float> values(const std::vector<RowKey>& keys) {
    std::vector<float> values(keys.size() * width_);
    EXPECT_TRUE(shard.table(0).read(keys, values).ok());
    return values;
  }
  std::int64_t version() { return shard.table(0).version(); }

 private:
  // A gradient that is not held may be overwritten at once.
  void spoil_gradients() {
    for (int rank = 0; rank < worker_count(); ++rank) {
      if (shard.tables() == 1 && shard.has_pending_rows(rank, 0)) continue;
      std::fill(worker(rank).gradients.begin(), worker(rank).gradients.end(), -1e30f);
    }
  }

  void take(const Shard::Answers& answers) {
    ASSERT_TRUE(answers.ok()) << answers.status().message();
    for (const Answer& answer : *answers) {
      Worker& to = worker(answer.worker);
      EXPECT_FALSE(to.lost);
      if (answer.kind == Answer::Kind::kRowsRead) {
        to.read = values({answer.rows.keys.begin(), answer.rows.keys.end()});
        continue;
      }
      EXPECT_TRUE(to.waiting) << "worker " << answer.worker << " is answered though it asked for nothing";
      to.waiting = false;
      if (answer.kind != Answer::Kind::kRows) {
        to.greetings.push_back(answer.kind);
        to.left = answer.kind != Answer::Kind::kWelcome;
        continue;
      }
      EXPECT_EQ(answer.rows.clock, to.clock);
      EXPECT_TRUE(std::ranges::equal(answer.rows.keys, to.keys));
      to.has_rows = true;
      to.rows = values(to.keys);
      to.staleness = answer.rows.staleness;
      ++to.answers;
    }
  }

  std::vector<Worker> workers_;
  std::size_t width_;
  float limit_;

 public:
  Shard shard;
};

}  // namespace syncopate::ps
