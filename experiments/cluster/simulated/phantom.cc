#include "experiments/cluster/simulated/phantom.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "common/os/aligned_buffer.h"
#include "prediction/timed_model.h"
#include "ps/policy/sharding.h"

namespace syncopate::experiments {
namespace {

using prediction::ModelProfile;
using prediction::TensorProfile;

constexpr std::int64_t kMostScale = 64;
constexpr double kMostInflation = 1.01;

// A whole model, or a stage of one.
class PhantomModel final : public worker::StageModel {
 public:
  PhantomModel(std::string name, ParamLayout layout, Range own, int batch_size)
      : name_(std::move(name)), layout_(std::move(layout)), own_(own), batch_size_(batch_size) {}

  const std::string& name() const override { return name_; }
  const ParamLayout& layout() const override { return layout_; }
  int batch_size() const override { return batch_size_; }
  double flops_per_sample() const override { return 0; }
  void initialize(std::uint64_t, std::span<float> weights) const override { std::ranges::fill(weights, 0.0f); }
  const ParamLayout& local_layout() const override { return local_layout_; }
  std::span<float> local_state() override { return {}; }

  void forward(worker::In, const worker::BatchView&) override {
    if (!before_) return;
    for (const TensorSpec& tensor : layout_.tensors()) {
      if (is_own(tensor)) before_(tensor.range);
    }
  }
  void before_reading(std::function<void(Range)> before) override { before_ = std::move(before); }
  void backward(worker::In, worker::Out gradients, const std::function<void(std::size_t)>& tensor_ready) override {
    for_each_from_the_last([&](std::size_t tensor) {
      read(tensor);
      make(tensor, gradients, tensor_ready);
    });
  }
  void backward_inputs(worker::In, worker::Out, const std::function<void(std::size_t)>&) override {
    for_each_from_the_last([this](std::size_t tensor) { read(tensor); });
  }
  void backward_weights(worker::Out gradients, const std::function<void(std::size_t)>& tensor_ready) override {
    for_each_from_the_last([&](std::size_t tensor) { make(tensor, gradients, tensor_ready); });
  }
  worker::LossAndCorrect loss(std::size_t /*turn*/) override {
    return {.loss = std::numeric_limits<double>::quiet_NaN()};
  }
  worker::In outputs() const override { return {}; }
  worker::Out output_gradient() override { return {}; }
  worker::In input_gradient() const override { return {}; }

 private:
  // Visits its own tensors.
  template <typename Visit>
  void for_each_from_the_last(const Visit& visit) const {
    for (std::size_t tensor = layout_.tensors().size(); tensor-- > 0;) {
      if (is_own(layout_.tensors()[tensor])) visit(tensor);
    }
  }
  void read(std::size_t tensor) const {
    if (before_) before_(layout_.tensors()[tensor].range);
  }
  void make(std::size_t tensor, worker::Out gradients, const std::function<void(std::size_t)>& tensor_ready) const {
    if (!SharedZeros::holds(gradients.data())) {
      std::ranges::fill(slice(gradients, layout_.tensors()[tensor].range), 0.0f);
    }
    tensor_ready(tensor);
  }
  bool is_own(const TensorSpec& tensor) const {
    return own_.begin <= tensor.range.begin && tensor.range.end <= own_.end;
  }

  const std::string name_;
  const ParamLayout layout_;
  const ParamLayout local_layout_;
  const Range own_;
  const int batch_size_;
  std::function<void(Range)> before_;
};

// Puts the tensors of a profile side by side until they have a whole number of alignment units at `scale`. `add` gets
// the tensors of each such group and its elements.
void for_each_group(const ModelProfile& profile, std::int64_t scale,
                    const std::function<void(std::span<const TensorProfile>, std::int64_t elements)>& add) {
  const std::span<const TensorProfile> tensors = profile.tensors;
  const std::int64_t unit = scale * static_cast<std::int64_t>(kAlignment);
  const std::int64_t all = std::max<std::int64_t>(1, (profile.parameters() + unit / 2) / unit);
  std::int64_t parameters = 0, units = 0;
  std::size_t begin = 0;
  for (std::size_t end = 1; end <= tensors.size(); ++end) {
    parameters += tensors[end - 1].parameters;
    const bool is_last = end == tensors.size();
    const std::int64_t up_to_here = is_last ? all : std::min(all - 1, (parameters + unit / 2) / unit);
    if (up_to_here == units) continue;
    add(tensors.subspan(begin, end - begin), (up_to_here - units) * static_cast<std::int64_t>(kAlignment));
    units = up_to_here;
    begin = end;
  }
}

ParamLayout scaled_layout(const ModelProfile& profile, std::int64_t scale) {
  ParamLayout layout;
  for_each_group(profile, scale, [&](std::span<const TensorProfile> tensors, std::int64_t elements) {
    layout.add(std::ranges::max(tensors, {}, &TensorProfile::parameters).name, {elements});
  });
  return layout;
}

// What an exchange is cut into.
struct Pieces {
  double bytes = 0;  // of all largest ones, encoded, as the model has them: what a ring's step, or a server, waits for
  std::size_t buckets = 0;  // each of which takes its messages' delays
};

Pieces pieces_of(const ModelProfile& profile, const ResolvedRun& config, std::int64_t scale) {
  const ParamLayout layout = scaled_layout(profile, scale);
  const Codec codec(codec_of(config), tensor_ranges(layout));
  const auto encoded = [&](Range range) {
    return static_cast<double>(codec.encoded_size(range.size(), range.begin)) * static_cast<double>(scale);
  };
  if (has_servers(config)) {
    const ps::ShardMap map = ps::shard_map(layout, shards_of(config), sharding_of(scaled_down(config, scale)));
    std::vector<double> shards;
    for (const std::vector<Range>& chunks : map.chunks) {
      shards.push_back(std::transform_reduce(chunks.begin(), chunks.end(), 0.0, std::plus(), encoded));
    }
    return {.bytes = std::ranges::max(shards)};
  }
  const auto pieces = static_cast<std::size_t>(model_replicas(config));
  std::vector<Range> wholes{{0, layout.size()}};
  if (config.bucket_bytes) {
    const auto bucket_bytes = static_cast<std::size_t>(std::max<std::int64_t>(1, *config.bucket_bytes / scale));
    wholes = buckets_in_backward_order(layout, bucket_bytes);
  }
  double bytes = 0;
  for (const Range& whole : wholes) {
    bytes += encoded({whole.begin, whole.begin + balanced_ranges(whole.size(), pieces).front().size()});
  }
  return {.bytes = bytes, .buckets = wholes.size()};
}

}  // namespace

std::int64_t scale_for(const ModelProfile& profile, const ResolvedRun& config) {
  // Buckets whose size is found by trial are tried in bytes.
  if (sums_among_workers(config) && !config.bucket_bytes) return 1;
  const Pieces whole = pieces_of(profile, config, 1);
  std::int64_t scale = kMostScale;
  // Tensors that become one with their neighbours can also make the largest shard smaller, where shards have whole
  // ones, and buckets fewer.
  const auto is_off = [&](const Pieces& scaled) {
    return scaled.bytes > kMostInflation * whole.bytes || scaled.bytes < whole.bytes / kMostInflation ||
           scaled.buckets != whole.buckets;
  };
  while (scale > 1 && is_off(pieces_of(profile, config, scale))) scale /= 2;
  return scale;
}

Phantom make_phantom(const ModelProfile& profile, std::int64_t scale) {
  return {.name = profile.model, .scale = scale, .layout = scaled_layout(profile, scale)};
}

ComputeTimes phantom_times(const ModelProfile& profile, Duration step, std::int64_t scale) {
  const prediction::TimedModel whole = prediction::timed_model(profile, seconds(step));
  ComputeTimes times;
  std::size_t begin = 0;
  for_each_group(profile, scale, [&](std::span<const TensorProfile> tensors, std::int64_t) {
    const auto sum = [&](const std::vector<double>& each) {
      const auto first = each.begin() + static_cast<std::ptrdiff_t>(begin);
      return std::accumulate(first, first + static_cast<std::ptrdiff_t>(tensors.size()), 0.0);
    };
    times.forward.push_back(from_seconds(sum(whole.forward)));
    times.backward.push_back(from_seconds(sum(whole.backward)));
    begin += tensors.size();
  });
  return times;
}

ResolvedRun scaled_down(ResolvedRun config, std::int64_t scale) {
  const auto scaled = [&](std::int64_t bytes) { return std::max<std::int64_t>(64, bytes / scale); };  // a cache line
  config.chunk_bytes = scaled(config.chunk_bytes);
  config.segment_bytes = scaled(config.segment_bytes);
  if (config.bucket_bytes) config.bucket_bytes = scaled(*config.bucket_bytes);
  return config;
}

std::unique_ptr<worker::Model> make_phantom_model(const Phantom& phantom, int batch_size) {
  return std::make_unique<PhantomModel>(phantom.name, phantom.layout, Range{0, phantom.layout.size()}, batch_size);
}

std::unique_ptr<worker::StageModel> make_phantom_stage(const Phantom& phantom, Range own, int microbatch) {
  return std::make_unique<PhantomModel>(phantom.name, phantom.layout, own, microbatch);
}

}  // namespace syncopate::experiments
