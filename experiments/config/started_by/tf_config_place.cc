#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/launch/launcher_places.h"
#include "common/text/printable_text.h"
#include "experiments/config/started_by/started_task.h"

namespace syncopate::experiments {
namespace {

using Json = nlohmann::json;

Status wrong(const std::string& what) { return Status::invalid_argument("TF_CONFIG: " + what); }

// Addresses of the tasks, by role: "10.0.0.7:2222".
using Addresses = std::map<std::string, std::vector<std::string>>;

Result<Addresses> addresses_in(const Json& cluster) {
  Addresses addresses;
  for (const auto& [role, tasks] : cluster.items()) {
    if (role != "chief" && role != "master" && role != "worker" && role != "ps" && role != "evaluator") {
      return wrong(fmt::format("cluster has '{}'; roles are chief, worker, ps and evaluator", printable(role)));
    }
    if (!tasks.is_array()) return wrong(fmt::format("cluster.{} must be a list of HOST:PORT", role));
    for (const Json& task : tasks) {
      const std::string address = task.is_string() ? task.get<std::string>() : "";
      if (address.find(':') == std::string::npos || address.starts_with(':')) {
        return wrong(fmt::format("cluster.{} has {}; must be HOST:PORT", role,
                                 task.is_string() ? printable(address) : "what is no text"));
      }
      // Beside a chief, "master" is its older name.
      addresses[role == "master" ? "chief" : role].push_back(address);
    }
  }
  return addresses;
}

// Without the brackets of an address of IPv6.
std::string host_of(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

bool is_one_host(const std::vector<std::string>& addresses) {
  return std::ranges::all_of(addresses,
                             [&](const auto& address) { return host_of(address) == host_of(addresses.front()); });
}

// The index among the tasks of its host, which come in the order of ranks.
int local_rank_of(const std::vector<std::string>& addresses, std::size_t rank) {
  return static_cast<int>(
      std::count_if(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(rank),
                    [&](const auto& address) { return host_of(address) == host_of(addresses[rank]); }));
}

struct OwnTask {
  std::string role;
  int index = 0;
};

Result<OwnTask> own_task_in(const Json& config) {
  const Json task = config.value("task", Json::object());
  const Json role = task.is_object() ? task.value("type", Json()) : Json();
  if (!role.is_string()) return wrong("task.type is missing: chief, worker, ps or evaluator");
  Json index = task.value("index", Json(0));
  if (index.is_string()) index = Json::parse(index.get<std::string>(), nullptr, false);  // some platforms quote it
  if (!index.is_number_unsigned() || index > 65535) return wrong("task.index must be a whole number from 0");
  const std::string name = role.get<std::string>();
  return OwnTask{.role = name == "master" ? "chief" : name, .index = index.get<int>()};
}

}  // namespace

FoundPlace place_by_tf_config(const Variables& environment) {
  const std::string text = text_in(environment, "TF_CONFIG");
  if (text.empty()) return std::optional<TaskPlace>();
  const Json config = Json::parse(text, nullptr, false);
  if (!config.is_object()) return wrong("must be a JSON object with cluster and task");
  const Json cluster = config.value("cluster", Json::object());
  if (!cluster.is_object()) return wrong("cluster must have lists of HOST:PORT by role");
  if (cluster.empty()) return std::optional<TaskPlace>();  // a process alone
  SYNCOPATE_ASSIGN_OR_RETURN(Addresses addresses, addresses_in(cluster));
  SYNCOPATE_ASSIGN_OR_RETURN(const OwnTask own, own_task_in(config));
  if (own.role == "evaluator") return std::optional(TaskPlace{.by = StartedBy::kTfConfig, .evaluates = true});
  std::vector<std::string> all;
  int rank = -1;
  for (const char* role : {"chief", "worker", "ps"}) {
    const std::vector<std::string>& tasks = addresses[role];
    if (role == own.role && own.index < static_cast<int>(tasks.size())) rank = static_cast<int>(all.size()) + own.index;
    all.insert(all.end(), tasks.begin(), tasks.end());
  }
  if (rank < 0) {
    return wrong(fmt::format("task is {} {}, which cluster does not have", printable(own.role), own.index));
  }
  const auto servers = static_cast<int>(addresses["ps"].size());
  const auto size = static_cast<int>(all.size());
  if (servers == size) return wrong("cluster has no chief and no worker");
  return std::optional(TaskPlace{.by = StartedBy::kTfConfig,
                                 .rank = rank,
                                 .size = size,
                                 .local_rank = local_rank_of(all, static_cast<std::size_t>(rank)),
                                 .one_host = is_one_host(all),
                                 .first_host = host_of(all.front()),
                                 .job = "tf-config-" + all.front(),
                                 .roles = FixedRoles{.workers = size - servers, .servers = servers}});
}

}  // namespace syncopate::experiments
