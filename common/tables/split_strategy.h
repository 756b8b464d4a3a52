// SplitStrategy: a step in two exchanges: of the tensors of a layout some are summed among the workers, and others go
// to servers (Kim et al. 2019, "Parallax: sparsity-aware data parallel training of deep neural networks", section 3:
// dense gradients are summed among the workers, and sparse ones go to servers).
//
//   arena   [ rooms of the tables ][ dense tensors ]     the main strategy's: that of the dense tensors, which sends
//               ▲ weights    │ gradients                 from it in place; it may have tables besides
//           [ some of the rooms   ]                      the other's; copies: a room has the rows of one step
//
// Either strategy trains its tensors as if they were all. Both must have all workers in each step. One that has no
// tensor takes no part in steps; servers without any are joined and left all the same, since they wait for that.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "common/sync_strategy.h"
#include "common/tables/exchange_choice.h"

namespace syncopate {

class SplitStrategy final : public SyncStrategy, public Resumable, public TableReader {
 public:
  // Chooses for the tensors of a layout, alike on all workers. Called once, in allocate.
  using Choose = std::function<Result<ExchangeChoice>(const ParamLayout& layout)>;

  SplitStrategy(std::unique_ptr<SyncStrategy> workers, std::unique_ptr<SyncStrategy> servers, Choose choose);

  // Null unless all strategies that have tensors can be resumed. save() and restore() are those of all that have any.
  Resumable* resumable() override;
  TableReader* table_reader() override { return this; }

  // Fails with invalid argument unless the layout has tables and dense tensors.
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  Status restore(const TrainingState& state) override;
  // Returns both strategies' buckets, in the order of backward. Fails with data loss if the two would go on with
  // different steps.
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return main().strategy->first_step(); }
  void begin_step(const StepContext& step) override;
  void gradient_ready(std::size_t bucket) override;
  void gradients_complete() override;
  // Sums the figures of both. Of `communication`, which may pass at the same time, it gives the longer one.
  Result<SyncStats> finish_step() override;
  Status weights_needed(Range range) override;
  Status weights_needed_again(Range range) override { return main().strategy->weights_needed_again(range); }
  Status gather_weights(bool wanted) override { return main().strategy->gather_weights(wanted); }
  Status leave() override;
  Status save(TrainingState& state) const override;

  Status read_rows(std::size_t table, RowKeys keys, std::span<float> values) override;
  Result<std::vector<RowKey>> touched_rows(std::size_t table) override;

 private:
  static constexpr std::size_t kWorkers = 0, kServers = 1;
  struct Part {
    std::unique_ptr<SyncStrategy> strategy;
    ParamLayout layout;
    std::vector<std::size_t> tables = {};  // of the layout
    std::vector<RowKeys> rows = {};        // of this step, of these
    ParamArenas arenas = {};
  };
  struct Bucket {
    Range range;
    std::size_t part = 0;
    std::size_t bucket = 0;  // among those of the part's strategy
  };
  // Where a table is: the part, and its place among the part's tables.
  struct Place {
    std::size_t part = 0;
    std::size_t table = 0;
  };

  Part& main() { return parts_[main_]; }
  const Part& main() const { return parts_[main_]; }
  bool trains(const Part& part) const { return !part.layout.empty(); }
  bool has_members(const Part& part) const { return trains(part) || &part == &parts_[kServers]; }
  // Calls each(part) for the parts that have tensors, the main one first, until one fails.
  template <typename Each>
  Status in_turn(const Each& each);

  const Choose choose_;
  std::array<Part, 2> parts_;
  std::size_t main_ = kWorkers;
  std::vector<Place> places_;    // by table
  std::vector<Bucket> buckets_;  // in the order of backward
};

}  // namespace syncopate
