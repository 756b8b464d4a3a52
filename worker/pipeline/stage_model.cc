#include "worker/pipeline/stage_model.h"

#include <algorithm>
#include <utility>

#include "worker/chain_builder.h"
#include "worker/model_layers.h"
#include "worker/sequential.h"

namespace syncopate::worker {
namespace {

class ChainStage final : public StageModel {
 public:
  // Either of `is_first` and `is_last` leaves out what goes to the stage before, and to the one behind. `input_values`
  // are those of a sample. `layers` are those of the chunk alone. They share `local_state` with others.
  struct Parts {
    std::string name;
    ParamLayout layout, local_layout;
    int batch_size = 1;
    int labels = 1;
    bool is_first = true, is_last = true;
    std::size_t input_values = 0;
    Layers layers;
  };

  ChainStage(Parts parts, GradientScratch& scratch, ComputeBackend& backend, Floats local_state)
      : name_(std::move(parts.name)),
        layout_(std::move(parts.layout)),
        local_layout_(std::move(parts.local_layout)),
        batch_size_(parts.batch_size),
        labels_(parts.labels),
        is_last_(parts.is_last),
        backend_(backend),
        chain_(backend, std::move(parts.layers), batch_size_, scratch),
        local_state_(local_state),
        outputs_(backend.allocate_tensor(of_batch(chain_.output_values()))),
        output_gradient_(backend.allocate_tensor(of_batch(chain_.output_values()))),
        input_gradient_(parts.is_first ? Out() : backend.allocate_tensor(of_batch(parts.input_values))) {
    if (!local_state_.empty()) chain_.use_local_state(local_state_);
  }

  const std::string& name() const override { return name_; }
  const ParamLayout& layout() const override { return layout_; }
  const ParamLayout& local_layout() const override { return local_layout_; }
  std::span<float> local_state() override { return local_state_; }
  int batch_size() const override { return batch_size_; }
  double flops_per_sample() const override { return chain_.flops_per_sample(); }
  bool has_loss() const override { return is_last_; }
  void initialize(std::uint64_t seed, std::span<float> weights) const override { chain_.initialize(seed, weights); }
  void initialize_local_state(std::span<float> state) const { chain_.initialize_local_state(state); }

  void forward(In weights, const BatchView& batch) override {
    batch_ = batch;
    chain_.forward(weights, activations());
    if (!is_last_) return;
    const ChainHead head{.samples = batch_size_, .labels = labels_, .values = chain_.output_values()};
    head.apply(backend_, batch, outputs_, output_gradient_);
  }
  void before_reading(std::function<void(Range)> before) override { chain_.before_reading(std::move(before)); }
  void backward(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) override {
    chain_.backward(weights, activations(), {output_gradient_, input_gradient_}, gradients, tensor_ready);
  }
  void backward_inputs(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) override {
    chain_.backward_inputs(weights, activations(), {output_gradient_, input_gradient_}, gradients, tensor_ready);
  }
  void backward_weights(Out gradients, const std::function<void(std::size_t)>& tensor_ready) override {
    chain_.backward_weights(activations(), output_gradient_, gradients, tensor_ready);
  }
  LossAndCorrect loss(std::size_t turn) override { return backend_.loss(turn); }

  In outputs() const override { return is_last_ ? In() : In(outputs_); }
  Out output_gradient() override { return is_last_ ? Out() : output_gradient_; }
  In input_gradient() const override { return input_gradient_; }

 private:
  std::size_t of_batch(std::size_t values) const { return values * static_cast<std::size_t>(batch_size_); }
  Activations activations() const { return {batch_.values, outputs_, batch_.ids}; }

  const std::string name_;
  const ParamLayout layout_, local_layout_;
  const int batch_size_, labels_;
  const bool is_last_;
  ComputeBackend& backend_;
  Chain chain_;
  const Floats local_state_;
  const Out outputs_, output_gradient_, input_gradient_;
  BatchView batch_;  // of the last forward
};

}  // namespace

Result<ChainFacts> chain_facts(const std::string& spec, const SampleForm& form, const LayerPart& part) {
  const std::unique_ptr<ComputeBackend> none = make_address_backend();
  TensorSums sums;
  ModelDraft draft{.backend = *none, .batch_size = 1, .labels = form.labels, .part = part, .sums = &sums};
  SYNCOPATE_ASSIGN_OR_RETURN(const Layers layers, model_layers(spec, form, draft));
  ChainFacts facts{.layout = draft.layout,
                   .local_layout = draft.local_layout,
                   .layers = {},
                   .local_through = draft.local_through,
                   .split = SplitLayout(draft),
                   .sums = sums.each};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    facts.layers.push_back({.cost = layers[i]->flops_per_sample(),
                            .tensors_end = draft.tensors_through[i],
                            .reads = layers[i]->params(),
                            .in_place = layers[i]->in_place(),
                            .outputs = layers[i]->output_values(),
                            .late_gradients = layers[i]->late_gradients()});
  }
  return facts;
}

Result<StagePasses> make_stage(const std::string& spec, const SampleForm& form, const StageCut& cut,
                               const PipelinePlace& place, int samples, ComputeBackend& backend, const LayerPart& part,
                               TensorSums* sums) {
  const std::unique_ptr<ComputeBackend> addresses = make_address_backend();
  // They run one after another, and share what is between two layers, unless that is read again.
  const bool splits = splits_backward(place.schedule);
  GradientScratch scratch(backend, !splits);
  StagePasses passes(static_cast<std::size_t>(place.chunks));
  Floats local_state;
  for (int chunk = 0; chunk < place.chunks; ++chunk) {
    const auto number = static_cast<std::size_t>(place.number_of(chunk));
    const LayerRange running{cut.layers[number], cut.layers[number + 1]};
    for (int i = 0; i < most_in_flight(place, chunk); ++i) {
      ModelDraft draft{.backend = backend,
                       .batch_size = samples,
                       .labels = form.labels,
                       .running = running,
                       .addresses = addresses.get(),
                       .part = part,
                       .sums = sums,
                       .splits_backward = splits};
      SYNCOPATE_ASSIGN_OR_RETURN(Layers all, model_layers(spec, form, draft));
      Layers own;
      for (std::size_t layer = running.begin; layer < running.end; ++layer) own.push_back(std::move(all[layer]));
      if (local_state.empty() && draft.local_layout.size() > 0) {
        local_state = backend.allocate_floats(draft.local_layout.size());
      }
      for (const auto& layer : own) {
        if (i == 0) layer->initialize_local_state(local_state);
      }
      passes[static_cast<std::size_t>(chunk)].push_back(std::make_unique<ChainStage>(
          ChainStage::Parts{.name = spec,
                            .layout = draft.layout,
                            .local_layout = draft.local_layout,
                            .batch_size = samples,
                            .labels = form.labels,
                            .is_first = place.is_first(chunk),
                            .is_last = place.is_last(chunk),
                            .input_values = place.is_first(chunk) ? 0 : all[running.begin - 1]->output_values(),
                            .layers = std::move(own)},
          scratch, backend, local_state));
    }
  }
  SYNCOPATE_RETURN_IF_ERROR(backend.status().in("--model=" + spec));
  return passes;
}

}  // namespace syncopate::worker
