#include "common/sync_strategy.h"

namespace syncopate {

Status SyncStrategy::refuse_tables(const ParamLayout& layout) {
  return layout.tables().empty() ? Status() : Status::invalid_argument("this strategy has no row-sparse tables");
}

}  // namespace syncopate
