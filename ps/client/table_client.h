// TableClient: the worker's side of row-sparse tables: asks the shards for the rows of a step, puts them into the
// table's room in the arena, and sends their gradients. Part of a PsStrategy, which receives, waits, and counts what is
// due.
//
//   begin_step   one Pull a shard and table ───────▶   the list of keys is kept in a slot
//   rows scattered to their places         ◀───────   Rows, when the consistency allows
//   push         one PushRows a shard ─────────────▶   for the same list; its answer are the next step's Rows
//
// The compute thread's, as all of a strategy.
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
  // `sender` and `traffic` outlive this object.
  TableClient(ShardSender& sender, StepTraffic& traffic) : sender_(sender), traffic_(traffic) {}

  // Takes memory for what is sent: as much as each table's room, and a key for each of its rows. Fails with invalid
  // argument where a table cannot be served, and with resource exhausted.
  Status allocate(Transport& transport, const ParamLayout& layout, const ParamArenas& arenas);
  std::size_t tables() const { return tables_.size(); }
  // The whole room of a table, with the padding behind it.
  Range room_of(std::size_t table) const { return tables_[table].room; }

  // Tells `shard` what the tables are like: behind the join of who describes chunks.
  Status describe_to(int shard);
  // Whether a welcome of `shard` says of each table how many pushes of this worker have been applied.
  bool accept(const wire::Welcome& welcome, int shard);
  // The pushes that all shards' parts of all tables have had; at least one table.
  std::int64_t least_pushed() const;
  // Goes on behind `rounds` pushes; those that a shard has had beyond them are not made again.
  void take_up(std::int64_t rounds);

  // Asks for the rows of a step: tables() answers of each shard are due from then on.
  Status begin_step(const StepContext& step);
  // Whether rows of `range` are still due.
  bool awaits(Range range) const;
  bool awaits(int shard) const;
  // Sends the gradients in a table's room. Fails with internal if the step's rows have not come before.
  Status push(std::size_t table, double learning_rate);
  // Whether `message`, which carries `rows`, is an answer that is due: the rows are then in the arena.
  bool accept(const wire::Rows& rows, const Message& message, int shard);

  // Reading. Each asks all shards; the answers are due until reads_due() is false.
  std::size_t rows_a_step(std::size_t table) const { return tables_[table].rows_a_step; }
  std::size_t width(std::size_t table) const { return tables_[table].width; }
  // Rows, at most rows_a_step, into `values`, which stays until they are there.
  Status ask_rows(std::size_t table, RowKeys keys, std::span<float> values);
  // Keys of all rows that there are; ascending in listed() once they are there.
  Status ask_keys(std::size_t table);
  std::vector<RowKey> listed();
  bool reads_due() const;
  bool accept(const wire::RowsRead& read, const Message& message, int shard);
  // Asks for the next page where there is one.
  Result<bool> accept(const wire::RowsListed& listed, const Message& message, int shard);

  // Nothing more will be read.
  Status say_goodbye();

 private:
  struct Table {
    std::size_t rows = 0;
    std::size_t rows_a_step = 0;
    std::size_t width = 0;
    float limit = 0;
    Range room;
    RowPartition partition;                 // of the step's rows
    KeyLists lists = {};                    // that the shards hold
    std::int64_t rounds = 0;                // of pushes, to all shards
    std::vector<std::int64_t> pushes = {};  // by shard
    std::vector<std::int64_t> begun = {};   // by shard: pushes of earlier generations
    std::vector<bool> due = {};             // by shard: rows
    std::size_t shards_due = 0;
    std::span<RowKey> keys = {};      // as they are sent, shard by shard
    std::span<float> gradients = {};  // the same
    PendingSends keys_pending = {};
    PendingSends gradients_pending = {};
  };

  // What is read now.
  struct Reading {
    std::uint64_t number = 0;
    std::size_t table = 0;
    bool of_keys = false;
    RowPartition partition;
    std::span<float> values;
    std::vector<bool> due;            // by shard
    std::vector<std::size_t> listed;  // by shard: keys that have come
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
