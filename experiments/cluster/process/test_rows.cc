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

// Visits all of `data` in batches of the model's size; the last is filled up with its last sample.
template <typename Visit>
void each_batch(const worker::Dataset& data, int batch_size, Visit visit) {
  const worker::SampleForm& form = data.form();
  const auto batch = static_cast<std::size_t>(batch_size);
  std::vector<std::int64_t> indices(batch);
  std::vector<float> values(batch * static_cast<std::size_t>(form.values()));
  std::vector<int> ids(batch * static_cast<std::size_t>(form.id_columns()));
  std::vector<int> labels(batch * static_cast<std::size_t>(form.labels));
  for (std::int64_t begin = 0; begin < data.size(); begin += batch_size) {
    for (std::size_t i = 0; i < batch; ++i) {
      indices[i] = std::min(begin + static_cast<std::int64_t>(i), data.size() - 1);
    }
    worker::read_batch(data, indices, 0, {.values = values, .ids = ids, .labels = labels});
    visit(worker::BatchView{values, labels, ids});
  }
}

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
  each_batch(test, model.batch_size(), [&](const worker::BatchView& batch) {
    const std::span<const RowKeys> touched = model.touched_rows(batch);
    for (std::size_t table = 0; table < sets.size(); ++table) sets[table].add(touched[table]);
  });
  TableKeys rows;
  for (KeySet& set : sets) rows.push_back(set.take());
  const std::size_t bytes = bytes_of_rows(model.layout(), rows);
  if (bytes <= kMostSnapshotBytes) return rows;
  return Status::invalid_argument(
      fmt::format("evaluation needs {} of rows, those that the test set touches, and at most {} are sent: use "
                  "a smaller test set, narrower embeddings (--model) or fewer --table-rows",
                  format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(kMostSnapshotBytes))));
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
