#include "experiments/cluster/launcher/host_probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "experiments/cluster/host/build_facts.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/process/probe.h"

namespace syncopate::experiments {
namespace {

constexpr off_t kMostAnswer = 1 << 20;

// A host that is being asked.
struct Question {
  std::string host;
  FileDescriptor answer;  // a memory file with what it has printed
  std::optional<StartedChild> shell;
  Status failure;  // why it could not even be asked
};

Question ask(const std::string& host, const ProbeOptions& options) {
  Question question{.host = host, .answer = FileDescriptor(memfd_create("answer", MFD_CLOEXEC))};
  std::vector<std::string> command{options.shell.program};
  for (std::string& argument : probe_arguments(options.with_gpus, options.towards)) command.push_back(argument);
  Result<StartedChild> shell =
      start_child(through_remote_shell(options.shell, host, remote_command(options.shell, {}, command)), {},
                  "the remote shell", fmt::format("/proc/self/fd/{}", question.answer.get()));
  if (!shell.ok()) {
    question.failure =
        Status::invalid_argument(fmt::format("the remote shell {} cannot be started", options.shell.words.front()));
    return question;
  }
  question.shell = std::move(*shell);
  return question;
}

std::string answer_to(const Question& question) {
  std::string text(static_cast<std::size_t>(std::min(kMostAnswer, lseek(question.answer.get(), 0, SEEK_END))), '\0');
  const ssize_t count = pread(question.answer.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

std::string last_line_of(const std::string& text) {
  std::istringstream lines(text);
  std::string line, last;
  while (std::getline(lines, line)) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line.substr(0, line.find('\r'));
  }
  return last;
}

bool ended_before(const StartedChild& shell, TimePoint deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock().now());
  pollfd item{.fd = shell.handle.get(), .events = POLLIN, .revents = 0};
  return poll(&item, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) > 0;
}

std::string build_of(const std::string& fingerprint, const std::string& commit) {
  return commit.empty() ? fingerprint : fmt::format("{}, commit {}", fingerprint, commit.substr(0, 12));
}

Result<HostReport> judge(const Question& question, int status, const ProbeOptions& options) {
  const std::string text = answer_to(question);
  Result<HostReport> report = parse_host_report(text);
  if (!report.ok()) {
    const std::string last = last_line_of(text);
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

Result<HostReport> answer_of(Question& question, TimePoint deadline, const ProbeOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(question.failure);
  if (!ended_before(*question.shell, deadline)) {
    return Status::invalid_argument(fmt::format("has not answered within {:.3g} s", seconds(options.timeout)));
  }
  int status = 0;
  waitpid(question.shell->pid, &status, 0);
  question.shell.reset();
  return judge(question, status, options);
}

}  // namespace

Result<std::vector<HostReport>> probe_hosts(const ProbeOptions& options) {
  const TimePoint deadline = SteadyClock().now() + options.timeout;
  std::vector<Question> questions;
  for (const std::string& host : options.hosts) questions.push_back(ask(host, options));
  std::vector<HostReport> reports;
  std::vector<std::string> wrong;
  for (Question& question : questions) {
    Result<HostReport> report = answer_of(question, deadline, options);
    if (report.ok()) {
      reports.push_back(std::move(*report));
    } else {
      wrong.push_back(fmt::format("host {}: {}", question.host, report.status().message()));
    }
    if (!question.shell) continue;
    std::vector<StartedChild> late;
    late.push_back(std::move(*question.shell));
    kill_and_reap(late);
  }
  if (wrong.empty()) return reports;
  return Status::invalid_argument(fmt::format("{}", fmt::join(wrong, "; ")));
}

}  // namespace syncopate::experiments
