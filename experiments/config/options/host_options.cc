#include <fmt/format.h>

#include "common/os/regular_file.h"
#include "common/text/printable_text.h"
#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"
#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {
namespace {

using option_kinds::number;
using option_kinds::only;
using option_kinds::text;
using option_kinds::wrong;

using C = RunRequest;

OptionSpec hosts() {
  OptionSpec option{
      .group = "Several hosts",
      .name = "hosts",
      .names_hosts = true,
      .placeholder = "LIST",
      .sentence =
          "Where workers go, filling slots in order; servers go to these hosts in turn, also where there are "
          "0 slots. localhost is this one. Of a simulated cluster or of namespaces: 16x4, that many hosts of that many "
          "slots.",
      .range = "HOST[:SLOTS], as in A:2,B:2 or [fd00::7]:2, or HOSTSxSLOTS",
      .usual = "this host",
      .is_text = true,
      .excludes = "hostfile"};
  option.set = [](RunRequest& request, const std::string& value) -> Status {
    Result<std::vector<HostSlots>> parsed = parse_hosts(value);
    if (!parsed.ok()) return parsed.status().in(fmt::format("--hosts={}", value));
    request.hosts = std::move(*parsed);
    return {};
  };
  option.get = [](const ResolvedRun& config) { return to_text(config.hosts); };
  return option;
}

// Its contents are recorded as --hosts.
OptionSpec hostfile() {
  OptionSpec option{.group = "Several hosts",
                    .name = "hostfile",
                    .names_hosts = true,
                    .placeholder = "FILE",
                    .sentence =
                        "The same from a file, such as Open MPI's, MPICH's, Horovod's or DeepSpeed's: a host "
                        "a line, HOST, HOST:SLOTS or HOST slots=SLOTS.",
                    .range = "a file that can be read",
                    .usual = "none",
                    .is_text = true,
                    .in_file = false,
                    .excludes = "hosts"};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    constexpr std::uint64_t kMostBytes = 1 << 20;
    const Result<std::string> text = read_input(value, kMostBytes);
    if (!text.ok()) {
      return Status::invalid_argument(fmt::format("--hostfile={}: must be a file that can be read ({})",
                                                  printable(value), text.status().message()));
    }
    Result<std::vector<HostSlots>> parsed = parse_host_file(*text);
    if (!parsed.ok()) {
      const Status status(parsed.status().code(), printable(parsed.status().message()));
      return status.in(fmt::format("--hostfile={}", value));
    }
    request.hosts = std::move(*parsed);
    return {};
  };
  option.get = [](const ResolvedRun&) { return std::string(); };
  return option;
}

OptionSpec remote_shell() {
  OptionSpec option = text({.group = "Several hosts",
                            .name = "remote-shell",
                            .names_hosts = true,
                            .placeholder = "COMMAND",
                            .sentence = "What runs a command on another host: host and command are put behind it.",
                            .range = "words, quoted as for a shell"},
                           &C::remote_shell, "remote shell");
  option.set = [set = option.set, option](RunRequest& request, const std::string& value) -> Status {
    if (!split_words(value).ok() || split_words(value)->empty()) return wrong(option, value, "remote shell");
    return set(request, value);
  };
  return option;
}

}  // namespace

void add_host_options(std::vector<OptionSpec>& table) {
  const std::string group = "Several hosts";
  table.push_back(only(hosts(), conditions::kDistributed));
  table.push_back(only(hostfile(), conditions::kDistributed));
  const auto spanning = [&](OptionSpec option) { table.push_back(only(std::move(option), conditions::kOtherHosts)); };
  spanning(remote_shell());
  spanning(text({.group = group,
                 .name = "remote-program",
                 .placeholder = "PATH",
                 .sentence = "Where this program lies on the other hosts.",
                 .range = "an absolute path",
                 .usual = "where it lies here"},
                &C::remote_program, "program"));
  spanning(number({.group = group,
                   .name = "wait-for-hosts",
                   .placeholder = "SECONDS",
                   .sentence = "How long hosts may take until they can be reached at all, as pods that start together "
                               "with this program; they are tried every second.",
                   .unit = "seconds"},
                  &C::wait_for_hosts_seconds, "waiting for hosts", 0.0, 86400.0));
  spanning(text({.group = group,
                 .name = "listen-address",
                 .placeholder = "ADDRESS",
                 .sentence = "Where the other hosts reach this one.",
                 .range = "an address of this host, of IPv4 or IPv6",
                 .usual = "the one that the route to them uses"},
                &C::listen_address, &ResolvedRun::listen_address, "address"));
  add_pass_through_options(table);
}

}  // namespace syncopate::experiments
