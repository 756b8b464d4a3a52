// Deep Gradient Compression (Lin et al. 2018) written out plainly, as an oracle: whole vectors, sorted, one after
// another.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "common/codec/codec_config.h"
#include "common/param_layout.h"
#include "common/random.h"

namespace syncopate::testing_support {

// One worker's memory.
class PlainCompressor {
 public:
  PlainCompressor(const CodecConfig& config, const ParamLayout& layout)
      : config_(config), layout_(layout), u_(layout.size()), v_(layout.size()) {}

  // What the worker sends of `range` in `epoch`, with zeros for what it keeps.
  std::vector<float> sent(Range range, std::span<const float> gradient, std::int64_t epoch) {
    const float m = config_.momentum.momentum;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const float g = gradient[i - range.begin];
      if (!config_.momentum.enabled()) {
        v_[i] += g;
        continue;
      }
      u_[i] = m * u_[i] + g;
      v_[i] += config_.momentum.nesterov ? g + m * u_[i] : u_[i];
    }
    std::vector<std::size_t> order(range.size());
    std::iota(order.begin(), order.end(), range.begin);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return std::abs(v_[a]) > std::abs(v_[b]); });
    // 1 - sparsity: the ratio to the power of what has passed of the warm-up.
    double ratio = config_.ratio;
    if (epoch < config_.warmup_epochs) {
      ratio = std::pow(ratio, static_cast<double>(epoch + 1) / static_cast<double>(config_.warmup_epochs + 1));
    }
    const auto part = static_cast<double>(static_cast<float>(ratio));
    const auto k = static_cast<std::size_t>(std::ceil(part * static_cast<double>(values_in(range))));
    std::vector<float> sent(range.size());
    for (std::size_t i = 0; i < k; ++i) {
      sent[order[i] - range.begin] = v_[order[i]];
      v_[order[i]] = 0;
      if (config_.momentum.how == CompressMomentum::kMasking) u_[order[i]] = 0;
    }
    return sent;
  }

  const std::vector<float>& velocity() const { return u_; }
  const std::vector<float>& residual() const { return v_; }

 private:
  // Without the padding between tensors.
  std::ptrdiff_t values_in(Range range) const {
    std::ptrdiff_t values = 0;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      values += std::ranges::count_if(
          layout_.tensors(), [&](const TensorSpec& tensor) { return tensor.range.begin <= i && i < tensor.range.end; });
    }
    return values;
  }

  CodecConfig config_;
  ParamLayout layout_;
  std::vector<float> u_, v_;
};

// Gradients that leave sums and halves of a dozen steps exact in float32; zeros in the padding.
inline void draw_small_integers(const ParamLayout& layout, int worker, std::int64_t step, std::span<float> gradients) {
  Random random(static_cast<std::uint64_t>(worker) + 1, static_cast<std::uint64_t>(step));
  std::ranges::fill(gradients, 0.0f);
  for (const TensorSpec& tensor : layout.tensors()) {
    for (float& value : slice(gradients, tensor.range)) value = static_cast<float>(random.below(33)) - 16;
  }
}

// The weights of all workers after each step, from zeros: w = w - rate · the mean of what they send, plain sgd.
inline std::vector<std::vector<float>> plain_descent(const CodecConfig& config, const ParamLayout& layout,
                                                     const std::vector<Range>& ranges, int workers, int steps,
                                                     int steps_an_epoch, float rate) {
  std::vector<PlainCompressor> compressors(static_cast<std::size_t>(workers), {config, layout});
  std::vector<float> weights(layout.size()), gradients(layout.size());
  std::vector<std::vector<float>> history;
  for (int step = 0; step < steps; ++step) {
    std::vector<float> sum(layout.size());
    for (int worker = 0; worker < workers; ++worker) {
      draw_small_integers(layout, worker, step, gradients);
      for (const Range& range : ranges) {
        const std::vector<float> sent = compressors[static_cast<std::size_t>(worker)].sent(
            range, slice(std::span<const float>(gradients), range), step / steps_an_epoch);
        for (std::size_t i = 0; i < sent.size(); ++i) sum[range.begin + i] += sent[i];
      }
    }
    for (std::size_t i = 0; i < sum.size(); ++i) weights[i] -= rate * sum[i] / static_cast<float>(workers);
    history.push_back(weights);
  }
  return history;
}

// By momentum correction alone, with masking, by Nesterov; each with a warm-up of two epochs.
inline std::vector<CodecConfig> momentum_codecs() {
  std::vector<CodecConfig> codecs;
  for (const CompressMomentum how : {CompressMomentum::kCorrection, CompressMomentum::kMasking}) {
    for (const bool nesterov : {false, true}) {
      codecs.push_back({.kind = CodecKind::kTopK,
                        .ratio = 0.0625,
                        .warmup_epochs = 2,
                        .momentum = {.how = how, .momentum = 0.5f, .nesterov = nesterov}});
    }
  }
  return codecs;
}

}  // namespace syncopate::testing_support
