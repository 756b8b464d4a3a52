// TableClient: the worker's side of row-sparse tables. It pulls the rows of a step from the shards, puts them into the
// table's range of the arena, and sends their gradients. It is part of a PsStrategy, which receives, waits, and counts
// what is due.
//
//   begin_step   one Pull per shard and table ─────▶   the list of keys is kept in a slot
//   rows scattered to their places         ◀───────   Rows, when the consistency allows
//   push         one PushRows per shard ───────────▶   for the same list; its response is the next step's Rows
//
// Used by the compute thread only, like all of a strategy.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "common/status.h"
#include "common/sync_strategy.h"
#include "common/transport/transport.h"
#include "ps/client/shard_sender.h"
#include "ps/client/step_traffic.h"
#include "ps/tables/key_lists.h"
#include "ps/tables/row_partition.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

class TableClient {
 public:
  // `sender` and `traffic` must outlive this object.
  TableClient(ShardSender& sender, StepTraffic& traffic) : sender_(sender), traffic_(traffic) {}

  // Allocates the memory that is sent from: as many floats as each table's range has, and a key for each of its rows.
  // Fails with invalid argument if a table cannot be served, and with resource exhausted.
  Status allocate(Transport& transport, const ParamLayout& layout, const ParamArenas& arenas);
  std::size_t tables() const { return tables_.size(); }
  // The whole range of a table in the arena, including the padding after it.
  Range room_of(std::size_t table) const { return tables_[table].room; }

  // Describes the tables to `shard`. Sent after the join of the worker that describes chunks.
  Status describe_to(int shard);
  // Returns whether a welcome of `shard` reports for each table how many pushes of this worker have been applied.
  bool accept(const wire::Welcome& welcome, int shard);
  // The least number of applied pushes over all shards' parts of all tables. Requires at least one table.
  std::int64_t least_pushed() const;
  // Goes on after `rounds` pushes. Pushes beyond them that a shard has applied are not repeated.
  void take_up(std::int64_t rounds);

  // Pulls the rows of a step. From then on tables() responses are due from each shard.
  Status begin_step(const StepContext& step);
  // Returns whether rows of `range` are still due.
  bool awaits(Range range) const;
  bool awaits(int shard) const;
  // Sends the gradients in a table's range. Fails with internal if the step's rows have not arrived before.
  Status push(std::size_t table, double learning_rate);
  // Returns whether `message`, which carries `rows`, is a response that is due. If so, the rows are now in the arena.
  bool accept(const wire::Rows& rows, const Message& message, int shard);

  // Reading. Each function asks all shards; responses are due until reads_due() returns false.
  std::size_t rows_a_step(std::size_t table) const { return tables_[table].rows_a_step; }
  std::size_t width(std::size_t table) const { return tables_[table].width; }
  // Asks for rows, at most rows_a_step, to be put into `values`, which must stay valid until they have arrived.
  Status ask_rows(std::size_t table, RowKeys keys, std::span<float> values);
  // Asks for the keys of all existing rows. listed() returns them in ascending order once they have arrived.
  Status ask_keys(std::size_t table);
  std::vector<RowKey> listed();
  bool reads_due() const;
  bool accept(const wire::RowsRead& read, const Message& message, int shard);
  // Also asks for the next page if there is one.
  Result<bool> accept(const wire::RowsListed& listed, const Message& message, int shard);

  // Tells the shards that this worker reads no more.
  Status say_goodbye();

 private:
  struct Table {
    std::size_t number = 0;  // among the model's
    std::size_t rows = 0;
    std::size_t rows_a_step = 0;
    std::size_t width = 0;
    float limit = 0;
    Range room;
    RowPartition partition;                 // of the step's rows
    KeyLists lists = {};                    // that the shards hold
    std::int64_t rounds = 0;                // of pushes to all shards
    std::vector<std::int64_t> pushes = {};  // by shard
    std::vector<std::int64_t> begun = {};   // by shard: pushes of earlier membership epochs
    std::vector<bool> due = {};             // by shard: rows
    std::size_t shards_due = 0;
    std::span<RowKey> keys = {};      // as they are sent, shard by shard
    std::span<float> gradients = {};  // the same
    PendingSends keys_pending = {};
    PendingSends gradients_pending = {};
  };

  // The read that is under way.
  struct Reading {
    std::uint64_t number = 0;
    std::size_t table = 0;
    bool of_keys = false;
    RowPartition partition;
    std::span<float> values;
    std::vector<bool> due;            // by shard
    std::vector<std::size_t> listed;  // by shard: keys that have arrived
    std::vector<RowKey> keys;
  };

  Status pull(std::size_t table, RowKeys keys);
  Status ask_page(int shard, std::size_t offset);
  bool is_read_due(std::uint64_t number, std::size_t table, int shard, bool of_keys) const;

  ShardSender& sender_;
  StepTraffic& traffic_;
  ParamArenas arenas_;
  std::deque<Table> tables_;
  std::optional<Reading> reading_;
  std::uint64_t reads_ = 0;  // so far
};

}  // namespace syncopate::ps
