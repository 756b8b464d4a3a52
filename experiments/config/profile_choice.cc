#include "experiments/config/profile_choice.h"

#include <fmt/format.h>

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

Result<prediction::ModelProfile> compute_profile_of(const ResolvedRun& config) {
  const std::string& file = config.compute.profile;
  const bool is_own = file == ComputeModel::kOwnProfile;
  const std::string option = is_own ? "--model=" + config.model : "--compute=" + file;
  const auto refused = [&](const std::string& why) { return Status::invalid_argument(option + ": " + why); };
  if (is_own && !is_profile(config)) {
    return Status::invalid_argument(fmt::format(
        "--compute=profile: --model={} is no profile; name a file that `run_experiment profile` wrote", config.model));
  }
  Result<prediction::ModelProfile> profile = is_own ? profile_of(config) : open_profile("--compute=", file);
  if (!profile.ok()) return profile.status();
  if (!profile->has_times()) {
    return refused(
        "the profile has no times; --compute=150ms gives the time of a step, --compute=15TFLOPS a device's rate");
  }
  if (is_own) return profile;
  const std::string name = is_profile(config) ? config.model.substr(kProfilePrefix.size()) : config.model;
  if (profile->model != name) {
    return refused(fmt::format("its times are of {}, and the run trains {}; measure that with `run_experiment profile`",
                               profile->model, name));
  }
  return profile;
}

Result<prediction::TypicalStep> device_step_of(const ResolvedRun& config) {
  std::string model = config.model;
  if (is_profile(config)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const prediction::ModelProfile profile, profile_of(config));
    model = profile.model;
  }
  const std::string& device = config.compute.device;
  Result<prediction::TypicalStep> step = prediction::typical_step(device, model, config.batch_size);
  if (!step.ok()) return step.status().in("--compute=" + device);
  return step;
}

}  // namespace syncopate::experiments
