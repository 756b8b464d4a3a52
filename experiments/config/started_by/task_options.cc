#include "experiments/config/started_by/task_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/launch/rank_variables.h"
#include "experiments/config/started_by/started_task.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kAlone = "--started-by=none begins a run without the others";

std::string count_text(const TaskPlace& place) {
  return fmt::format("{} has started {} processes", launcher_of(place.by), place.size);
}

// Options about what the starter has decided.
Status check_options(const TaskPlace& place, const GivenOptions& given) {
  constexpr std::string_view kDecided[] = {"remote-program", "listen-address", "cluster",
                                           "launcher",       "command",        "wait-for-hosts"};
  for (const OptionSpec& option : option_table()) {
    const bool is_decided = option.names_hosts || std::ranges::find(kDecided, option.name) != std::end(kDecided);
    const auto its = given.find(option.name);
    if (!is_decided || its == given.end() || its->second == "real" || its->second == "local") continue;
    return Status::invalid_argument(fmt::format("--{}={}: {}, which are this run's; leave the option out, or {}",
                                                option.name, its->second, count_text(place), kAlone));
  }
  return {};
}

// What tasks on several hosts must know of each other.
Status check_several_hosts(const TaskPlace& place) {
  const auto wrong = [&](const std::string& what) {
    return Status::invalid_argument(fmt::format("{} on several hosts; {}", count_text(place), what));
  };
  // mpirun passes few variables on to other hosts.
  const auto all_have = [&](const char* name, const char* value) {
    return place.by == StartedBy::kOpenMpi ? fmt::format("mpirun -x {}={} ...", name, value)
                                           : fmt::format("{}={} in the environment of all", name, value);
  };
  if (place.job.empty()) return wrong(fmt::format("it does not say which of its jobs they are; {}", kAlone));
  if (place.first_host.empty()) {
    return wrong(fmt::format("it does not say on which of them rank 0 is; name that one, with {}",
                             all_have(kMasterAddress, "HOST")));
  }
  if (place.secret_file.empty()) {
    return wrong(
        fmt::format("they need a secret in common: make one, (umask 077; head -c 32 /dev/urandom >FILE), copy it to "
                    "all hosts, and name it, with {}",
                    all_have(kSecretFile, "FILE")));
  }
  return {};
}

Status put(GivenOptions& given, const std::string& name, int value, const std::string& why) {
  const std::string text = std::to_string(value);
  const auto [option, is_new] = given.emplace(name, text);
  if (is_new || option->second == text) return {};
  return Status::invalid_argument(
      fmt::format("--{0}={1}: {2}; use --{0}={3}, or leave it out", name, option->second, why, text));
}

Status put_servers(const TaskPlace& place, const RunRequest& request, GivenOptions& given) {
  const int servers = place.roles->servers;
  const std::string why = fmt::format("TF_CONFIG has {} ps", servers);
  if (is_colocated(request) && servers == separate_servers_of(request)) return {};
  if (has_servers(request) && servers > 0) return put(given, "servers", servers, why);
  if (!has_servers(request) && servers == 0) return {};
  const std::string remedy = servers > 0 ? "use " + modes_with(&ModeTraits::has_servers)
                                         : fmt::format("use {}, or add some", modes_with([](const ModeTraits& mode) {
                                                         return mode.is_distributed && !mode.has_servers;
                                                       }));
  return Status::invalid_argument(fmt::format("--mode={}: {}; {}", name_of(request.mode), why, remedy));
}

}  // namespace

OptionSpec started_by_option() {
  return {.group = "Several hosts",
          .name = "started-by",
          .placeholder = "WHO",
          .sentence =
              "Who has started this process together with others, which are then the workers and servers of one "
              "run: auto believes the environment; none begins a run without the others.",
          .range = started_by_names(),
          .usual = name_of(StartedBy::kAuto)};
}

Status settle_tasks(const TaskPlace& place, GivenOptions& given) {
  if (place.evaluates) return {};
  if (!place.one_host) SYNCOPATE_RETURN_IF_ERROR(check_several_hosts(place));
  SYNCOPATE_RETURN_IF_ERROR(check_options(place, given));
  SYNCOPATE_ASSIGN_OR_RETURN(RunRequest request, apply_options(given));
  if (!is_distributed(request)) {
    return Status::invalid_argument(fmt::format("--mode={}: trains in one process, and {}; use {}, or start one",
                                                name_of(request.mode), count_text(place),
                                                modes_with(&ModeTraits::is_distributed)));
  }
  if (place.roles) {
    SYNCOPATE_RETURN_IF_ERROR(put_servers(place, request, given));
    request.servers = place.roles->servers;
  }
  const int replicas = has_servers(request) ? request.replicas : 0;
  const int servers = separate_servers_of(request) * (1 + replicas);
  const int workers = place.size - (place.roles ? place.roles->servers : servers);
  if (place.roles && replicas > 0) {
    return Status::invalid_argument(
        fmt::format("--replicas={}: TF_CONFIG has no role for standbys; leave it out", replicas));
  }
  if (workers < 1) {
    return Status::invalid_argument(fmt::format(
        "--servers={}: {}, {} of which would be servers{}, and none is left for a worker; start more, or use "
        "fewer servers",
        servers_text(request), count_text(place), servers, replicas > 0 ? " and standbys" : ""));
  }
  const std::string of_servers = servers > 0 ? fmt::format(", of which {} are servers", servers) : "";
  return put(given, "workers", workers, count_text(place) + of_servers);
}

}  // namespace syncopate::experiments
