#include "common/sync_strategy.h"

namespace syncopate {
namespace {

Status no_tables() { return Status::invalid_argument("this strategy has no row-sparse tables"); }

Status no_state() { return Status::invalid_argument("this strategy cannot be saved and restored"); }

}  // namespace

Status SyncStrategy::refuse_tables(const ParamLayout& layout) {
  return layout.tables().empty() ? Status() : no_tables();
}

Status SyncStrategy::restore(const TrainingState& /*state*/) { return no_state(); }

Status SyncStrategy::save(TrainingState& /*state*/) const { return no_state(); }

Status SyncStrategy::read_rows(std::size_t /*table*/, RowKeys /*keys*/, std::span<float> /*values*/) {
  return no_tables();
}

Result<std::vector<RowKey>> SyncStrategy::touched_rows(std::size_t /*table*/) { return no_tables(); }

}  // namespace syncopate
