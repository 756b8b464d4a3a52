// Shard: the decisions and computations of one parameter-server shard: which workers have joined, which push updates
// which chunk and when, and who is answered with what. No I/O, no threads: calls take messages, or the time, and return
// the responses that are now due.
//
// Messages from outside are checked: a call with a message that cannot be valid fails with invalid argument, says why,
// and changes nothing. Any other failure (memory) is the end of the shard. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/training_state.h"
#include "ps/policy/consistency.h"
#include "ps/policy/host_groups.h"
#include "ps/policy/membership.h"
#include "ps/policy/rate_agreement.h"
#include "ps/server/chunk.h"
#include "ps/server/table_shard.h"
#include "ps/server/weights_pool.h"

namespace syncopate::ps {

struct ShardOptions {
  int workers = 1;
  Consistency consistency;
  OptimizerConfig optimizer;
  StalenessOptions staleness;
  // For tables.
  std::size_t shard = 0;  // number of this shard, of
  std::size_t shards = 1;
  std::uint64_t seed = 1;  // seeds the first values of rows
  // By worker, whether it is in the job; empty means that all are. A worker that is not in the job counts as lost.
  std::vector<bool> there = {};
  // Workers must push the gradients of a step at the same learning rate: answers say where they have not.
  bool agrees_on_rates = false;
  // How gradients of chunks are summed where updates are made together. Where hosts are aggregated, those who push are
  // alone in the job. Rows of tables, which are not aggregated, are summed in the order of ranks.
  HostGroups hosts = {};
  bool leaves_out = false;                   // see ChunkOptions; without tables
  const UpdateFunction* function = nullptr;  // see ChunkOptions; without tables
  // The state that the shard goes on from, of one shard or merged from several; it must outlive the start of the job.
  // Null: the chief, the lowest worker present, brings the initial weights.
  const TrainingState* restored = nullptr;
};

struct Answer {
  enum class Kind {
    kWelcome,   // to a join; the weights of all chunks follow
    kReject,    // to a join; the reason is refusal()
    kWeights,   // of one chunk: to a push, or after a welcome or a farewell
    kFarewell,  // to a leave; the final weights of all chunks follow
    kRows,      // of one table: to a pull
    kRowsRead,  // of one table: to a worker's read request
  };
  Kind kind = Kind::kWeights;
  int worker = 0;
  std::size_t chunk = 0;
  Chunk::Answer weights;                     // for kWeights
  std::optional<RateDifference> rates = {};  // for kWeights, to a push
  bool greets = false;                       // after a welcome or a farewell
  std::size_t table = 0;                     // for the last two kinds
  TableShard::Answer rows;                   // for the last two kinds; must be read before the next call
  std::uint64_t read = 0;                    // for kRowsRead
};

struct ShardCounters {
  std::int64_t pushes = 0;         // accepted pushes of chunks and of rows of a table
  std::int64_t late = 0;           // how many of these were dropped, because their update had been made
  std::int64_t updates = 0;        // of chunks and of tables
  std::int64_t staleness_sum = 0;  // over applied pushes
  std::int64_t staleness_max = 0;
  std::int64_t copies = 0;  // updates that could not be made in place
  std::int64_t workers_lost = 0;
  // For tables.
  std::int64_t rows_pulled = 0;
  std::int64_t rows_pushed = 0;
  std::int64_t rows_made = 0;
  std::int64_t table_bytes = 0;  // memory of these rows, of their optimizer state, and of the index
};

class Shard {
 public:
  Shard(ShardOptions options, WeightsPool::Allocate allocate, WeightsPool::Settle settle);

  // The responses that a call has made due, valid until the next call. Send the weights of each in place.
  using Answers = Result<std::span<const Answer>>;

  // All workers are answered once every live worker has joined and the weights are present: with a welcome, or with a
  // rejection if their arenas differ or the chief is lost.
  Answers on_join(int worker, const ArenaClaim& claim);

  // Sent by the worker that describes chunks, before the chunks: ranges of the arena that weight decay leaves out, as
  // the begin and end of each, ascending. Ignored if another worker has sent them already.
  Answers on_undecayed(int worker, std::span<const std::uint64_t> bounds);

  // Takes the chief's weights of one chunk, `range` of the arena, in the order of chunks, once the chief has joined.
  // The weights are copied. They count as made by `updates` updates; if that is not 0, on_memory has brought what the
  // optimizer remembers of the chunk. In a job that goes on every worker describes the chunks, the first one for all,
  // and `weights` and `updates` are ignored.
  Answers on_initial(int worker, std::size_t chunk, Range range, std::span<const float> weights,
                     std::int64_t updates = 0);

  // Takes one of the optimizer's memories of the chunk whose weights the chief brings next. The values are copied.
  Answers on_memory(int worker, std::size_t chunk, std::size_t memory, std::size_t begin,
                    std::span<const float> values);

  // See Chunk::push. `own_rate`: of the worker's own update, where that of the push is another one.
  Answers on_push(const PushRequest& request, std::optional<double> own_rate = {});

  // Makes the updates whose quorum's grace has passed at `now`.
  Answers on_time(TimePoint now);
  // When on_time() must be called next; the end of time if nothing waits for it.
  TimePoint next_time() const;

  // Takes the description of one table, in the order of tables, from the worker that describes chunks.
  Answers on_table(int worker, std::size_t table, const TableOwnership& claim);

  // See TableShard.
  Answers on_pull(const PullRequest& request);
  Answers on_rows_push(const RowsPush& request);
  // Allowed until the worker's goodbye. Rows are sent as a response; keys are returned.
  Answers on_read_rows(const ReadRequest& request);
  Result<TableShard::Page> on_list_rows(int worker, std::size_t table, std::size_t offset);

  // A worker that awaits no response reads a chunk. With `renews` it has the chunk's current weights from now on, as
  // after a response. save_chunk() then gives what it reads.
  Status on_read_chunk(int worker, std::size_t chunk, bool renews);

  // The worker will push no more. It is answered once no live worker is left. If there are tables, it may then go on
  // reading.
  Answers on_leave(int worker);

  // The worker, after its farewell, will read no more.
  Answers on_goodbye(int worker);

  // The worker is lost: it is not answered any more, and nobody waits for it. Does nothing for a worker that had
  // already left or been lost.
  Answers on_worker_lost(int worker);

  bool has_pending_gradient(int worker, std::size_t chunk) const { return chunks_[chunk].has_pending_gradient(worker); }
  bool has_pending_rows(int worker, std::size_t table) const { return tables_[table].has_pending_gradient(worker); }
  // Every worker is lost, or has had its last response and, if there are tables, has said goodbye.
  bool done() const { return members_.done(); }
  // Why the job could not start. Empty if it has started, or still may.
  const std::string& refusal() const { return members_.refusal(); }

  // Whether all chunks and tables exist, so that there is something to save.
  bool complete() const { return laid_out_ && created_ == chunks_.size() && tables_.size() == claim_.tables; }
  // Adds to `state` all that the shard must remember to go on. The state's step is the one that the slowest worker goes
  // on with. Held pushes are not saved. Requires complete().
  void save(TrainingState& state) const;
  // The same for one chunk or one table.
  void save_chunk(std::size_t chunk, TrainingState& state) const { chunks_[chunk].save(ranges_[chunk].begin, state); }
  void save_table(std::size_t table, TrainingState& state) const { tables_[table].save(state); }
  const Consistency& consistency() const { return options_.consistency; }
  const Membership& members() const { return members_; }

  // True once a worker that describes chunks has joined.
  bool is_laid_out() const { return laid_out_; }
  std::size_t chunks() const { return chunks_.size(); }
  const Chunk& chunk(std::size_t index) const { return chunks_[index]; }
  Range range(std::size_t chunk) const { return ranges_[chunk]; }  // of the arena; known once it has been described
  std::size_t tables() const { return tables_.size(); }
  TableShard& table(std::size_t index) { return tables_[index]; }
  const TableShard& table(std::size_t index) const { return tables_[index]; }
  ShardCounters counters() const;

 private:
  Status lay_out(const ArenaClaim& claim);
  Status check_describes(int worker, std::uint64_t number, std::string_view what) const;
  Status check_range(std::size_t chunk, Range range) const;
  Status create(std::size_t chunk, Range range, std::span<const float> weights, std::int64_t updates);
  Status begin_with(std::size_t chunk, Range range, std::span<const float> weights, std::int64_t updates);
  Status create(std::size_t table, const TableOwnership& claim);
  bool all_have_described() const;
  std::int64_t slowest_step() const;
  Status check_trains(int worker, std::size_t table) const;
  Status check_reads(int worker, std::size_t table) const;
  bool has_pending_pull(int worker) const;

  // These add what has become due to due_.
  void start_if_all_joined();
  void answer_pushes(std::size_t chunk);
  void answer_pulls(std::size_t table);
  Status end_if_all_left();
  void answer(int worker, std::size_t chunk, bool greets = false);
  Answers due_after_departure();

  ShardOptions options_;
  WeightsPool pool_;
  Membership members_;
  bool laid_out_ = false;  // from a worker's claim
  ArenaClaim claim_;
  std::vector<Range> undecayed_;  // of the arena
  TrainingState brought_;         // the optimizer's memories of the next chunk
  std::deque<Chunk> chunks_;
  std::vector<Range> ranges_;           // of the arena; of the created chunks
  std::vector<std::size_t> described_;  // by worker: chunks and tables that it has described
  std::size_t created_ = 0;             // the number of chunks_ created, in order
  std::uint64_t created_size_ = 0;      // floats of these
  std::deque<TableShard> tables_;
  bool ended_ = false;  // farewells have been sent
  RateAgreement rates_;
  std::vector<double> stated_rates_;  // by worker, of its last push
  std::vector<Answer> due_;
  std::int64_t workers_lost_ = 0;
};

}  // namespace syncopate::ps
