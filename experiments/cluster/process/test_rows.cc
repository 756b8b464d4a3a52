#include "experiments/cluster/process/test_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/text/format.h"
#include "worker/data/batch_loader.h"

namespace syncopate::experiments {
namespace {

void sort_and_unite(std::vector<RowKey>& keys) {
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

// Collects keys that occur many times, in memory for little more than the distinct ones.
class KeySet {
 public:
  void add(RowKeys keys) {
    keys_.insert(keys_.end(), keys.begin(), keys.end());
    if (keys_.size() < 2 * different_ + kSlack) return;
    sort_and_unite(keys_);
    different_ = keys_.size();
  }
  std::vector<RowKey> take() {
    sort_and_unite(keys_);
    return std::move(keys_);
  }

 private:
  static constexpr std::size_t kSlack = 1 << 20;
  std::vector<RowKey> keys_;
  std::size_t different_ = 0;  // at the last sort
};

// Reads batches of `data`, of a model's size, one after the other.
class Batches {
 public:
  Batches(const worker::Dataset& data, int batch_size)
      : data_(data),
        indices_(static_cast<std::size_t>(batch_size)),
        values_(indices_.size() * static_cast<std::size_t>(data.form().values())),
        ids_(indices_.size() * static_cast<std::size_t>(data.form().id_columns())),
        labels_(indices_.size() * static_cast<std::size_t>(data.form().labels)) {}

  // Returns the batch of samples first, first + apart, ..., of which those behind the last are the last. Valid until
  // the next call.
  worker::BatchView read(std::int64_t first, std::int64_t apart) {
    for (std::size_t i = 0; i < indices_.size(); ++i) {
      indices_[i] = std::min(first + static_cast<std::int64_t>(i) * apart, data_.size() - 1);
    }
    worker::read_batch(data_, indices_, 0, {.values = values_, .ids = ids_, .labels = labels_});
    return {values_, labels_, ids_};
  }

 private:
  const worker::Dataset& data_;
  std::vector<std::int64_t> indices_;
  std::vector<float> values_;
  std::vector<int> ids_, labels_;
};

Status no_tables() { return Status::invalid_argument("this strategy has no row-sparse tables"); }

}  // namespace

std::size_t bytes_of_rows(const ParamLayout& layout, const TableKeys& rows) {
  std::size_t bytes = 0;
  for (std::size_t table = 0; table < rows.size(); ++table) {
    bytes += rows[table].size() * layout.tensors()[table].width() * sizeof(float);
  }
  return bytes;
}

Result<TableKeys> test_rows(worker::Model& model, const worker::Dataset& test) {
  std::vector<KeySet> sets(model.layout().tables().size());
  if (sets.empty()) return TableKeys();
  Batches batches(test, model.batch_size());
  for (std::int64_t begin = 0; begin < test.size(); begin += model.batch_size()) {
    const std::span<const RowKeys> touched = model.touched_rows(batches.read(begin, 1));
    for (std::size_t table = 0; table < sets.size(); ++table) sets[table].add(touched[table]);
  }
  TableKeys rows;
  for (KeySet& set : sets) rows.push_back(set.take());
  const std::size_t bytes = bytes_of_rows(model.layout(), rows);
  if (bytes <= kMostSnapshotBytes) return rows;
  return Status::invalid_argument(
      fmt::format("evaluation needs {} of rows, those that the test set touches, and at most {} are sent: use "
                  "a smaller test set, narrower embeddings (--model) or fewer --table-rows",
                  format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(kMostSnapshotBytes))));
}

std::vector<double> rows_a_step(worker::Model& model, const worker::Dataset& train) {
  constexpr std::int64_t kBatches = 4;
  std::vector<double> rows(model.layout().tables().size());
  Batches batches(train, model.batch_size());
  // Samples may lie in the order of their ids.
  const std::int64_t apart = std::max<std::int64_t>(1, train.size() / model.batch_size());
  for (std::int64_t batch = 0; batch < kBatches; ++batch) {
    const std::span<const RowKeys> touched = model.touched_rows(batches.read(batch * apart / kBatches, apart));
    for (std::size_t table = 0; table < rows.size(); ++table) {
      rows[table] += static_cast<double>(touched[table].size()) / kBatches;
    }
  }
  return rows;
}

Result<RowsToKeep> rows_to_keep(const ParamLayout& layout, const TableKeys& test, SyncStrategy& strategy,
                                std::size_t most_bytes) {
  TableKeys all;
  TableReader* const reader = strategy.table_reader();
  if (reader == nullptr && !test.empty()) return no_tables();
  for (std::size_t table = 0; table < test.size(); ++table) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<RowKey> touched, reader->touched_rows(table));
    std::ranges::set_union(test[table], touched, std::back_inserter(all.emplace_back()));
  }
  const std::size_t bytes = bytes_of_rows(layout, all);
  if (bytes <= most_bytes) return RowsToKeep{std::move(all), ""};
  return RowsToKeep{
      test, fmt::format("those that the test set touches: all that were ever touched take {}, more than {}",
                        format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(most_bytes)))};
}

Result<std::vector<float>> snapshot_values(const ParamLayout& layout, const TableKeys& rows,
                                           std::span<const float> weights, SyncStrategy& strategy) {
  const ParamLayout snapshot = snapshot_layout(layout, rows);
  std::vector<float> values(snapshot.size());
  std::ranges::copy(slice(weights, layout.dense()), values.begin());
  const std::span<const TensorSpec> tables = std::span(snapshot.tensors()).last(rows.size());
  TableReader* const reader = strategy.table_reader();
  if (reader == nullptr && !rows.empty()) return no_tables();
  for (std::size_t table = 0; table < rows.size(); ++table) {
    SYNCOPATE_RETURN_IF_ERROR(
        reader->read_rows(table, rows[table], slice(std::span<float>(values), tables[table].range)));
  }
  return values;
}

}  // namespace syncopate::experiments
