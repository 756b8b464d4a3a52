// Pipelines of threads, for tests: a small model cut into stages, each with a strategy and links of its own.
#pragma once

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/drawn_batches.h"
#include "worker/data/dataset.h"
#include "worker/local_strategy.h"
#include "worker/pipeline/pipelined_model.h"
#include "worker/pipeline/pipelined_strategy.h"

namespace syncopate::worker {

// One stage of a pipeline, trained as worker::train() trains a model.
class TestStage {
 public:
  TestStage(const std::string& spec, const SampleForm& form, const PipelinePlace& place, int samples,
            const OptimizerConfig& optimizer, Transport& transport, const Clock& clock, Duration timeout,
            std::int64_t steps = 0)
      : backend_(make_reference_backend()),
        links_(transport, {.workers = workers(place.stages), .timeout = timeout}, clock) {
    const ChainFacts facts = *chain_facts(spec, form);
    StageCut cut = *cut_into_stages(facts.layers, facts.layout, place.stages, place.chunks);
    auto passes = make_stage(spec, form, cut, place, samples / place.microbatches, *backend_);
    std::vector<std::vector<StageSlot>> slots(passes->size());
    for (std::size_t chunk = 0; chunk < slots.size(); ++chunk) {
      for (std::unique_ptr<StageModel>& pass : (*passes)[chunk]) {
        StageModel* const stage = pass.get();
        slots[chunk].push_back({stage, std::move(pass)});
      }
    }
    model_ = std::make_unique<PipelinedModel>(place, cut, samples, std::move(slots), *backend_);
    model_->end_after(steps);
    model_->connect(&links_);
    strategy_ = make_pipelined_strategy(std::make_unique<LocalStrategy>(optimizer, clock),
                                        {.place = place, .cut = std::move(cut), .steps = steps}, links_);
  }
  ~TestStage() { model_->connect(nullptr); }

  PipelinedModel& model() { return *model_; }
  SyncStrategy& strategy() { return *strategy_; }
  StageLinks& links() { return links_; }
  std::span<float> weights() { return arenas_.weights; }
  // The tensors that the last step's backward has reported, in order.
  const std::vector<std::size_t>& reported() const { return reported_; }

  Status join() {
    SYNCOPATE_ASSIGN_OR_RETURN(arenas_, strategy_->allocate(model_->layout()));
    std::vector<float> initial(model_->layout().size());
    model_->initialize(1, initial);
    for (const Range& own : model_->params()) {
      std::ranges::copy(slice(std::span<float>(initial), own), slice(arenas_.weights, own).begin());
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Range> buckets, strategy_->join());
    progress_ = std::make_unique<BackwardProgress>(model_->layout(), buckets);
    model_->before_reading([this](Range range) {
      if (asked_.ok()) asked_ = strategy_->weights_needed(range);
    });
    return {};
  }

  Result<SyncStats> step(std::int64_t number, const BatchView& batch) {
    strategy_->begin_step({.step = number, .learning_rate = 0.05});
    model_->forward(arenas_.weights, batch);
    progress_->begin();
    reported_.clear();
    model_->backward(arenas_.weights, arenas_.gradients, [this](std::size_t tensor) {
      reported_.push_back(tensor);
      progress_->tensor_ready(tensor, [this](std::size_t bucket) { strategy_->gradient_ready(bucket); });
    });
    strategy_->gradients_complete();
    return strategy_->finish_step();
  }

 private:
  static std::vector<int> workers(int stages) {
    std::vector<int> numbers(static_cast<std::size_t>(stages));
    std::iota(numbers.begin(), numbers.end(), 10);
    return numbers;
  }

  const std::unique_ptr<ComputeBackend> backend_;
  StageLinks links_;
  std::unique_ptr<PipelinedModel> model_;
  std::unique_ptr<SyncStrategy> strategy_;
  std::unique_ptr<BackwardProgress> progress_;
  ParamArenas arenas_;
  Status asked_;
  std::vector<std::size_t> reported_;
};

}  // namespace syncopate::worker
