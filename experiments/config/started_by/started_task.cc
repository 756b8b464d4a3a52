#include "experiments/config/started_by/started_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/text/list_text.h"
#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

constexpr std::pair<StartedBy, const char*> kNames[] = {
    {StartedBy::kAuto, "auto"},         {StartedBy::kNobody, "none"}, {StartedBy::kSlurm, "slurm"},
    {StartedBy::kOpenMpi, "openmpi"},   {StartedBy::kPmi, "pmi"},     {StartedBy::kTorchrun, "torchrun"},
    {StartedBy::kTfConfig, "tf-config"}};

// TF_CONFIG stands before Slurm, which may have started the platform's own processes.
std::vector<PlaceParser> all_parsers() {
  std::vector<PlaceParser> parsers(launcher_parsers().begin(), launcher_parsers().end());
  parsers.insert(std::ranges::find(parsers, StartedBy::kSlurm, &PlaceParser::by),
                 {StartedBy::kTfConfig, place_by_tf_config});
  return parsers;
}

bool is_named(const std::vector<PlaceParser>& parsers, const Variables& environment, StartedBy by) {
  const auto parser = std::ranges::find(parsers, by, &PlaceParser::by);
  const FoundPlace place = parser->parse(environment);
  return !place.ok() || place->has_value();
}

}  // namespace

const char* name_of(StartedBy value) {
  return std::ranges::find(kNames, value, &std::pair<StartedBy, const char*>::first)->second;
}

std::string started_by_names() {
  std::vector<std::string> names;
  for (const auto& [value, name] : kNames) names.emplace_back(name);
  return list_text(names, "or");
}

Result<StartedBy> parse_started_by(std::string_view name) {
  for (const auto& [value, its] : kNames) {
    if (name == its) return value;
  }
  return Status::invalid_argument(fmt::format("--started-by={}: must be {}", printable(name), started_by_names()));
}

FoundPlace started_task(const Variables& environment, StartedBy by) {
  if (by == StartedBy::kNobody) return std::optional<TaskPlace>();
  const std::vector<PlaceParser> parsers = all_parsers();
  if (by != StartedBy::kAuto && !is_named(parsers, environment, by)) {
    return Status::invalid_argument(
        fmt::format("--started-by={}: the environment has nothing of it; leave the option out, or start this with {}",
                    name_of(by), by == StartedBy::kTfConfig ? "TF_CONFIG set" : launcher_of(by)));
  }
  FoundPlace place = task_place(environment, by, parsers);
  if (place.ok() || by != StartedBy::kAuto) return place;
  return Status(place.status().code(),
                fmt::format("{}; say whom to believe, or none, with --started-by", place.status().message()));
}

}  // namespace syncopate::experiments
