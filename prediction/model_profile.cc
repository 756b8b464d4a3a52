#include "prediction/model_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "prediction/embedded_texts.h"

namespace syncopate::prediction {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBytes = 16u << 20;
constexpr std::size_t kMostTensors = 1u << 16;
constexpr std::size_t kMostDimensions = 8;
constexpr std::size_t kMostLetters = 256;
constexpr std::int64_t kMostParameters = std::int64_t{1} << 40;  // of one tensor
constexpr double kMostFlops = 1e18;                              // of one tensor and sample

// A value as it is shown in a message. What is nested may be too deep to be written down.
std::string shown(const Json& value) {
  const auto nests = [](const Json& part) { return part.is_structured(); };
  if (value.is_object()) return "an object";
  if (value.is_array() && std::ranges::any_of(value, nests)) return "a list of lists or objects";
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

Result<const Json*> field(const Json& object, const char* name) {
  if (!object.is_object()) return Status::invalid_argument(fmt::format("{}: must be an object", shown(object)));
  const auto found = object.find(name);
  if (found == object.end()) return Status::invalid_argument(fmt::format("{} is missing", name));
  return &*found;
}

Result<std::string> text_field(const Json& object, const char* name) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Json* value, field(object, name));
  if (value->is_string()) {
    std::string text = value->get<std::string>();
    if (!text.empty() && text.size() <= kMostLetters) return text;
  }
  return Status::invalid_argument(
      fmt::format("{}={}: must be a text of 1 to {} letters", name, shown(*value), kMostLetters));
}

Result<double> flops_field(const Json& object, const char* name) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Json* value, field(object, name));
  if (value->is_number()) {
    const double flops = value->get<double>();
    if (std::isfinite(flops) && flops >= 0 && flops <= kMostFlops) return flops;
  }
  return Status::invalid_argument(fmt::format("{}={}: must be a number from 0 to 1e18", name, shown(*value)));
}

Result<std::vector<std::int64_t>> shape_field(const Json& object, const char* name) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Json* value, field(object, name));
  const Status wrong = Status::invalid_argument(fmt::format(
      "{}={}: must be 1 to {} whole numbers from 1, with a product up to 2^40", name, shown(*value), kMostDimensions));
  if (!value->is_array() || value->empty() || value->size() > kMostDimensions) return wrong;
  std::vector<std::int64_t> shape;
  std::int64_t product = 1;
  for (const Json& size : *value) {
    if (!size.is_number_unsigned()) return wrong;
    const auto number = size.get<std::uint64_t>();
    if (number < 1 || number > static_cast<std::uint64_t>(kMostParameters / product)) return wrong;
    shape.push_back(static_cast<std::int64_t>(number));
    product *= shape.back();
  }
  return shape;
}

Result<TensorProfile> read_tensor(const Json& object) {
  TensorProfile tensor;
  SYNCOPATE_ASSIGN_OR_RETURN(tensor.name, text_field(object, "name"));
  SYNCOPATE_ASSIGN_OR_RETURN(tensor.shape, shape_field(object, "shape"));
  SYNCOPATE_ASSIGN_OR_RETURN(tensor.forward_flops, flops_field(object, "forward_flops"));
  tensor.parameters = 1;
  for (const std::int64_t size : tensor.shape) tensor.parameters *= size;
  return tensor;
}

Result<std::vector<TensorProfile>> read_tensors(const Json& object) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Json* list, field(object, "tensors"));
  if (!list->is_array() || list->empty() || list->size() > kMostTensors) {
    return Status::invalid_argument(fmt::format("tensors: must be a list of 1 to {}", kMostTensors));
  }
  std::vector<TensorProfile> tensors;
  std::set<std::string> names;
  for (const Json& one : *list) {
    Result<TensorProfile> tensor = read_tensor(one);
    if (!tensor.ok()) return tensor.status().in(fmt::format("tensor {}", tensors.size()));
    if (!names.insert(tensor->name).second) {
      return Status::invalid_argument(
          fmt::format("tensor {}: name={} stands twice; each tensor needs its own", tensors.size(), tensor->name));
    }
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

}  // namespace

std::int64_t ModelProfile::parameters() const {
  std::int64_t sum = 0;
  for (const TensorProfile& tensor : tensors) sum += tensor.parameters;
  return sum;
}

double ModelProfile::forward_flops() const {
  double sum = other_forward_flops;
  for (const TensorProfile& tensor : tensors) sum += tensor.forward_flops;
  return sum;
}

double ModelProfile::bytes() const { return 4.0 * static_cast<double>(parameters()); }

Result<ModelProfile> read_profile(std::string_view text) {
  if (text.size() > kMostBytes) {
    return Status::invalid_argument(fmt::format("{} bytes: a profile has at most {}", text.size(), kMostBytes));
  }
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Status::invalid_argument("not JSON; a profile is one JSON object");
  ModelProfile profile;
  SYNCOPATE_ASSIGN_OR_RETURN(profile.model, text_field(json, "model"));
  SYNCOPATE_ASSIGN_OR_RETURN(profile.source, text_field(json, "source"));
  SYNCOPATE_ASSIGN_OR_RETURN(profile.input, shape_field(json, "input"));
  SYNCOPATE_ASSIGN_OR_RETURN(profile.other_forward_flops, flops_field(json, "other_forward_flops"));
  SYNCOPATE_ASSIGN_OR_RETURN(profile.tensors, read_tensors(json));
  return profile;
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : profile_texts()) names.emplace_back(name);
  return names;
}

Result<ModelProfile> built_in_profile(std::string_view name) {
  const auto found = profile_texts().find(name);
  if (found != profile_texts().end()) return read_profile(found->second);
  return Status::not_found(fmt::format("{}: no such profile; there are {}", name, fmt::join(profile_names(), ", ")));
}

}  // namespace syncopate::prediction
