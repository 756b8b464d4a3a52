// ChainBuilder: assembles a model's layers one by one, and keeps track of the input of the next one.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/data/dataset.h"
#include "worker/layers/affine.h"
#include "worker/layers/chain.h"
#include "worker/layers/initialization.h"
#include "worker/layers/layer.h"
#include "worker/layers/tensor_share.h"
#include "worker/tensor/tensor_links.h"

namespace syncopate::worker {

// Layers [begin, end) of a model's chain, counted from its first; those inside a layer are not counted.
struct LayerRange {
  std::size_t begin = 0;
  std::size_t end = std::numeric_limits<std::size_t>::max();
};

// What all chains of one model share while the model is built.
struct ModelDraft {
  ComputeBackend& backend;
  int batch_size = 0;
  int labels = 1;  // per sample, each with a row of logits
  Pass pass = Pass::kTraining;
  WeightInit init = WeightInit::kByLayer;
  ParamLayout layout = {};
  ParamLayout local_layout = {};  // of the state that training keeps beside the weights
  // Which layers will run. The others have their places in the layouts, and addresses in place of memory, of a backend
  // that outlives them (make_address_backend); null where all run.
  LayerRange running = {};
  ComputeBackend* addresses = nullptr;
  // Where workers have a part each of layers that can be divided: which one this is, and how their sums find the
  // others, which outlive the layers. Then the shares, by tensor; others are whole.
  LayerPart part = {};
  TensorSums* sums = nullptr;
  std::map<std::size_t, TensorShare> shares = {};
  bool splits_backward = false;  // backward is called in two parts (Layer::backward_inputs)
  // By finished layer: the tensors, and those of the local layout, up to and with it.
  std::vector<std::size_t> tensors_through = {}, local_through = {};

  // Whether the layer that is being built will run; and what it is built on.
  bool runs() const {
    const std::size_t layer = tensors_through.size();
    return addresses == nullptr || (running.begin <= layer && layer < running.end);
  }
  ComputeBackend& place() const { return runs() ? backend : *addresses; }
  bool splits() const { return part.parts > 1; }
  WeightSplit split(SplitBy by, int groups = 1) const {
    return {.by = splits() ? by : SplitBy::kNothing, .part = part, .groups = groups};
  }
  // Notes the shares of the tensors of a layer that is divided so: of its weight, which is the layout's `weight`-th
  // tensor and whole of this shape, and, unless its inputs are divided, of its bias behind it.
  void note_shares(std::size_t weight, const TensorShare::Shape& whole, const WeightSplit& split) {
    if (split.by == SplitBy::kNothing) return;
    shares.emplace(weight, TensorShare(whole, split));
    if (split.by == SplitBy::kOutputs) shares.emplace(weight + 1, TensorShare({whole.front()}, split));
  }
  void finish_layer() {
    tensors_through.push_back(layout.tensors().size());
    local_through.push_back(local_layout.tensors().size());
  }
};

class ChainBuilder {
 public:
  // Begins with `image`. Names of tensors begin with `prefix`. The draft must outlive the builder, which adds to it.
  ChainBuilder(ModelDraft& draft, ImageShape image, std::string prefix = "");

  const ImageShape& image() const { return image_; }

  // Dense layers with these numbers of outputs, all but the last with relu. Workers that have parts of layers have them
  // of each two in a row: of the first by outputs, of the second by inputs; a single last one is whole. Fails with
  // invalid argument, and appends none, if the parts of some layer would not be alike.
  Status dense_layers(std::span<const int> outs);
  void last_dense(int out) { dense(out, false); }
  // Stride 1, no padding; then the largest of each `pool` x `pool` pixels, a bias and relu.
  void conv2d_pool_and_relu(int out, int kernel, int pool);
  // The kernel is odd, and the image padded by half of it, so that stride 1 keeps the image's size, without a bias;
  // then batch norm.
  void conv_and_norm(int out, int kernel, int stride, bool relu);
  void max_pool(int size, int stride, int padding = 0);
  void mean_pool();  // over the whole image
  void relu();
  void flatten();
  // Reduces the pixels and adds channels, without parameters.
  void subsample(int out, int stride);
  // Returns a builder for a chain inside this one's next layer, which has the same input as that layer.
  ChainBuilder within(const std::string& name) const;
  // Adds the outputs of `inner` and of `shortcut`, or of `inner` and the image itself. `inner` must be filled before
  // `shortcut`. `relu`: the sum ends with max(y, 0).
  void residual(ChainBuilder inner, std::optional<ChainBuilder> shortcut, bool relu = false);

  Layers take() { return std::move(layers_); }

 private:
  void dense(int out, bool relu);
  void split_dense_pair(int hidden, int out, bool relu);
  Initialization of_dense(bool relu) const;
  void conv2d(const ConvShape& shape);
  void batch_norm(bool relu);
  void append(std::unique_ptr<Layer> layer, ImageShape output);

  ModelDraft& draft_;
  std::string prefix_;
  ImageShape image_;         // input of the next layer; a row is 1x1
  GradientScratch scratch_;  // for the chains inside this one's layers that run
  Layers layers_;
  int dense_count_ = 0;
  int conv_count_ = 0;
};

}  // namespace syncopate::worker
