#include "ps/client/table_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ps/server/table_shard.h"
#include "ps/transport_memory.h"

namespace syncopate::ps {
namespace {

// values[i] to row places[i] of `rows`, and back.
void scatter(const std::byte* values, std::span<const std::uint32_t> places, std::size_t width, std::span<float> rows) {
  for (const std::uint32_t place : places) {
    std::memcpy(rows.data() + place * width, values, width * sizeof(float));
    values += width * sizeof(float);
  }
}
void gather(std::span<const float> rows, std::span<const std::uint32_t> places, std::size_t width, float* values) {
  for (const std::uint32_t place : places) values = std::copy_n(rows.data() + place * width, width, values);
}
// keys[places[i]], into `out` from its beginning.
std::span<const RowKey> pick(RowKeys keys, std::span<const std::uint32_t> places, std::span<RowKey> out) {
  std::ranges::transform(places, out.begin(), [&](std::uint32_t place) { return keys[place]; });
  return out.first(places.size());
}

}  // namespace

Status TableClient::allocate(Transport& transport, const ParamLayout& layout, const ParamArenas& arenas) {
  arenas_ = arenas;
  const std::span<const TensorSpec> specs = layout.tables();
  if (specs.size() > kMostTables) {
    return Status::invalid_argument(
        fmt::format("{} row-sparse tables: parameter servers serve at most {}", specs.size(), kMostTables));
  }
  const auto shards = static_cast<std::size_t>(sender_.group().shards());
  for (const TensorSpec& spec : specs) {
    const auto rows_a_step = static_cast<std::size_t>(spec.table->rows_a_step);
    SYNCOPATE_RETURN_IF_ERROR(
        check({.rows = spec.rows(), .width = spec.width(), .rows_a_step = rows_a_step, .limit = spec.table->limit})
            .in(spec.name));
    const std::size_t number = spec.table->number;
    Table& table = tables_.emplace_back(Table{.number = number,
                                              .rows = spec.rows(),
                                              .rows_a_step = rows_a_step,
                                              .width = spec.width(),
                                              .limit = spec.table->limit,
                                              .room = spec.padded(),
                                              .partition = RowPartition(number, shards)});
    table.due.resize(shards);
    table.pushes.resize(shards);
    table.begun.resize(shards);
    SYNCOPATE_ASSIGN_OR_RETURN(table.keys, allocate_keys(transport, rows_a_step));
    SYNCOPATE_ASSIGN_OR_RETURN(table.gradients, allocate_floats(transport, spec.range.size()));
  }
  return Status();
}

Status TableClient::describe_to(int shard) {
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    wire::Table& claim = *sender_.header().mutable_table();
    claim.set_table(i);
    claim.set_rows(tables_[i].rows);
    claim.set_width(tables_[i].width);
    claim.set_rows_a_step(tables_[i].rows_a_step);
    claim.set_limit(tables_[i].limit);
    claim.set_number(tables_[i].number);
    SYNCOPATE_RETURN_IF_ERROR(sender_.send(shard, {}, nullptr));
  }
  return Status();
}

bool TableClient::accept(const wire::Welcome& welcome, int shard) {
  const auto number = static_cast<std::size_t>(shard);
  if (static_cast<std::size_t>(welcome.table_clocks_size()) != tables_.size()) return false;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const std::int64_t pushes = welcome.table_clocks(static_cast<int>(i));
    if (pushes < 0) return false;
    tables_[i].pushes[number] = tables_[i].begun[number] = pushes;
  }
  return true;
}

std::int64_t TableClient::least_pushed() const {
  std::int64_t least = tables_[0].pushes[0];
  for (const Table& table : tables_) least = std::min(least, std::ranges::min(table.pushes));
  return least;
}

void TableClient::take_up(std::int64_t rounds) {
  for (Table& table : tables_) table.rounds = rounds;
}

Status TableClient::begin_step(const StepContext& step) {
  if (step.rows.size() != tables_.size()) {
    return Status::invalid_argument(
        fmt::format("rows of {} tables, where the layout has {}", step.rows.size(), tables_.size()));
  }
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (step.rows[i].size() > tables_[i].rows_a_step) {
      return Status::invalid_argument(
          fmt::format("{} rows of table {}: at most {}", step.rows[i].size(), i, tables_[i].rows_a_step));
    }
    SYNCOPATE_RETURN_IF_ERROR(pull(i, step.rows[i]));
  }
  return Status();
}

Status TableClient::pull(std::size_t index, RowKeys keys) {
  Table& table = tables_[index];
  // What they were sent for last has been answered: so this returns at once.
  SYNCOPATE_RETURN_IF_ERROR(sender_.wait(table.keys_pending));
  table.partition.split(keys);
  const KeyLists::Place place = table.lists.place(keys);
  std::span<RowKey> free = table.keys;
  for (int shard = 0; shard < sender_.group().shards(); ++shard) {
    wire::Pull& pull = *sender_.header().mutable_pull();
    pull.set_table(index);
    pull.set_clock(table.pushes[static_cast<std::size_t>(shard)]);
    pull.set_slot(place.slot);
    pull.set_known(place.known);
    std::span<const RowKey> sent;
    if (!place.known) {
      sent = pick(keys, table.partition.places_of(static_cast<std::size_t>(shard)), free);
      free = free.subspan(sent.size());
    }
    SYNCOPATE_RETURN_IF_ERROR(sender_.send(shard, std::as_bytes(sent), &table.keys_pending));
    traffic_.sent(sent.size_bytes());
    table.due[static_cast<std::size_t>(shard)] = true;
    ++table.shards_due;
  }
  return Status();
}

bool TableClient::awaits(Range range) const {
  return std::ranges::any_of(tables_,
                             [&](const Table& table) { return table.shards_due > 0 && overlap(table.room, range); });
}

bool TableClient::awaits(int shard) const {
  const auto number = static_cast<std::size_t>(shard);
  return std::ranges::any_of(tables_, [&](const Table& table) { return table.due[number]; }) ||
         (reading_ && reading_->due[number]);
}

Status TableClient::push(std::size_t index, double learning_rate) {
  Table& table = tables_[index];
  if (table.shards_due > 0) return Status::internal("gradients of rows that have not come yet");
  // This step's rows came from who had read the last step's gradients: so this returns at once.
  SYNCOPATE_RETURN_IF_ERROR(sender_.wait(table.gradients_pending));
  std::span<float> free = table.gradients;
  const std::int64_t round = table.rounds++;
  for (int shard = 0; shard < sender_.group().shards(); ++shard) {
    std::int64_t& pushes = table.pushes[static_cast<std::size_t>(shard)];
    if (pushes > round) continue;  // made before the shard was lost, and applied
    const std::span<const std::uint32_t> places = table.partition.places_of(static_cast<std::size_t>(shard));
    const std::span<float> sent = free.first(places.size() * table.width);
    free = free.subspan(sent.size());
    gather(slice(arenas_.gradients, table.room), places, table.width, sent.data());
    wire::PushRows& push = *sender_.header().mutable_push_rows();
    push.set_table(index);
    push.set_clock(++pushes);
    push.set_learning_rate(learning_rate);
    SYNCOPATE_RETURN_IF_ERROR(sender_.send(shard, std::as_bytes(sent), &table.gradients_pending));
    traffic_.sent(sent.size_bytes());
  }
  return Status();
}

bool TableClient::accept(const wire::Rows& rows, const Message& message, int shard) {
  const auto number = static_cast<std::size_t>(shard);
  if (rows.table() >= tables_.size() || !tables_[rows.table()].due[number]) return false;
  Table& table = tables_[rows.table()];
  const std::span<const std::uint32_t> places = table.partition.places_of(number);
  if (rows.clock() != table.pushes[number] || rows.staleness() < 0 ||
      message.payload().size() != places.size() * table.width * sizeof(float)) {
    return false;
  }
  scatter(message.payload().data(), places, table.width, slice(arenas_.weights, table.room));
  table.due[number] = false;
  --table.shards_due;
  traffic_.received(message.payload().size());
  if (table.pushes[number] != table.begun[number]) traffic_.answered(rows.staleness(), false);
  return true;
}

Status TableClient::ask_rows(std::size_t index, RowKeys keys, std::span<float> values) {
  const auto shards = static_cast<std::size_t>(sender_.group().shards());
  reading_.emplace(Reading{.number = ++reads_,
                           .table = index,
                           .partition = RowPartition(tables_[index].number, shards),
                           .values = values,
                           .due = std::vector<bool>(shards)});
  reading_->partition.split(keys);
  Table& table = tables_[index];
  SYNCOPATE_RETURN_IF_ERROR(sender_.wait(table.keys_pending));
  std::span<RowKey> free = table.keys;
  for (int shard = 0; shard < sender_.group().shards(); ++shard) {
    const std::span<const RowKey> sent =
        pick(keys, reading_->partition.places_of(static_cast<std::size_t>(shard)), free);
    free = free.subspan(sent.size());
    wire::ReadRows& read = *sender_.header().mutable_read_rows();
    read.set_table(index);
    read.set_read(reading_->number);
    SYNCOPATE_RETURN_IF_ERROR(sender_.send(shard, std::as_bytes(sent), &table.keys_pending));
    reading_->due[static_cast<std::size_t>(shard)] = true;
  }
  return Status();
}

Status TableClient::ask_keys(std::size_t table) {
  const auto shards = static_cast<std::size_t>(sender_.group().shards());
  reading_.emplace(Reading{.number = ++reads_,
                           .table = table,
                           .of_keys = true,
                           .partition = RowPartition(tables_[table].number, shards),
                           .due = std::vector<bool>(shards),
                           .listed = std::vector<std::size_t>(shards)});
  for (int shard = 0; shard < sender_.group().shards(); ++shard) SYNCOPATE_RETURN_IF_ERROR(ask_page(shard, 0));
  return Status();
}

Status TableClient::ask_page(int shard, std::size_t offset) {
  wire::ListRows& list = *sender_.header().mutable_list_rows();
  list.set_table(reading_->table);
  list.set_offset(offset);
  list.set_read(reading_->number);
  reading_->due[static_cast<std::size_t>(shard)] = true;
  return sender_.send(shard, {}, nullptr);
}

std::vector<RowKey> TableClient::listed() {
  std::ranges::sort(reading_->keys);
  return std::move(reading_->keys);
}

bool TableClient::reads_due() const {
  return reading_ && std::ranges::find(reading_->due, true) != reading_->due.end();
}

bool TableClient::is_read_due(std::uint64_t number, std::size_t table, int shard, bool of_keys) const {
  return reading_ && reading_->number == number && reading_->table == table && reading_->of_keys == of_keys &&
         reading_->due[static_cast<std::size_t>(shard)];
}

bool TableClient::accept(const wire::RowsRead& read, const Message& message, int shard) {
  if (!is_read_due(read.read(), read.table(), shard, false)) return false;
  const std::size_t width = tables_[read.table()].width;
  const std::span<const std::uint32_t> places = reading_->partition.places_of(static_cast<std::size_t>(shard));
  if (message.payload().size() != places.size() * width * sizeof(float)) return false;
  scatter(message.payload().data(), places, width, reading_->values);
  reading_->due[static_cast<std::size_t>(shard)] = false;
  return true;
}

Result<bool> TableClient::accept(const wire::RowsListed& listed, const Message& message, int shard) {
  if (!is_read_due(listed.read(), listed.table(), shard, true)) return false;
  const RowKeys keys = keys_in(message.payload());
  std::size_t& have = reading_->listed[static_cast<std::size_t>(shard)];
  const bool is_whole = message.payload().size() % sizeof(RowKey) == 0;
  if (!is_whole || listed.offset() != have || listed.total() < have + keys.size() ||
      (keys.empty() && listed.total() > have)) {
    return false;
  }
  reading_->keys.insert(reading_->keys.end(), keys.begin(), keys.end());
  have += keys.size();
  reading_->due[static_cast<std::size_t>(shard)] = false;
  if (have < listed.total()) SYNCOPATE_RETURN_IF_ERROR(ask_page(shard, have));
  return true;
}

Status TableClient::say_goodbye() {
  for (int shard = 0; shard < sender_.group().shards(); ++shard) {
    sender_.header().mutable_goodbye();
    SYNCOPATE_RETURN_IF_ERROR(sender_.send(shard, {}, nullptr));
  }
  return Status();
}

}  // namespace syncopate::ps
