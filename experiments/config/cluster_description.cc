#include "experiments/config/cluster_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "common/os/regular_file.h"
#include "common/text/nearest_name.h"
#include "common/text/printable_text.h"
#include "experiments/config/optimizer_choice.h"
#include "experiments/config/toml.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostClusterBytes = 1 << 20;

struct RateTable {
  const char* name;
  std::map<std::string, double> ClusterDescription::*rates;
};
constexpr RateTable kRateTables[] = {{"update", &ClusterDescription::update},
                                     {"encode", &ClusterDescription::encode},
                                     {"decode", &ClusterDescription::decode}};

std::string codec_name(std::string_view codec) { return std::string(codec.substr(0, codec.find(':'))); }

// The names of all entries that a file may have.
std::vector<std::string> entry_names() {
  std::vector<std::string> names = {"link", "inside", "compute", "sum"};
  for (const OptimizerTraits& traits : kOptimizers) names.push_back(fmt::format("update.{}", traits.name));
  for (const char* codec : {"fp16", "bf16", "int8", "topk", "randomk", "sign"}) {
    names.push_back(fmt::format("encode.{}", codec));
    names.push_back(fmt::format("decode.{}", codec));
  }
  return names;
}

Status read_link(const std::string& text, std::optional<LinkShape>& link) {
  Result<LinkShape> parsed = LinkShape::parse(text);
  if (!parsed.ok()) return Status::invalid_argument(fmt::format("must be {}", LinkShape::forms()));
  link = *parsed;
  return {};
}

Status read_rate(const std::string& text, double& rate) {
  const std::optional<double> parsed = parse_byte_rate(text);
  if (!parsed) return Status::invalid_argument("must be bytes a second, as in 900MB/s or 4.2GB/s");
  rate = *parsed;
  return {};
}

Status read_entry(const std::string& name, const std::string& value, ClusterDescription& cluster) {
  if (name == "link") return read_link(value, cluster.link);
  if (name == "inside") return read_link(value, cluster.inside);
  if (name == "sum") return read_rate(value, cluster.sum);
  if (name == "compute") {
    const Result<ComputeModel> parsed = ComputeModel::parse(value);
    if (!parsed.ok()) return Status::invalid_argument(fmt::format("must be {}", ComputeModel::forms()));
    cluster.compute = *parsed;
    return {};
  }
  const std::size_t dot = name.find('.');
  const auto table = std::ranges::find(kRateTables, std::string_view(name).substr(0, dot), &RateTable::name);
  return read_rate(value, (cluster.*table->rates)[name.substr(dot + 1)]);
}

}  // namespace

ProcessingModel ClusterDescription::processing_of(const std::string& optimizer, const std::string& codec) const {
  const auto rate_of = [](const std::map<std::string, double>& rates, const std::string& name) {
    const auto found = rates.find(name);
    return found == rates.end() ? 0.0 : found->second;
  };
  ProcessingModel model{.source = ProcessingModel::Source::kGiven,
                        .sum = sum,
                        .update = rate_of(update, optimizer),
                        .encode = rate_of(encode, codec_name(codec)),
                        .decode = rate_of(decode, codec_name(codec))};
  const bool knows_any = model.sum > 0 || model.update > 0 || model.encode > 0 || model.decode > 0;
  return knows_any ? model : ProcessingModel();
}

Result<ClusterDescription> read_cluster(std::string_view text) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto entries, read_toml(text));
  if (entries.empty())
    return Status::invalid_argument("says nothing of a cluster; `run_experiment calibrate` writes one");
  const std::vector<std::string> known = entry_names();
  std::set<std::string> seen;
  ClusterDescription cluster;
  for (const auto& [name, value] : entries) {
    if (std::ranges::find(known, name) == known.end()) {
      const std::string nearest = nearest_name(printable(name, 80), known);
      return Status::invalid_argument(
          fmt::format("{}: no such entry; {}", printable(name, 80),
                      nearest.empty() ? "there are link, inside, compute, sum, update.OPTIMIZER, encode.CODEC and "
                                        "decode.CODEC"
                                      : fmt::format("did you mean {}?", nearest)));
    }
    if (!seen.insert(name).second) return Status::invalid_argument(name + ": given twice; once is enough");
    const Status status = read_entry(name, value, cluster);
    if (!status.ok()) return status.in(fmt::format("{} = '{}'", name, printable(value, 80)));
  }
  return cluster;
}

Result<ClusterDescription> open_cluster(const std::string& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, read_regular_file(path, kMostClusterBytes));
  Result<ClusterDescription> cluster = read_cluster(text);
  if (!cluster.ok()) return cluster.status().in(path);
  cluster->file = path;
  if (cluster->compute && cluster->compute->profile.ends_with(".json")) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    cluster->compute->profile = (folder / cluster->compute->profile).string();
  }
  return cluster;
}

std::string to_toml(const ClusterDescription& cluster, std::string_view comment) {
  std::string text(comment);
  const auto line = [&](const std::string& name, const std::string& value, const char* meaning) {
    text += fmt::format("{} = \"{}\"  # {}\n", name, value, meaning);
  };
  if (cluster.link) line("link", cluster.link->to_string(), "of each host, and a message's way to another one");
  if (cluster.inside) line("inside", cluster.inside->to_string(), "between processes of one host");
  if (cluster.compute) line("compute", cluster.compute->to_string(), "of one worker alone");
  if (cluster.sum > 0) line("sum", byte_rate_text(cluster.sum), "bytes added to others");
  constexpr const char* kMeanings[] = {"bytes of weights", "bytes of gradients", "bytes of gradients that come out"};
  for (std::size_t table = 0; table < std::size(kRateTables); ++table) {
    for (const auto& [name, rate] : cluster.*kRateTables[table].rates) {
      line(fmt::format("{}.{}", kRateTables[table].name, name), byte_rate_text(rate), kMeanings[table]);
    }
  }
  return text;
}

}  // namespace syncopate::experiments
