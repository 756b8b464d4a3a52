// TableShard: one shard's part of a row-sparse table. It decides which push updates its rows and when, and which pull
// is answered. No I/O, no threads, no time.
//
// A worker pulls the rows of its next step, is answered, pushes their gradients, and so on. It makes one pull and one
// push per step even if none of the rows lies here, so that its clock counts. A worker that repeats a step whose push
// has been applied here pulls for the next step without pushing. As for chunks, the `Consistency` (consistency.h) says
// when:
//   - Gradients of which all workers' make an update are held until all live workers have pushed theirs, then make one
//     update of all rows that any of them touched: the sum, in rank order, over the number of workers. A pull waits for
//     the update of its worker's last push.
//   - Any other push is applied when it arrives; where the rule bounds the staleness, a pull waits until its worker's
//     lead is within the bound.
// Rows are created when first touched. Updates that do not touch a row do not change it.
//
// A worker may also read any rows. It is answered once its last push has been applied.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/status.h"
#include "common/tables/row_sum.h"
#include "common/tables/row_table.h"
#include "common/training_state.h"
#include "ps/policy/consistency.h"
#include "ps/policy/consistency_state.h"
#include "ps/policy/membership.h"
#include "ps/tables/key_lists.h"

namespace syncopate::ps {

// The description of a table that the chief sends when it joins.
struct TableOwnership {
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  std::uint64_t rows_a_step = 0;
  float limit = 0;
  std::uint64_t number = 0;  // among the model's tables: its rows begin, divide among shards, and are saved under it
};

// Fails with invalid argument if a table cannot be like that, or if a step's rows would not fit in a message (512 MiB).
Status check(const TableOwnership& claim);

struct TableShardOptions {
  TableOwnership claim;
  std::size_t shard = 0;  // of
  std::size_t shards = 1;
  Consistency consistency;  // of a kind that serves tables, without backup workers
  OptimizerConfig optimizer;
  std::uint64_t seed = 1;  // seeds the first values of rows
};

struct PullRequest {
  int worker = 0;
  std::size_t table = 0;
  std::int64_t clock = 0;  // pushes of this worker before
  std::size_t slot = 0;    // where the list of keys is kept
  bool known = false;      // the list lies there already, and `keys` is empty
  RowKeys keys;
};

struct RowsPush {
  Step step;
  std::size_t table = 0;
  std::span<const float> gradients;  // of the rows of its last pull
};

struct ReadRequest {
  int worker = 0;
  std::size_t table = 0;
  std::uint64_t read = 0;  // the worker's number for it, repeated in the response
  RowKeys keys;
};

struct TableCounters {
  std::int64_t pushes = 0;         // accepted
  std::int64_t staleness_sum = 0;  // over pushes
  std::int64_t staleness_max = 0;
  std::int64_t rows_pulled = 0;
  std::int64_t rows_pushed = 0;
};

class TableShard {
 public:
  // `members` must outlive this object. `options.claim` must have passed check().
  TableShard(const TableShardOptions& options, const Membership& members);

  // Restores from what save() or a checkpoint has stored, of which it takes the rows that lie here. Call it before
  // anything else. Fails as RowTable::restore does.
  Status restore(const TrainingState& state);
  // Adds to `state` all that this part of the table must remember. A held push is not saved.
  void save(TrainingState& state) const;

  // Both fail with invalid argument, and change nothing, if the request cannot be valid; any other failure is of
  // memory. The keys are copied. Gradients are either used within the call or held: they must stay valid while
  // has_pending_gradient(worker).
  Status pull(const PullRequest& request);
  Status push(const RowsPush& request);
  // Removes a lost worker. What is held of it is dropped.
  void lose(int worker);
  // Makes the update that is due if fewer workers are now waited for.
  Status update_if_all_pushed();

  // The number of pushes received from the worker so far.
  std::int64_t clock(int worker) const { return rule_.clock(worker); }
  // The worker's gradients are held for an update that waits for others.
  bool has_pending_gradient(int worker) const { return of(worker).holds; }
  // The worker has pulled, and has not got its rows yet.
  bool has_pending_pull(int worker) const { return of(worker).phase == Phase::kPulling; }
  // The worker has not got the rows of a pull, or of a read request.
  bool has_pending_request(int worker) const { return has_pending_pull(worker) || of(worker).asks; }
  // The worker's pull is pending, and its response is due.
  bool may_respond(int worker) const;
  // No rows may go to `worker` before `other` has pushed again, however few make an update.
  bool waits_for(int worker, int other) const { return rule_.waits_for(worker, other); }

  // What a response to `worker` sent now says. It carries read(keys). The call counts the response as sent.
  struct Answer {
    std::int64_t clock = 0;      // pushes of the worker so far
    std::int64_t staleness = 0;  // of the last of them: updates between its pull and itself
    RowKeys keys;
  };
  Answer answer(int worker);

  // The worker requests rows, one list at a time. Fails as pull does.
  Status ask(const ReadRequest& request);
  bool may_answer_ask(int worker) const { return of(worker).asks && !has_pending_gradient(worker); }
  struct Asked {
    std::uint64_t read = 0;
    RowKeys keys;
  };
  Asked answer_ask(int worker);

  // Returns the keys of the existing rows from `offset` on, at most kKeysAPage, as of the moment at which the worker
  // asked for offset 0. Fails with invalid argument if there are none at `offset`.
  struct Page {
    RowKeys keys;  // valid until the next call
    std::size_t total = 0;
  };
  static constexpr std::size_t kKeysAPage = 64 * 1024;
  Result<Page> list(int worker, std::size_t offset);

  // Reads the weights of rows, (keys, width). Creates rows that do not exist yet.
  Status read(RowKeys keys, std::span<float> values) { return rows_.read(keys, values); }

  std::size_t width() const { return static_cast<std::size_t>(options_.claim.width); }
  std::int64_t version() const { return version_; }  // updates so far
  std::uint64_t number() const { return options_.claim.number; }
  const RowTable& rows() const { return rows_; }
  const TableCounters& counters() const { return counters_; }

 private:
  enum class Phase { kIdle, kPulling, kHasRows };

  struct Worker {
    Phase phase = Phase::kIdle;
    std::size_t slot = 0;      // of the last pull's list
    std::int64_t version = 0;  // of its last response
    std::int64_t staleness = 0;
    bool may_skip = false;  // it may skip pushes: none has arrived since the job went on
    bool holds = false;     // holds the next three, if updates are made together
    std::size_t pushed_slot = 0;
    std::span<const float> gradients;
    double learning_rate = 0;
    std::array<std::vector<RowKey>, kKeyListSlots> lists;
    std::bitset<kKeyListSlots> stored;
    bool asks = false;       // for
    std::uint64_t read = 0;  // the number of the read request
    std::vector<RowKey> asked;
    std::vector<RowKey> listed;  // the keys that pages are taken from

    RowKeys keys() const { return lists[slot]; }
  };

  Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  const Worker& of(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  Status check_pull(const PullRequest& request) const;
  Status check_push(const RowsPush& request) const;
  Status check_keys(RowKeys keys) const;
  Status update(RowKeys keys, std::span<const float> gradients, double learning_rate, float scale);

  TableShardOptions options_;
  const Membership& members_;
  RowTable rows_;
  std::int64_t version_ = 0;
  ConsistencyState rule_;
  std::vector<Worker> workers_;
  RowSum sum_;
  std::vector<SparseRows> by_rank_;  // of the update under way

  TableCounters counters_;
};

}  // namespace syncopate::ps
