#include "experiments/config/preset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/os/regular_file.h"
#include "common/text/nearest_name.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/toml.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostPresetBytes = 1 << 16;
constexpr std::string_view kSame = "same.", kDiffers = "differs.";

Result<Preset> read_preset(const std::string& name, std::string_view toml) {
  SYNCOPATE_ASSIGN_OR_RETURN(auto entries, read_toml(toml));
  Preset preset{.name = name, .about = {}, .same = {}, .differs = {}, .options = {}};
  std::erase_if(entries, [&](const auto& entry) {
    const auto& [key, value] = entry;
    if (key == "about") preset.about = value;
    if (key.starts_with(kSame)) preset.same.push_back(value);
    if (key.starts_with(kDiffers)) preset.differs.push_back(value);
    return key == "about" || key.starts_with(kSame) || key.starts_with(kDiffers);
  });
  SYNCOPATE_ASSIGN_OR_RETURN(preset.options, given_in_entries(entries));
  if (preset.about.empty()) {
    return Status::invalid_argument("has no about; say in a sentence what it is like, as in about = \"...\"");
  }
  if (preset.options.empty()) return Status::invalid_argument("sets no option");
  return preset;
}

std::vector<std::string> known_presets() {
  std::vector<std::string> names;
  for (const auto& [name, text] : preset_texts()) names.emplace_back(name);
  return names;
}

// What a comparison gives to all of its rows alike.
constexpr std::string_view kOfComparison[] = {"lr-schedule", "workers"};
constexpr std::string_view kOfJob[] = {
    "model", "dataset",       "optimizer",    "learning-rate",     "batch-size", "epochs",
    "steps", "train-samples", "test-samples", "global-batch-size", "data-dir",   "target-accuracy"};

}  // namespace

Result<Preset> open_preset(const std::string& name_or_file) {
  if (name_or_file.ends_with(".toml")) {
    const Result<std::string> text = read_input(name_or_file, kMostPresetBytes);
    if (!text.ok()) return Status::invalid_argument("--like=" + text.status().message());
    Result<Preset> preset = read_preset(name_or_file, *text);
    if (!preset.ok()) return preset.status().in("--like=" + name_or_file);
    return preset;
  }
  const auto found = preset_texts().find(name_or_file);
  if (found != preset_texts().end()) return read_preset(name_or_file, found->second);
  const std::string nearest = nearest_name(name_or_file, known_presets());
  return Status::invalid_argument(fmt::format("--like={}: must be {}, or a file that ends in .toml{}", name_or_file,
                                              fmt::join(known_presets(), ", "),
                                              nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

Status apply_to_mode(const Preset& preset, RunRequest& config) {
  const std::vector<OptionSpec> table = option_table();
  for (const auto& [name, value] : preset.options) {
    if (std::ranges::find(kOfJob, name) != std::end(kOfJob)) {
      return Status::invalid_argument(
          fmt::format("--modes: like:{} sets {} = {}, which all rows of a comparison share; give it to one run",
                      preset.name, name, value));
    }
    if (std::ranges::find(kOfComparison, name) != std::end(kOfComparison)) continue;
    const auto option = std::ranges::find(table, name, &OptionSpec::name);
    SYNCOPATE_RETURN_IF_ERROR(option->set(config, value));
  }
  return {};
}

std::string to_text(const Preset& preset) {
  std::string text = fmt::format("like {}: {}\n", preset.name, preset.about);
  for (const std::string& line : preset.same) text += fmt::format("  the same      {}\n", line);
  for (const std::string& line : preset.differs) text += fmt::format("  not the same  {}\n", line);
  std::vector<std::string> options;
  for (const auto& [name, value] : preset.options) {
    options.push_back(value == "true" ? "--" + name : fmt::format("--{}={}", name, value));
  }
  return text + fmt::format("  sets          {}\n", fmt::join(options, " "));
}

}  // namespace syncopate::experiments
