#include "experiments/lab/run/running_runs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/os/process_handle.h"
#include "common/os/resource_limits.h"
#include "common/text/printable_text.h"
#include "experiments/cluster/coordinator/interrupts.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kMostBytes = 64 * 1024;

Status check_own_folder(const std::string& folder) {
  struct stat facts {};
  if (lstat(folder.c_str(), &facts) != 0) {
    return Status::resource_exhausted(fmt::format("{}: {}", folder, std::strerror(errno)));
  }
  const bool is_own = S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (is_own) return {};
  return Status::invalid_argument(
      fmt::format("{}: must be a folder that is yours alone to write to; remove it, or name another place with "
                  "XDG_RUNTIME_DIR",
                  folder));
}

bool is_locked(const FileDescriptor& file) { return flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

std::string text_in(const FileDescriptor& file) {
  std::string text(kMostBytes, '\0');
  const ssize_t count = pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

std::optional<RunningRun> run_in(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  try {
    return RunningRun{.pid = json.at("pid"),
                      .command = json.at("command"),
                      .job = json.at("job"),
                      .results = json.at("results"),
                      .started = json.at("started")};
  } catch (const Json::exception&) {  // it is being written
    return std::nullopt;
  }
}

bool is_called(const RunningRun& run, const std::string& which) {
  std::error_code none;
  return which == run.name() || which == std::to_string(run.pid) || fs::weakly_canonical(which, none) == run.results;
}

}  // namespace

std::string RunningRun::name() const { return fs::path(results).filename().string(); }

Result<RunningRuns> RunningRuns::of_user() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  const bool has_one = runtime != nullptr && runtime[0] == '/';
  const std::string folder =
      has_one ? fmt::format("{}/syncopate", runtime) : fmt::format("/tmp/syncopate-{}", geteuid());
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Status::resource_exhausted(fmt::format("{}: {}", folder, std::strerror(errno)));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_own_folder(folder));
  return RunningRuns(folder);
}

RunningRuns::Entry::~Entry() { unlink(path_.c_str()); }

Result<std::unique_ptr<RunningRuns::Entry>> RunningRuns::add(const RunningRun& run) const {
  const std::string path = fmt::format("{}/{}.json", folder_, run.pid);
  const auto failed = [&] {
    return Status::resource_exhausted(fmt::format("{}: {}{}", path, std::strerror(errno), limit_behind(errno)));
  };
  unlink(path.c_str());  // of another process that had this id
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.open() || flock(file.get(), LOCK_EX | LOCK_NB) != 0) return failed();
  const Json json{
      {"pid", run.pid}, {"command", run.command}, {"job", run.job}, {"results", run.results}, {"started", run.started}};
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return failed();
  return std::make_unique<Entry>(path, std::move(file));
}

std::vector<RunningRun> RunningRuns::list() const {
  std::vector<RunningRun> runs;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder_, none)) {
    const std::string path = entry.path();
    if (!path.ends_with(".json")) continue;
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file.open()) continue;
    std::optional<RunningRun> run = run_in(text_in(file));
    if (is_locked(file)) {
      if (run) runs.push_back(std::move(*run));
    } else if (run) {
      unlink(path.c_str());
    }
  }
  std::ranges::sort(runs, {}, &RunningRun::pid);
  return runs;
}

Result<RunningRun> RunningRuns::stop(const std::string& which, Duration patience) const {
  const auto named = [&] {
    std::vector<RunningRun> runs = list();
    std::erase_if(runs, [&](const RunningRun& run) { return !is_called(run, which); });
    return runs;
  };
  const std::vector<RunningRun> runs = named();
  if (runs.size() != 1) {
    return Status::invalid_argument(
        fmt::format("{}: {} under way is called so; run_experiment ps lists them", printable(which),
                    runs.empty() ? "no run of yours that is" : "more than one run of yours that is"));
  }
  const Result<ProcessHandle> process = ProcessHandle::of(runs.front().pid);
  // What holds the lock now is what the handle is of: a run that has ended meanwhile holds none.
  const std::vector<RunningRun> still = named();
  if (!process.ok() || still.size() != 1 || still.front().pid != runs.front().pid) return runs.front();
  if (const int error = ask_to_end(*process, SIGINT); error != 0 && error != ESRCH) {
    return Status::invalid_argument(fmt::format("{}: {}", printable(which), std::strerror(error)));
  }
  if (process->ends_before(SteadyClock().now() + patience)) return runs.front();
  return Status::deadline_exceeded(fmt::format("{} (pid {}) has been asked to end, and has not within {:g} s",
                                               printable(runs.front().name()), runs.front().pid, seconds(patience)));
}

}  // namespace syncopate::experiments
