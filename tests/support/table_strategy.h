// TableStrategy: tables of a layout in memory, to be read as a strategy gives them out; it trains nothing.
#pragma once

#include <vector>

#include "common/sync_strategy.h"
#include "common/tables/row_table.h"

namespace syncopate::testing_support {

class TableStrategy final : public SyncStrategy, public TableReader {
 public:
  TableStrategy(const ParamLayout& layout, std::uint64_t seed) {
    for (std::size_t table = 0; table < layout.tables().size(); ++table) {
      const TensorSpec& tensor = layout.tensors()[table];
      tables_.emplace_back(RowTableOptions{
          .table = table, .width = tensor.width(), .limit = tensor.table->limit, .seed = seed, .optimizer = {}});
    }
  }

  RowTable& table(std::size_t index) { return tables_[index]; }

  TableReader* table_reader() override { return this; }
  Result<ParamArenas> allocate(const ParamLayout& /*layout*/) override { return ParamArenas(); }
  Result<std::vector<Range>> join() override { return std::vector<Range>(); }
  void begin_step(const StepContext& /*step*/) override {}
  void gradient_ready(std::size_t /*bucket*/) override {}
  Result<SyncStats> finish_step() override { return SyncStats(); }
  Status leave() override { return {}; }
  Status read_rows(std::size_t table, RowKeys keys, std::span<float> values) override {
    return tables_[table].read(keys, values);
  }
  Result<std::vector<RowKey>> touched_rows(std::size_t table) override { return tables_[table].keys(); }

 private:
  std::vector<RowTable> tables_;
};

}  // namespace syncopate::testing_support
