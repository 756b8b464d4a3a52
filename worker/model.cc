#include "worker/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "common/text/list_text.h"
#include "common/text/nearest_name.h"
#include "worker/chain_builder.h"
#include "worker/data/text_form.h"
#include "worker/gpt.h"
#include "worker/model_layers.h"
#include "worker/recommender/make_recommender.h"
#include "worker/resnet.h"
#include "worker/resnet50.h"
#include "worker/sequential.h"

namespace syncopate::worker {
namespace {

constexpr int kLargestWidth = 1 << 16;
constexpr int kSmallestLenetImage = 16;
constexpr int kSmallestConvImage = 4;
constexpr std::string_view kConvPrefix = "conv:";

// After LeNet-5 (LeCun et al. 1998, section 2.2), in the wider form that frameworks have made a benchmark of.
Status add_lenet(ChainBuilder& chain, int classes) {
  for (int channels : {32, 64}) chain.conv2d_pool_and_relu(channels, 5, 2);
  chain.flatten();
  return chain.dense_layers(std::vector{512, classes});
}

Result<std::vector<int>> parse_widths(const std::string& spec, std::string_view text) {
  std::vector<int> widths;
  const char* const end = text.data() + text.size();
  for (const char* next = text.data();; ++next) {
    int width = 0;
    const auto [rest, error] = std::from_chars(next, end, width);
    if (error != std::errc() || width < 1 || width > kLargestWidth || (rest != end && *rest != '-')) {
      return invalid_model(spec, fmt::format("'{}' must be widths of 1 to {} between dashes, as in 784-1024-1024-10",
                                             text, kLargestWidth));
    }
    widths.push_back(width);
    next = rest;
    if (next == end) return widths;
  }
}

// One convolution and one hidden layer, as the model of TensorFlow's tutorial on distributed training.
Status add_conv(ChainBuilder& chain, const std::string& spec, ImageShape image, int classes) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> widths,
                             parse_widths(spec, std::string_view(spec).substr(kConvPrefix.size())));
  if (widths.size() != 2) return invalid_model(spec, "must be conv:CHANNELS-WIDTH, as in conv:32-64");
  if (image.height < kSmallestConvImage || image.width < kSmallestConvImage) {
    return invalid_model(spec, fmt::format("images of {}x{} are too small; it needs {}x{} or more", image.height,
                                           image.width, kSmallestConvImage, kSmallestConvImage));
  }
  chain.conv2d_pool_and_relu(widths[0], 3, 2);
  chain.flatten();
  const Status fits = chain.dense_layers(std::vector{widths[1], classes});
  return fits.ok() ? fits : invalid_model(spec, fits.message());
}

Result<std::vector<int>> mlp_widths(const std::string& spec, ImageShape image, int classes) {
  if (spec == "mlp") return std::vector<int>{image.values(), 256, 256, classes};
  const Result<std::vector<int>> widths = parse_widths(spec, std::string_view(spec).substr(sizeof("mlp:") - 1));
  if (!widths.ok()) return widths;
  if (widths->size() < 2) return invalid_model(spec, "an mlp has at least two widths, as in mlp:784-10");
  if (widths->front() != image.values()) {
    return invalid_model(spec, fmt::format("the first width is {}, but an image of {}x{}x{} has {} values",
                                           widths->front(), image.height, image.width, image.channels, image.values()));
  }
  if (widths->back() != classes) {
    return invalid_model(spec,
                         fmt::format("the last width is {}, but the data has {} classes", widths->back(), classes));
  }
  return widths;
}

// Returns the names of models without the sizes behind them.
std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const std::string& name : model_names()) {
    const std::string family(family_of(name));
    if (std::ranges::find(names, family) == names.end()) names.push_back(family);
  }
  return names;
}

Status unknown_model(const std::string& spec) {
  const std::vector<std::string> known = families();
  const auto longer = std::ranges::find_if(
      known, [&](const std::string& name) { return !spec.empty() && name.starts_with(family_of(spec)); });
  const std::string nearest = longer != known.end() ? *longer : nearest_name(family_of(spec), known);
  return invalid_model(spec, fmt::format("unknown model; must be {}{}", list_text(model_names(), "or"),
                                         nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

// Also fills in the draft.
Result<Layers> layers_of(const std::string& spec, const SampleForm& form, ModelDraft& draft) {
  const ImageShape image = form.image;
  const int classes = form.classes;
  const std::vector<std::string> known = families();
  if (std::ranges::find(known, family_of(spec)) == known.end()) return unknown_model(spec);
  if (is_gpt(spec)) return gpt_layers(spec, form, draft);
  if (is_text(form)) {
    return invalid_model(spec,
                         "is no model of texts, which the samples of this data set are; use gpt:LAYERS-HEADS-WIDTH");
  }
  if (!form.ids.empty())
    return invalid_model(spec, "learns from values alone, and the data has ids; use ncf or wide-deep");
  ChainBuilder chain(draft, image);
  Status fits;
  if (spec == "softmax") {
    chain.last_dense(classes);
  } else if (spec == "mlp" || spec.starts_with("mlp:")) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> widths, mlp_widths(spec, image, classes));
    fits = chain.dense_layers(std::span(widths).subspan(1));
  } else if (spec.starts_with(kConvPrefix)) {
    SYNCOPATE_RETURN_IF_ERROR(add_conv(chain, spec, image, classes));
  } else if (spec == "lenet") {
    if (image.height < kSmallestLenetImage || image.width < kSmallestLenetImage) {
      return invalid_model(spec, fmt::format("images of {}x{} are too small; lenet needs {}x{} or more", image.height,
                                             image.width, kSmallestLenetImage, kSmallestLenetImage));
    }
    fits = add_lenet(chain, classes);
  } else if (const std::optional<int> blocks = resnet_blocks(spec)) {
    fits = check_resnet_image(image);
    if (fits.ok()) add_resnet(chain, *blocks, classes);
  } else if (spec == "resnet50") {
    fits = check_resnet50_image(image);
    if (fits.ok()) add_resnet50(chain, classes);
  } else {
    return unknown_model(spec);
  }
  return fits.ok() ? Result<Layers>(chain.take()) : invalid_model(spec, fits.message());
}

struct SpecParts {
  std::string model;
  WeightInit init = WeightInit::kByLayer;
};

// Takes ":init=glorot" off the end of a spec.
Result<SpecParts> parts_of(const std::string& spec) {
  const std::size_t at = spec.find(kInitSuffix);
  if (at == std::string::npos) return SpecParts{.model = spec};
  const std::string_view name = std::string_view(spec).substr(at + kInitSuffix.size());
  SpecParts parts{.model = spec.substr(0, at)};
  constexpr std::pair<std::string_view, WeightInit> kNames[] = {
      {"he", WeightInit::kHe}, {"glorot", WeightInit::kGlorot}, {"lecun", WeightInit::kLeCun}};
  for (const auto& [known, init] : kNames) {
    if (name != known) continue;
    parts.init = init;
    return parts;
  }
  return invalid_model(spec, "the initialisation must be he, glorot or lecun");
}

// The layouts of a model, with nothing computed.
Result<ModelDraft> draft_of(const std::string& spec, const SampleForm& form, ComputeBackend& backend) {
  ModelDraft draft{.backend = backend, .batch_size = 1, .labels = form.labels};
  const Result<Layers> layers = model_layers(spec, form, draft);
  if (!layers.ok()) return layers.status();
  return draft;
}

}  // namespace

std::vector<std::string> model_names() {
  return {"softmax",        "mlp",      "mlp:WIDTHS", "conv:CHANNELS-WIDTH",    "lenet", "resnet20",  "resnet32",
          "resnet56",       "resnet50", "gpt",        "gpt:LAYERS-HEADS-WIDTH", "ncf",   "ncf:WIDTH", "wide-deep",
          "wide-deep:WIDTH"};
}

Status invalid_model(const std::string& spec, const std::string& message) {
  return Status::invalid_argument(fmt::format("--model={}: {}", spec, message));
}

Result<std::unique_ptr<Model>> make_model(const std::string& spec, const SampleForm& form, int batch_size,
                                          ComputeBackend& backend, Pass pass) {
  if (batch_size < 1) return Status::invalid_argument(fmt::format("--batch-size={}: must be 1 or more", batch_size));
  if (is_recommender(spec)) return make_recommender(spec, form, batch_size, backend);
  ModelDraft draft{.backend = backend, .batch_size = batch_size, .labels = form.labels, .pass = pass};
  SYNCOPATE_ASSIGN_OR_RETURN(Layers layers, model_layers(spec, form, draft));
  const std::string name = spec.substr(0, spec.find(kInitSuffix));
  std::unique_ptr<Model> model = std::make_unique<Sequential>(name, std::move(draft), std::move(layers));
  SYNCOPATE_RETURN_IF_ERROR(backend.status().in("--model=" + name));
  return model;
}

Result<Layers> model_layers(const std::string& spec, const SampleForm& form, ModelDraft& draft) {
  if (is_recommender(spec)) return invalid_model(spec, "is no chain of layers");
  SYNCOPATE_ASSIGN_OR_RETURN(const SpecParts parts, parts_of(spec));
  draft.init = parts.init;
  Result<Layers> layers = layers_of(parts.model, form, draft);
  if (!layers.ok() || !draft.splits() || !draft.shares.empty()) return layers;
  return invalid_model(parts.model, "has no two dense layers in a row and no attention, to divide among workers");
}

Result<ParamLayout> model_layout(const std::string& spec, const SampleForm& form, int batch_size) {
  const std::unique_ptr<ComputeBackend> none = make_address_backend();  // layers want one, though none computes
  if (is_recommender(spec)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, make_recommender(spec, form, batch_size, *none));
    return model->layout();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const ModelDraft draft, draft_of(spec, form, *none));
  return draft.layout;
}

Result<ParamLayout> local_state_layout(const std::string& spec, const SampleForm& form) {
  const std::unique_ptr<ComputeBackend> none = make_address_backend();
  if (is_recommender(spec)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, make_recommender(spec, form, 1, *none));
    return model->local_layout();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const ModelDraft draft, draft_of(spec, form, *none));
  return draft.local_layout;
}

}  // namespace syncopate::worker
