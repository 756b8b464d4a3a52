#include "worker/chain_builder.h"

#include <fmt/format.h>

#include <utility>

#include "worker/layers/activation.h"
#include "worker/layers/batch_norm.h"
#include "worker/layers/bias.h"
#include "worker/layers/conv2d.h"
#include "worker/layers/dense.h"
#include "worker/layers/flatten.h"
#include "worker/layers/pool.h"
#include "worker/layers/residual.h"
#include "worker/layers/subsample.h"
#include "worker/tensor/sum_layers.h"

namespace syncopate::worker {

ChainBuilder::ChainBuilder(ModelDraft& draft, ImageShape image, std::string prefix)
    : draft_(draft), prefix_(std::move(prefix)), image_(image), scratch_(draft.backend, !draft.splits_backward) {}

void ChainBuilder::append(std::unique_ptr<Layer> layer, ImageShape output) {
  layers_.push_back(std::move(layer));
  image_ = output;
  if (prefix_.empty()) draft_.finish_layer();
}

Status ChainBuilder::dense_layers(std::span<const int> outs) {
  const std::size_t pairs = draft_.splits() ? outs.size() / 2 : 0;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const int parts = draft_.part.parts, hidden = outs[2 * pair];
    if (hidden % parts == 0) continue;
    return Status::invalid_argument(
        fmt::format("dense{} has {} outputs, of which {} workers cannot have as many each; use a multiple of {}",
                    2 * pair + 1, hidden, parts, parts));
  }
  for (std::size_t i = 0; i < outs.size();) {
    const bool has_relu = i + 1 < outs.size();
    if (i / 2 < pairs) {
      split_dense_pair(outs[i], outs[i + 1], i + 2 < outs.size());
      i += 2;
    } else {
      dense(outs[i++], has_relu);
    }
  }
  return {};
}

Initialization ChainBuilder::of_dense(bool relu) const {
  return initialization_of(draft_.init, relu ? Initialization::kHeUniform : Initialization::kLeCunUniform);
}

void ChainBuilder::dense(int out, bool relu) {
  const DenseShape shape{draft_.batch_size, image_.values(), out, relu};
  const std::string name = fmt::format("{}dense{}", prefix_, ++dense_count_);
  append(std::make_unique<Dense>(draft_.place(), shape, name, of_dense(relu), draft_.layout), {1, 1, out});
}

void ChainBuilder::split_dense_pair(int hidden, int out, bool relu) {
  const int in = image_.values(), own = hidden / draft_.part.parts, batch = draft_.batch_size;
  // Nobody learns from the gradient of the images.
  if (!layers_.empty()) append(std::make_unique<SumGradients>(*draft_.sums, image_.values(), batch), image_);
  const auto append_dense = [&](const DenseShape& shape, const TensorShare::Shape& whole, const std::string& name,
                                bool has_relu, const WeightSplit& split) {
    draft_.note_shares(draft_.layout.tensors().size(), whole, split);
    const AffineParams params(draft_.layout, name, whole, of_dense(has_relu), shape.bias, split);
    append(std::make_unique<Dense>(draft_.place(), shape, params, 1), {1, 1, shape.out});
  };
  append_dense({batch, in, own, true}, {hidden, in}, fmt::format("{}dense{}", prefix_, ++dense_count_), true,
               draft_.split(SplitBy::kOutputs));
  const std::string second = fmt::format("{}dense{}", prefix_, ++dense_count_);
  append_dense({.batch = batch, .in = own, .out = out, .bias = false}, {out, hidden}, second, relu,
               draft_.split(SplitBy::kInputs));
  append(std::make_unique<SumOutputs>(*draft_.sums, out, batch), image_);
  append(std::make_unique<BiasAndRelu>(draft_.place(), BiasShape{batch, out, relu}, 1, second, draft_.layout), image_);
}

void ChainBuilder::conv2d_pool_and_relu(int out, int kernel, int pool) {
  conv2d({draft_.batch_size, image_.height, image_.width, image_.channels, out, kernel, 1, 0, false});
  max_pool(pool, pool);
  const int pixels = image_.height * image_.width;
  append(std::make_unique<BiasAndRelu>(draft_.place(), BiasShape{draft_.batch_size * pixels, image_.channels, true},
                                       pixels, fmt::format("{}conv{}", prefix_, conv_count_), draft_.layout),
         image_);
}

void ChainBuilder::conv_and_norm(int out, int kernel, int stride, bool relu) {
  conv2d({draft_.batch_size, image_.height, image_.width, image_.channels, out, kernel, stride, kernel / 2, false});
  batch_norm(relu);
}

void ChainBuilder::conv2d(const ConvShape& shape) {
  const std::string name = fmt::format("{}conv{}", prefix_, ++conv_count_);
  // A ReLU follows each convolution.
  const Initialization initialization = initialization_of(draft_.init, Initialization::kHeUniform);
  append(std::make_unique<Conv2d>(draft_.place(), shape, name, initialization, draft_.layout),
         {shape.out_height(), shape.out_width(), shape.out});
}

void ChainBuilder::batch_norm(bool relu) {
  const int pixels = image_.height * image_.width;
  const BatchNormShape shape{draft_.batch_size * pixels, image_.channels, relu};
  append(std::make_unique<BatchNorm>(draft_.place(), shape, pixels, draft_.pass,
                                     fmt::format("{}bn{}", prefix_, conv_count_), draft_.layout, draft_.local_layout),
         image_);
}

void ChainBuilder::max_pool(int size, int stride, int padding) {
  const PoolShape shape{draft_.batch_size, image_.height, image_.width, image_.channels, size, stride, padding};
  append(std::make_unique<MaxPool>(draft_.place(), shape), {shape.out_height(), shape.out_width(), image_.channels});
}

void ChainBuilder::mean_pool() {
  const MeanPoolShape shape{draft_.batch_size, image_.height * image_.width, image_.channels};
  append(std::make_unique<MeanPool>(draft_.place(), shape), {1, 1, image_.channels});
}

void ChainBuilder::relu() { append(std::make_unique<Relu>(draft_.place(), image_.values()), image_); }

void ChainBuilder::flatten() { append(std::make_unique<Flatten>(image_.values()), {1, 1, image_.values()}); }

void ChainBuilder::subsample(int out, int stride) {
  const SubsampleShape shape{draft_.batch_size, image_.height, image_.width, image_.channels, out, stride};
  append(std::make_unique<Subsample>(draft_.place(), shape), {shape.out_height(), shape.out_width(), out});
}

ChainBuilder ChainBuilder::within(const std::string& name) const {
  return ChainBuilder(draft_, image_, prefix_ + name + ".");
}

void ChainBuilder::residual(ChainBuilder inner, std::optional<ChainBuilder> shortcut, bool relu) {
  GradientScratch elsewhere(draft_.place());
  GradientScratch& scratch = draft_.runs() ? scratch_ : elsewhere;
  const auto chain_of = [&](ChainBuilder& builder) {
    return std::make_unique<Chain>(draft_.place(), builder.take(), draft_.batch_size, scratch, draft_.pass);
  };
  std::unique_ptr<Layer> through = chain_of(inner);
  std::unique_ptr<Layer> past = shortcut ? chain_of(*shortcut) : nullptr;
  append(std::make_unique<Residual>(draft_.place(), std::move(through), std::move(past), image_.values(),
                                    draft_.batch_size, relu),
         inner.image());
}

}  // namespace syncopate::worker
