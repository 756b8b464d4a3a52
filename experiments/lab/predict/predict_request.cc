#include "experiments/lab/predict/predict_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "common/os/regular_file.h"
#include "common/text/number.h"
#include "common/transport/link_shape.h"
#include "experiments/config/nearest_name.h"

namespace syncopate::experiments {
namespace {

constexpr int kMostWorkers = 1 << 16;
constexpr std::size_t kMostSizes = 64;
constexpr std::uint64_t kMostProfileBytes = 16 << 20;

const std::vector<std::string> kRequired = {"profile", "workers", "batch-size", "step-time", "shape"};
const std::vector<std::string> kOptional = {"workers-per-host", "servers", "sharding", "bucket-bytes"};

using Given = std::map<std::string, std::string>;

Result<Given> given_words(const std::vector<std::string>& words) {
  std::vector<std::string> known = kRequired;
  known.insert(known.end(), kOptional.begin(), kOptional.end());
  Given given;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string name = word.starts_with("--") ? word.substr(2, equals - 2) : word;
    if (!word.starts_with("--") || std::ranges::find(known, name) == known.end()) {
      const std::string nearest = nearest_name(name, known);
      const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean --{}?", nearest);
      return Status::invalid_argument(
          fmt::format("predict: {}: no such option; there are --{}{}", word, fmt::join(known, ", --"), hint));
    }
    if (equals == std::string::npos || equals + 1 == word.size()) {
      return Status::invalid_argument(fmt::format("--{0}: needs a value, as in --{0}=VALUE", name));
    }
    if (!given.emplace(name, word.substr(equals + 1)).second) {
      return Status::invalid_argument(fmt::format("--{}: given twice; once is enough", name));
    }
  }
  for (const std::string& name : kRequired) {
    if (!given.contains(name)) return Status::invalid_argument(fmt::format("predict: --{} is missing", name));
  }
  return given;
}

template <typename T>
Result<T> number_in(const std::string& name, const std::string& text, T least, T most, const char* unit) {
  const std::optional<T> number = parse_number<T>(text);
  if (number && *number >= least && *number <= most) return *number;
  return Status::invalid_argument(fmt::format("--{}={}: must be {} to {}{}", name, text, least, most, unit));
}

Result<std::vector<int>> sizes_in(const std::string& text) {
  std::vector<int> sizes;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    SYNCOPATE_ASSIGN_OR_RETURN(const int size, number_in<int>("workers", part, 1, kMostWorkers, ", or a list of such"));
    sizes.push_back(size);
  }
  if (!sizes.empty() && sizes.size() <= kMostSizes && !text.ends_with(',')) return sizes;
  return Status::invalid_argument(
      fmt::format("--workers={}: must be 1 to {} numbers with commas between them", text, kMostSizes));
}

Result<prediction::ModelProfile> profile_of(const std::string& text) {
  if (!text.ends_with(".json")) {
    Result<prediction::ModelProfile> profile = prediction::built_in_profile(text);
    if (profile.ok()) return profile;
    return Status::invalid_argument(
        fmt::format("--profile={}, or a file that ends in .json", profile.status().message()));
  }
  Result<std::string> file = read_regular_file(text, kMostProfileBytes);
  if (!file.ok()) return file.status().in("--profile");
  Result<prediction::ModelProfile> profile = prediction::read_profile(*file);
  if (!profile.ok()) return profile.status().in("--profile=" + text);
  return profile;
}

Result<prediction::Sharding> sharding_in(const std::string& text) {
  if (text == "even") return prediction::Sharding::kEven;
  if (text == "whole") return prediction::Sharding::kWhole;
  return Status::invalid_argument(fmt::format("--sharding={}: must be even or whole", text));
}

}  // namespace

Result<PredictRequest> parse_predict_request(const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(Given given, given_words(words));
  given.insert({{"workers-per-host", "1"}, {"servers", "1"}, {"sharding", "even"}, {"bucket-bytes", "25000000"}});
  PredictRequest request;
  SYNCOPATE_ASSIGN_OR_RETURN(request.profile, profile_of(given["profile"]));
  SYNCOPATE_ASSIGN_OR_RETURN(request.workers, sizes_in(given["workers"]));
  SYNCOPATE_ASSIGN_OR_RETURN(request.workers_per_host,
                             number_in<int>("workers-per-host", given["workers-per-host"], 1, 1024, ""));
  SYNCOPATE_ASSIGN_OR_RETURN(request.batch_size, number_in<int>("batch-size", given["batch-size"], 1, 1 << 20, ""));
  SYNCOPATE_ASSIGN_OR_RETURN(request.step_seconds,
                             number_in<double>("step-time", given["step-time"], 1e-6, 1e6, " seconds"));
  SYNCOPATE_ASSIGN_OR_RETURN(request.servers, number_in<int>("servers", given["servers"], 1, kMostWorkers, ""));
  SYNCOPATE_ASSIGN_OR_RETURN(request.sharding, sharding_in(given["sharding"]));
  SYNCOPATE_ASSIGN_OR_RETURN(request.bucket_bytes,
                             number_in<double>("bucket-bytes", given["bucket-bytes"], 0, 1e12, " bytes"));
  const Result<LinkShape> link = LinkShape::parse(given["shape"]);
  if (!link.ok()) {
    return Status::invalid_argument(fmt::format("--shape={}: must be {}", given["shape"], LinkShape::forms()));
  }
  request.bytes_per_second = link->payload_bytes_per_second();
  request.alpha = std::chrono::duration<double>(link->delay).count();
  return request;
}

}  // namespace syncopate::experiments
