#include "experiments/cluster/launcher/host_probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <optional>

#include "experiments/cluster/host/build_facts.h"
#include "experiments/cluster/launcher/remote_question.h"
#include "experiments/cluster/process/probe.h"

namespace syncopate::experiments {
namespace {

RemoteQuestion ask(const std::string& host, const ProbeOptions& options) {
  std::vector<std::string> command{options.shell.program};
  for (std::string& argument : probe_arguments(options.with_gpus, options.towards)) command.push_back(argument);
  return {options.shell, host, remote_command(options.shell, {}, command)};
}

std::string build_of(const std::string& fingerprint, const std::string& commit) {
  return commit.empty() ? fingerprint : fmt::format("{}, commit {}", fingerprint, commit.substr(0, 12));
}

Result<HostReport> judge(const RemoteQuestion& question, int status, const ProbeOptions& options) {
  Result<HostReport> report = parse_host_report(question.answer());
  if (!report.ok()) {
    const std::string last = question.last_line();
    const std::string end = WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                                                : fmt::format("ended with exit code {}", WEXITSTATUS(status));
    return Status::invalid_argument(fmt::format("cannot run {} --probe in {}: the remote shell {}{}{}",
                                                options.shell.program, options.shell.directory, end,
                                                last.empty() ? "" : ": ", last));
  }
  if (report->fingerprint != source_fingerprint()) {
    return Status::invalid_argument(
        fmt::format("{} is of other sources ({}) than this program ({}); build the same there", options.shell.program,
                    build_of(report->fingerprint, report->environment.commit),
                    build_of(source_fingerprint(), this_environment().commit)));
  }
  return report;
}

Result<HostReport> answer_of(RemoteQuestion& question, TimePoint deadline, const ProbeOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> status, question.status_before(deadline));
  if (status) return judge(question, *status, options);
  return Status::invalid_argument(fmt::format("has not answered within {:.3g} s", seconds(options.timeout)));
}

}  // namespace

Result<std::vector<HostReport>> probe_hosts(const ProbeOptions& options) {
  const TimePoint deadline = SteadyClock().now() + options.timeout;
  std::vector<RemoteQuestion> questions;
  for (const std::string& host : options.hosts) questions.push_back(ask(host, options));
  std::vector<HostReport> reports;
  std::vector<std::string> wrong;
  for (RemoteQuestion& question : questions) {
    Result<HostReport> report = answer_of(question, deadline, options);
    if (report.ok()) {
      reports.push_back(std::move(*report));
    } else {
      wrong.push_back(fmt::format("host {}: {}", question.host(), report.status().message()));
    }
  }
  if (wrong.empty()) return reports;
  return Status::invalid_argument(fmt::format("{}", fmt::join(wrong, "; ")));
}

}  // namespace syncopate::experiments
