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
constexpr double kMostSeconds = 1000;                            // of one tensor and batch
constexpr int kMostBatch = 1 << 20;

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

Result<double> number_field(const Json& object, const char* name, double most) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Json* value, field(object, name));
  if (value->is_number()) {
    const double number = value->get<double>();
    if (std::isfinite(number) && number >= 0 && number <= most) return number;
  }
  return Status::invalid_argument(fmt::format("{}={}: must be a number from 0 to {}", name, shown(*value), most));
}

// Returns 0 where there is none.
Result<int> batch_size_field(const Json& object) {
  if (!object.contains("batch_size")) return 0;
  const Json& value = object["batch_size"];
  if (value.is_number_unsigned() && value >= 1u && value <= static_cast<unsigned>(kMostBatch)) return value.get<int>();
  return Status::invalid_argument(
      fmt::format("batch_size={}: must be a whole number from 1 to {}", shown(value), kMostBatch));
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

Result<TensorProfile> read_tensor(const Json& object, bool has_times) {
  TensorProfile tensor;
  SYNCOPATE_ASSIGN_OR_RETURN(tensor.name, text_field(object, "name"));
  SYNCOPATE_ASSIGN_OR_RETURN(tensor.shape, shape_field(object, "shape"));
  SYNCOPATE_ASSIGN_OR_RETURN(tensor.forward_flops, number_field(object, "forward_flops", kMostFlops));
  if (has_times) {
    SYNCOPATE_ASSIGN_OR_RETURN(tensor.forward_seconds, number_field(object, "forward_seconds", kMostSeconds));
    SYNCOPATE_ASSIGN_OR_RETURN(tensor.backward_seconds, number_field(object, "backward_seconds", kMostSeconds));
  }
  tensor.parameters = 1;
  for (const std::int64_t size : tensor.shape) tensor.parameters *= size;
  return tensor;
}

Result<std::vector<TensorProfile>> read_tensors(const Json& object, bool has_times) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Json* list, field(object, "tensors"));
  if (!list->is_array() || list->empty() || list->size() > kMostTensors) {
    return Status::invalid_argument(fmt::format("tensors: must be a list of 1 to {}", kMostTensors));
  }
  std::vector<TensorProfile> tensors;
  std::set<std::string> names;
  for (const Json& one : *list) {
    Result<TensorProfile> tensor = read_tensor(one, has_times);
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

double ModelProfile::step_seconds() const {
  double sum = 0;
  for (const TensorProfile& tensor : tensors) sum += tensor.forward_seconds + tensor.backward_seconds;
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
  SYNCOPATE_ASSIGN_OR_RETURN(profile.other_forward_flops, number_field(json, "other_forward_flops", kMostFlops));
  SYNCOPATE_ASSIGN_OR_RETURN(profile.batch_size, batch_size_field(json));
  SYNCOPATE_ASSIGN_OR_RETURN(profile.tensors, read_tensors(json, profile.has_times()));
  if (profile.has_times() && !(profile.step_seconds() > 0)) {
    return Status::invalid_argument("forward_seconds and backward_seconds: are 0 in all tensors; a step takes time");
  }
  return profile;
}

std::string to_json(const ModelProfile& profile) {
  // A tensor a line, as a person reads it.
  const auto line = [&](const TensorProfile& tensor) {
    nlohmann::ordered_json fields = {
        {"name", tensor.name}, {"shape", tensor.shape}, {"forward_flops", tensor.forward_flops}};
    if (profile.has_times()) {
      fields["forward_seconds"] = tensor.forward_seconds;
      fields["backward_seconds"] = tensor.backward_seconds;
    }
    return "  " + fields.dump();
  };
  nlohmann::ordered_json head = {{"model", profile.model},
                                 {"source", profile.source},
                                 {"input", profile.input},
                                 {"other_forward_flops", profile.other_forward_flops}};
  if (profile.has_times()) head["batch_size"] = profile.batch_size;
  std::string text = head.dump();
  text.back() = ',';
  std::vector<std::string> lines;
  for (const TensorProfile& tensor : profile.tensors) lines.push_back(line(tensor));
  return fmt::format("{}\n \"tensors\":[\n{}]}}\n", text, fmt::join(lines, ",\n"));
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
