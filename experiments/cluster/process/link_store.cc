#include "experiments/cluster/process/link_store.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/os/whole_file.h"

namespace syncopate::experiments {
namespace {

using nlohmann::json;

// Returns the file's JSON object; empty if there is no file, or it contains something else.
json contents_of(const std::string& path) {
  std::ifstream file(path);
  json contents = file ? json::parse(file, nullptr, false) : json::object();
  return contents.is_object() ? contents : json::object();
}

std::optional<double> positive(const json& entry, const char* name) {
  const auto found = entry.find(name);
  if (found == entry.end() || !found->is_number() || found->get<double>() < 0) return std::nullopt;
  return found->get<double>();
}

std::optional<allreduce::LinkModel> link_in(const json& entry, const char* name) {
  const auto link = entry.find(name);
  if (link == entry.end() || !link->is_object()) return std::nullopt;
  const std::optional<double> latency = positive(*link, "latency_seconds");
  const std::optional<double> per_byte = positive(*link, "seconds_per_byte");
  const std::optional<double> reduce = positive(*link, "reduce_seconds_per_byte");
  if (!latency || !per_byte || !reduce) return std::nullopt;
  return allreduce::LinkModel{*latency, *per_byte, *reduce};
}

json to_json(const allreduce::LinkModel& link) {
  return {{"latency_seconds", link.latency},
          {"seconds_per_byte", link.seconds_per_byte},
          {"reduce_seconds_per_byte", link.reduce_seconds_per_byte}};
}

}  // namespace

LinkStore LinkStore::of_user() {
  constexpr const char* kFile = "syncopate/links.json";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return LinkStore(fmt::format("{}/{}", cache, kFile));
  const char* home = std::getenv("HOME");
  return LinkStore(home != nullptr && *home != '\0' ? fmt::format("{}/.cache/{}", home, kFile) : std::string());
}

std::optional<allreduce::GroupLinks> LinkStore::find(const std::string& wire) const {
  const json contents = contents_of(path_);
  const auto entry = contents.find(wire);
  if (entry == contents.end() || !entry->is_object()) return std::nullopt;
  const std::optional<allreduce::LinkModel> inside = link_in(*entry, "inside");
  const std::optional<allreduce::LinkModel> across = link_in(*entry, "across");
  const std::optional<allreduce::LinkModel> two_level_inside = link_in(*entry, "two_level_inside");
  if (!inside || !across || !two_level_inside) return std::nullopt;
  return allreduce::GroupLinks{*inside, *across, *two_level_inside};
}

Status LinkStore::keep(const std::string& wire, const allreduce::GroupLinks& links) const {
  if (path_.empty()) return {};
  const Status made = make_folder(std::filesystem::path(path_).parent_path());
  if (!made.ok()) return made.in(path_);
  json contents = contents_of(path_);
  contents[wire] = {{"inside", to_json(links.inside)},
                    {"across", to_json(links.across)},
                    {"two_level_inside", to_json(links.two_level_inside)}};
  return write_whole_file(path_, contents.dump(1, ' ', false, json::error_handler_t::replace) + '\n');
}

}  // namespace syncopate::experiments
