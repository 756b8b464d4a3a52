#include "worker/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <string_view>

#include "worker/layers/conv2d.h"
#include "worker/layers/dense.h"
#include "worker/layers/flatten.h"
#include "worker/layers/max_pool.h"
#include "worker/layers/relu.h"
#include "worker/recommender/make_recommender.h"
#include "worker/sequential.h"

namespace syncopate::worker {
namespace {

constexpr int kLargestWidth = 1 << 16;
constexpr int kSmallestLenetImage = 16;

Status invalid(const std::string& spec, const std::string& message) {
  return {Code::kInvalidArgument, fmt::format("--model={}: {}", spec, message)};
}

// Appends layers one by one and keeps track of what the next one will be given.
class ChainBuilder {
 public:
  ChainBuilder(ComputeBackend& backend, ImageShape image, int batch_size)
      : backend_(backend), batch_(batch_size), image_(image), values_(image.values()) {}

  void dense_and_relu(int out) { dense({batch_, values_, out, true}, Initialization::kHeUniform); }
  void last_dense(int out) { dense({batch_, values_, out, false}, Initialization::kLeCunUniform); }
  void conv2d(int out, int kernel) {
    const ConvShape shape{batch_, image_.height, image_.width, image_.channels, out, kernel};
    const std::string name = fmt::format("conv{}", ++conv_count_);
    append(std::make_unique<Conv2d>(backend_, shape, name, chain_.layout));
    image_ = {shape.out_height(), shape.out_width(), out};
  }
  void max_pool(int size) {
    const PoolShape shape{batch_, image_.height, image_.width, image_.channels, size};
    append(std::make_unique<MaxPool>(backend_, shape));
    image_ = {shape.out_height(), shape.out_width(), image_.channels};
  }
  void relu() { append(std::make_unique<Relu>(backend_, values_)); }
  void flatten() { append(std::make_unique<Flatten>(values_)); }

  LayerChain take() { return std::move(chain_); }

 private:
  void dense(const DenseShape& shape, Initialization initialization) {
    const std::string name = fmt::format("dense{}", ++dense_count_);
    append(std::make_unique<Dense>(backend_, shape, name, initialization, chain_.layout));
  }
  void append(std::unique_ptr<Layer> layer) {
    values_ = static_cast<int>(layer->output_values());
    chain_.layers.push_back(std::move(layer));
  }

  ComputeBackend& backend_;
  int batch_;
  ImageShape image_;  // what the next layer is given, as an image
  int values_;        // and as a row
  LayerChain chain_;
  int dense_count_ = 0;
  int conv_count_ = 0;
};

// `widths` are those of all layers, the images' included.
void add_mlp(ChainBuilder& chain, const std::vector<int>& widths) {
  for (std::size_t i = 1; i + 1 < widths.size(); ++i) chain.dense_and_relu(widths[i]);
  chain.last_dense(widths.back());
}

// After LeNet-5 (LeCun et al. 1998, section 2.2), in the wider form that frameworks have made a benchmark of.
void add_lenet(ChainBuilder& chain, int classes) {
  for (int channels : {32, 64}) {
    chain.conv2d(channels, 5);
    // max(relu(x)) = relu(max(x)), and their gradients agree as well: this way round relu has a quarter of the work.
    chain.max_pool(2);
    chain.relu();
  }
  chain.flatten();
  chain.dense_and_relu(512);
  chain.last_dense(classes);
}

Result<std::vector<int>> parse_widths(const std::string& spec, std::string_view text) {
  std::vector<int> widths;
  const char* const end = text.data() + text.size();
  for (const char* next = text.data();; ++next) {
    int width = 0;
    const auto [rest, error] = std::from_chars(next, end, width);
    if (error != std::errc() || width < 1 || width > kLargestWidth || (rest != end && *rest != '-')) {
      return invalid(spec, fmt::format("'{}' must be widths of 1 to {} between dashes, as in 784-1024-1024-10", text,
                                       kLargestWidth));
    }
    widths.push_back(width);
    next = rest;
    if (next == end) return widths;
  }
}

Result<std::vector<int>> mlp_widths(const std::string& spec, ImageShape image, int classes) {
  if (spec == "mlp") return std::vector<int>{image.values(), 256, 256, classes};
  const Result<std::vector<int>> widths = parse_widths(spec, std::string_view(spec).substr(sizeof("mlp:") - 1));
  if (!widths.ok()) return widths;
  if (widths->size() < 2) return invalid(spec, "an mlp has at least two widths, as in mlp:784-10");
  if (widths->front() != image.values()) {
    return invalid(spec, fmt::format("the first width is {}, but an image of {}x{}x{} has {} values", widths->front(),
                                     image.height, image.width, image.channels, image.values()));
  }
  if (widths->back() != classes) {
    return invalid(spec, fmt::format("the last width is {}, but the data has {} classes", widths->back(), classes));
  }
  return widths;
}

Result<LayerChain> layers_of(const std::string& spec, const SampleForm& form, int batch_size, ComputeBackend& backend) {
  const ImageShape image = form.image;
  const int classes = form.classes;
  if (!form.ids.empty()) return invalid(spec, "learns from values alone, and the data has ids; use ncf or wide-deep");
  ChainBuilder chain(backend, image, batch_size);
  if (spec == "softmax") {
    add_mlp(chain, {image.values(), classes});
  } else if (spec == "mlp" || spec.starts_with("mlp:")) {
    const Result<std::vector<int>> widths = mlp_widths(spec, image, classes);
    if (!widths.ok()) return widths.status();
    add_mlp(chain, *widths);
  } else if (spec == "lenet") {
    if (image.height < kSmallestLenetImage || image.width < kSmallestLenetImage) {
      return invalid(spec, fmt::format("images of {}x{} are too small; lenet needs {}x{} or more", image.height,
                                       image.width, kSmallestLenetImage, kSmallestLenetImage));
    }
    add_lenet(chain, classes);
  } else {
    return invalid(spec, "unknown model; must be softmax, mlp, mlp:WIDTH-...-WIDTH, lenet, ncf or wide-deep");
  }
  return chain.take();
}

}  // namespace

Result<std::unique_ptr<Model>> make_model(const std::string& spec, const SampleForm& form, int batch_size,
                                          ComputeBackend& backend) {
  if (batch_size < 1)
    return Status(Code::kInvalidArgument, fmt::format("--batch-size={}: must be 1 or more", batch_size));
  if (is_recommender(spec)) return make_recommender(spec, form, batch_size, backend);
  Result<LayerChain> chain = layers_of(spec, form, batch_size, backend);
  if (!chain.ok()) return chain.status();
  std::unique_ptr<Model> model = std::make_unique<Sequential>(spec, std::move(*chain), batch_size, backend);
  SYNCOPATE_RETURN_IF_ERROR(backend.status().in("--model=" + spec));
  return model;
}

Result<ParamLayout> model_layout(const std::string& spec, const SampleForm& form, int batch_size) {
  const std::unique_ptr<ComputeBackend> none = make_reference_backend();  // layers want one, though none computes
  if (is_recommender(spec)) {
    const Result<std::unique_ptr<Model>> model = make_recommender(spec, form, batch_size, *none);
    if (!model.ok()) return model.status();
    return (*model)->layout();
  }
  const Result<LayerChain> chain = layers_of(spec, form, 1, *none);
  if (!chain.ok()) return chain.status();
  return chain->layout;
}

}  // namespace syncopate::worker
