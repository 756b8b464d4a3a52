#include "experiments/config/profile_choice.h"

#include "common/os/regular_file.h"

namespace syncopate::experiments {

Result<prediction::ModelProfile> open_profile(const std::string& option, const std::string& name_or_file) {
  constexpr std::uint64_t kMostBytes = 16 << 20;
  if (!name_or_file.ends_with(".json")) {
    Result<prediction::ModelProfile> profile = prediction::built_in_profile(name_or_file);
    if (profile.ok()) return profile;
    return Status::invalid_argument(option + profile.status().message() + ", or a file that ends in .json");
  }
  const Result<std::string> text = read_regular_file(name_or_file, kMostBytes);
  if (!text.ok()) return Status::invalid_argument(option + text.status().message());
  Result<prediction::ModelProfile> profile = prediction::read_profile(*text);
  if (!profile.ok()) return profile.status().in(option + name_or_file);
  return profile;
}

Result<prediction::ModelProfile> profile_of(const RunSettings& config) {
  return open_profile("--model=" + std::string(kProfilePrefix), config.model.substr(kProfilePrefix.size()));
}

}  // namespace syncopate::experiments
