// Shard: what one parameter-server shard decides and computes: who has joined, which push updates which chunk and when,
// who is answered with what. No I/O, no threads, no time: messages in, the answers that are now due out.
//
// What comes from outside is checked: a call with a message that cannot be right fails with invalid argument, says why,
// and changes nothing. Any other failure (memory) is the end of the shard. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/training_state.h"
#include "ps/policy/consistency.h"
#include "ps/policy/membership.h"
#include "ps/server/chunk.h"
#include "ps/server/table_shard.h"
#include "ps/server/weights_pool.h"

namespace syncopate::ps {

struct ShardOptions {
  int workers = 1;
  Consistency consistency;
  OptimizerConfig optimizer;
  StalenessOptions staleness;
  // Of tables.
  std::size_t shard = 0;  // which this is, of
  std::size_t shards = 1;
  std::uint64_t seed = 1;  // of rows' first values
  // By worker, whether it is in the job; empty: all are. Who is not counts as lost.
  std::vector<bool> there = {};
  // What the shard goes on from, in one piece or of several shards; it outlives the start of the job. None: the chief,
  // the lowest worker there, brings the initial weights.
  const TrainingState* restored = nullptr;
};

struct Answer {
  enum class Kind {
    kWelcome,   // to a join; the weights of all chunks follow
    kReject,    // to a join; the reason is refusal()
    kWeights,   // of one chunk: to a push, or behind a welcome or a farewell
    kFarewell,  // to a leave; the final weights of all chunks follow
    kRows,      // of one table: to a pull
    kRowsRead,  // of one table: to a worker's wish to read
  };
  Kind kind = Kind::kWeights;
  int worker = 0;
  std::size_t chunk = 0;
  Chunk::Answer weights;    // of kWeights
  bool greets = false;      // behind a welcome or a farewell
  std::size_t table = 0;    // of the last two kinds
  TableShard::Answer rows;  // of the last two kinds; to be read before the next call
  std::uint64_t read = 0;   // of kRowsRead
};

struct ShardCounters {
  std::int64_t pushes = 0;         // of chunks and of rows of a table; accepted
  std::int64_t late = 0;           // of these: dropped, since their update had been made
  std::int64_t updates = 0;        // of chunks and of tables
  std::int64_t staleness_sum = 0;  // over pushes that were applied
  std::int64_t staleness_max = 0;
  std::int64_t copies = 0;  // updates that could not be made in place
  std::int64_t workers_lost = 0;
  // Of tables.
  std::int64_t rows_pulled = 0;
  std::int64_t rows_pushed = 0;
  std::int64_t rows_made = 0;
  std::int64_t table_bytes = 0;  // memory of these rows, of what is remembered of them and of the index
};

class Shard {
 public:
  Shard(ShardOptions options, WeightsPool::Allocate allocate, WeightsPool::Settle settle);

  // The answers that a call has made due, valid until the next call. Send each from its weights in place.
  using Answers = Result<std::span<const Answer>>;

  // All are answered once every live worker has joined and the weights are there: with a welcome, or with a rejection
  // if they claim different arenas or the chief is lost.
  Answers on_join(int worker, const ArenaClaim& claim);

  // By who describes chunks, before these: ranges of the arena that weight decay leaves out, begin and end of each,
  // ascending. What another worker has said already is not looked at.
  Answers on_undecayed(int worker, std::span<const std::uint64_t> bounds);

  // The chief's weights of one chunk, `range` of the arena, in the order of chunks, once it has joined. They are
  // copied. In a job that goes on every worker says which chunks there are, the first for all, and `weights` are not
  // looked at.
  Answers on_initial(int worker, std::size_t chunk, Range range, std::span<const float> weights);

  // See Chunk::push.
  Answers on_push(const PushRequest& request);

  // The account of one table, in their order, by who describes chunks.
  Answers on_table(int worker, std::size_t table, const TableClaim& claim);

  // See TableShard.
  Answers on_pull(const PullRequest& request);
  Answers on_rows_push(const RowsPush& request);
  // Until the worker's goodbye. Rows are an answer, keys what is returned.
  Answers on_read_rows(const ReadRequest& request);
  Result<TableShard::Page> on_list_rows(int worker, std::size_t table, std::size_t offset);

  // The worker will push no more; it is answered once no live worker is left. Where there are tables, it may then go on
  // reading.
  Answers on_leave(int worker);

  // The worker, behind its farewell, will read no more.
  Answers on_goodbye(int worker);

  // The worker is gone: it is answered no more, nobody waits for it. Knows no failure for one that had gone before.
  Answers on_worker_lost(int worker);

  bool holds_gradient(int worker, std::size_t chunk) const { return chunks_[chunk].holds_gradient(worker); }
  bool holds_rows(int worker, std::size_t table) const { return tables_[table].holds_gradient(worker); }
  // Every worker has had its last answer, and where there are tables has said goodbye, or is lost.
  bool done() const { return members_.done(); }
  // Why the job could not start; empty if it has started, or still may.
  const std::string& refusal() const { return members_.refusal(); }

  // Whether all chunks and tables are there, so that there is something to save.
  bool complete() const { return laid_out_ && created_ == chunks_.size() && tables_.size() == claim_.tables; }
  // Adds to `state` all that the shard must remember to go on, and as its step the one that the slowest worker goes on
  // with. Pushes that are held are no part of it. To be called when complete().
  void save(TrainingState& state) const;
  // The same for one chunk, or for one table.
  void save_chunk(std::size_t chunk, TrainingState& state) const { chunks_[chunk].save(ranges_[chunk].begin, state); }
  void save_table(std::size_t table, TrainingState& state) const { tables_[table].save(state); }
  const Consistency& consistency() const { return options_.consistency; }
  const Membership& members() const { return members_; }

  // Known once a worker that describes them has joined.
  bool is_laid_out() const { return laid_out_; }
  std::size_t chunks() const { return chunks_.size(); }
  const Chunk& chunk(std::size_t index) const { return chunks_[index]; }
  Range range(std::size_t chunk) const { return ranges_[chunk]; }  // of the arena; once it has been described
  std::size_t tables() const { return tables_.size(); }
  TableShard& table(std::size_t index) { return tables_[index]; }
  const TableShard& table(std::size_t index) const { return tables_[index]; }
  ShardCounters counters() const;

 private:
  Status lay_out(const ArenaClaim& claim);
  Status check_describes(int worker, std::uint64_t number, std::string_view what) const;
  Status check_range(std::size_t chunk, Range range) const;
  Status create(std::size_t chunk, Range range, std::span<const float> weights);
  Status create(std::size_t table, const TableClaim& claim);
  bool all_have_described() const;
  std::int64_t slowest_step() const;
  Status check_trains(int worker, std::size_t table) const;
  Status check_reads(int worker, std::size_t table) const;
  bool owes_any(int worker) const;

  // Adds what has become due to due_: of the start, of one chunk, of the end.
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
  std::deque<Chunk> chunks_;
  std::vector<Range> ranges_;           // of the arena, of those that are created
  std::vector<std::size_t> described_;  // by worker: chunks and tables that it has told of
  std::size_t created_ = 0;             // of chunks_, in order
  std::uint64_t created_size_ = 0;      // floats of these
  std::deque<TableShard> tables_;
  bool ended_ = false;  // farewells have been said
  std::vector<Answer> due_;
  std::int64_t workers_lost_ = 0;
};

}  // namespace syncopate::ps
