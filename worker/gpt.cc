#include "worker/gpt.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/data/text_form.h"
#include "worker/layers/activation.h"
#include "worker/layers/attention.h"
#include "worker/layers/bias.h"
#include "worker/layers/dense.h"
#include "worker/layers/embedding.h"
#include "worker/layers/layer_norm.h"
#include "worker/layers/residual.h"
#include "worker/layers/tied_output.h"
#include "worker/model.h"
#include "worker/tensor/sum_layers.h"

namespace syncopate::worker {
namespace {

constexpr std::string_view kName = "gpt", kPrefix = "gpt:";
constexpr int kMostLayers = 64, kMostHeads = 64, kMostWidth = 4096;
constexpr double kDeviation = 0.02;

struct GptSize {
  int layers = 2, heads = 4, width = 64;
};

Result<GptSize> parse_size(const std::string& spec) {
  if (spec == kName) return GptSize();
  GptSize size;
  const char* next = spec.data() + kPrefix.size();
  const char* const end = spec.data() + spec.size();
  for (int* const number : {&size.layers, &size.heads, &size.width}) {
    const auto [rest, error] = std::from_chars(next, end, *number);
    const bool last = number == &size.width;
    if (error != std::errc() || (last ? rest != end : rest == end || *rest != '-')) {
      return invalid_model(spec, "must be gpt:LAYERS-HEADS-WIDTH, as in gpt:4-4-128");
    }
    next = rest + 1;
  }
  const auto within = [](int value, int most) { return value >= 1 && value <= most; };
  if (!within(size.layers, kMostLayers) || !within(size.heads, kMostHeads) || !within(size.width, kMostWidth)) {
    return invalid_model(spec, fmt::format("layers must be 1 to {}, heads 1 to {}, the width 1 to {}", kMostLayers,
                                           kMostHeads, kMostWidth));
  }
  if (size.width % size.heads != 0) {
    return invalid_model(spec, fmt::format("the width {} must be a multiple of the {} heads", size.width, size.heads));
  }
  return size;
}

class GptBuilder {
 public:
  GptBuilder(const GptSize& size, const SampleForm& form, ModelDraft& draft)
      : size_(size),
        context_(form.labels),
        vocabulary_(form.classes),
        rows_(draft.batch_size * form.labels),
        draft_(draft),
        scratch_(draft.backend, !draft.splits_backward) {}

  Layers build() {
    auto embedding = std::make_unique<Embedding>(draft_.place(),
                                                 EmbeddingShape{draft_.batch_size, context_, size_.width, vocabulary_},
                                                 NormalInitialization{kDeviation}, draft_.layout);
    const Range tokens = embedding->tokens();
    append(std::move(embedding));
    for (int block = 1; block <= size_.layers; ++block) {
      const std::string name = fmt::format("block{}.", block);
      append(residual(attention(name)));
      append(residual(mlp(name)));
    }
    append(norm("norm"));
    const DenseShape output{.batch = rows_, .in = size_.width, .out = vocabulary_, .bias = false};
    append(std::make_unique<TiedOutput>(draft_.place(), output, tokens, context_));
    return std::move(layers_);
  }

 private:
  void append(std::unique_ptr<Layer> layer) {
    layers_.push_back(std::move(layer));
    draft_.finish_layer();
  }

  // Where workers have parts of layers, of attention a worker has so many heads, with their queries, keys and values.
  Layers attention(const std::string& name) {
    const int parts = draft_.part.parts;
    const AttentionShape shape{draft_.batch_size, context_, size_.heads / parts, size_.width / parts};
    Layers layers;
    layers.push_back(norm(name + "norm1"));
    add_outputs(layers, name + "qkv", 3 * size_.width, 3);
    layers.push_back(std::make_unique<Attention>(draft_.place(), shape));
    add_inputs(layers, name + "projection", size_.width);
    return layers;
  }

  Layers mlp(const std::string& name) {
    const int hidden = 4 * size_.width;
    Layers layers;
    layers.push_back(norm(name + "norm2"));
    add_outputs(layers, name + "mlp1", hidden);
    layers.push_back(std::make_unique<Gelu>(draft_.place(), of_text(hidden / draft_.part.parts)));
    add_inputs(layers, name + "mlp2", hidden);
    return layers;
  }

  // A layer of the residual stream's width inputs. Workers may have its outputs by parts, those of each group for
  // itself.
  void add_outputs(Layers& layers, const std::string& name, int out, int groups = 1) {
    if (draft_.splits()) {
      layers.push_back(std::make_unique<SumGradients>(*draft_.sums, of_text(size_.width), draft_.batch_size));
    }
    const WeightSplit split = draft_.split(SplitBy::kOutputs, groups);
    layers.push_back(dense(name, {.batch = rows_, .in = size_.width, .out = out / draft_.part.parts},
                           {out, size_.width}, kDeviation, split));
  }

  // A layer whose outputs are added to the residual stream. Workers may have its inputs by parts; the bias is whole.
  void add_inputs(Layers& layers, const std::string& name, int in) {
    const bool splits = draft_.splits();
    const double into_stream = kDeviation / std::sqrt(2.0 * size_.layers);
    const DenseShape shape{.batch = rows_, .in = in / draft_.part.parts, .out = size_.width, .bias = !splits};
    layers.push_back(dense(name, shape, {size_.width, in}, into_stream, draft_.split(SplitBy::kInputs)));
    if (!splits) return;
    layers.push_back(std::make_unique<SumOutputs>(*draft_.sums, of_text(size_.width), draft_.batch_size));
    layers.push_back(std::make_unique<BiasAndRelu>(draft_.place(), BiasShape{rows_, size_.width, /*relu=*/false},
                                                   context_, name, draft_.layout));
  }

  std::unique_ptr<Layer> residual(Layers inner) {
    GradientScratch elsewhere(draft_.place());
    auto chain = std::make_unique<Chain>(draft_.place(), std::move(inner), draft_.batch_size,
                                         draft_.runs() ? scratch_ : elsewhere);
    return std::make_unique<Residual>(draft_.place(), std::move(chain), nullptr, of_text(size_.width),
                                      draft_.batch_size);
  }

  std::unique_ptr<Layer> norm(const std::string& name) {
    return std::make_unique<LayerNorm>(draft_.place(), LayerNormShape{rows_, size_.width}, context_, name,
                                       draft_.layout);
  }

  std::unique_ptr<Layer> dense(const std::string& name, const DenseShape& shape, const TensorShare::Shape& whole,
                               double deviation, const WeightSplit& split) {
    draft_.note_shares(draft_.layout.tensors().size(), whole, split);
    const AffineParams params(draft_.layout, name, whole, NormalInitialization{deviation}, shape.bias, split);
    return std::make_unique<Dense>(draft_.place(), shape, params, context_);
  }

  // Values of a text, with so many at each position.
  std::size_t of_text(int width) const { return static_cast<std::size_t>(width) * context_; }

  GptSize size_;
  int context_, vocabulary_;
  int rows_;  // of a batch
  ModelDraft& draft_;
  GradientScratch scratch_;  // of the chains inside residuals that run
  Layers layers_;
};

}  // namespace

bool is_gpt(const std::string& spec) { return spec == kName || spec.starts_with(kPrefix); }

Result<Layers> gpt_layers(const std::string& spec, const SampleForm& form, ModelDraft& draft) {
  if (!is_text(form)) {
    return invalid_model(spec,
                         "learns texts, and the samples of this data set are none; use --dataset=text or grammar");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const GptSize size, parse_size(spec));
  if (size.heads % draft.part.parts != 0) {
    return invalid_model(
        spec, fmt::format("its {} heads cannot be divided among {} workers alike", size.heads, draft.part.parts));
  }
  return GptBuilder(size, form, draft).build();
}

}  // namespace syncopate::worker
