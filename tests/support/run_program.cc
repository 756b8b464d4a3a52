#include "tests/support/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "experiments/checkpoint/safetensors.h"
#include "tests/support/build_paths.h"

namespace syncopate::testing_support {
namespace {

// Commands that take no folder for results, nor a device.
constexpr std::string_view kWithoutRuns[] = {"profile",  "calibrate", "predict", "why",  "report",
                                             "evaluate", "doctor",    "ps",      "stop", "reproduce"};

constexpr std::chrono::milliseconds kBetweenLooks{10};
constexpr Duration kForever = std::chrono::seconds(60) * kSlowness;

bool given(const std::vector<std::string>& flags, const std::string& name) {
  return std::ranges::any_of(flags, [&](const std::string& flag) { return flag.starts_with("--" + name + "="); });
}

bool readable_within(const FileDescriptor& handle, std::chrono::milliseconds limit) {
  pollfd item{.fd = handle.get(), .events = POLLIN, .revents = 0};
  return poll(&item, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace

std::string shared_data_dir() { return std::filesystem::path(syncopate_program()).parent_path() / "test-data"; }

TemporaryFolder::TemporaryFolder() {
  std::string name = std::filesystem::temp_directory_path() / "syncopate-test-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << name << " cannot be made";
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> operator+(std::vector<std::string> flags, const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

Program::Program(std::vector<std::string> flags, const std::vector<std::string>& before)
    : output_(folder_.path() / "run") {
  for (const std::string& flag : flags) {
    if (flag.starts_with("--output=")) output_ = flag.substr(flag.find('=') + 1);
  }
  const bool trains = std::ranges::find(kWithoutRuns, flags.empty() ? "" : flags.front()) == std::end(kWithoutRuns);
  if (trains) add_usual(flags);
  start_program(before, std::move(flags));
}

void Program::add_usual(std::vector<std::string>& flags) const {
  std::vector<std::string> usual;
  if (!given(flags, "output")) usual.push_back("--output=" + output_.string());
  const auto dashes = std::ranges::find(flags, "--");
  if (dashes == flags.end() && !given(flags, "command")) {  // a program of one's own has its own data
    if (!given(flags, "data-dir")) usual.push_back("--data-dir=" + shared_data_dir());
    if (!given(flags, "device")) usual.push_back("--device=cpu");  // on every machine the same
  }
  flags.insert(dashes, usual.begin(), usual.end());
}

void Program::start_program(const std::vector<std::string>& before, std::vector<std::string> flags) {
  const char* const elsewhere = std::getenv("SYNCOPATE_PROGRAM");
  flags.insert(flags.begin(), elsewhere != nullptr ? elsewhere : syncopate_program());
  flags.insert(flags.begin(), before.begin(), before.end());
  start(flags);
}

void Program::start(const std::vector<std::string>& command) {
  std::vector<std::string> texts = command;
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  // What a person's programs keep must neither help nor suffer: each has a cache of its own, unless the test has one.
  const std::string cache = folder_.path() / "cache";
  const std::string out = folder_.path() / "out.txt", err = folder_.path() / "err.txt";
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // However the test was started: in the background of a script SIGINT is ignored.
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    setenv("XDG_CACHE_HOME", cache.c_str(), 0);
    // Root, who is often alone in a container, has to tell Open MPI twice.
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) setenv(name, "1", 0);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  if (pid_ < 0) ADD_FAILURE() << "no process could be started";
  handle_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

Program::~Program() {
  if (!reaped_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  // mpirun cleans up behind itself, if it is let.
  if (all_gone_within(std::chrono::seconds(10))) return;
  for (const RunningProcess& process : processes()) kill(process.pid, SIGKILL);
}

pid_t Program::process(const std::string& role, int rank) {
  pid_t found = 0;
  wait_until(fmt::format("{} {} is there", role, rank), [&] {
    for (const RunningProcess& process : processes()) {
      // mpirun has the arguments of all its processes.
      if (process.arguments.size() > 1 && process.arguments[1] == "--role=" + role &&
          process.has(fmt::format("--rank={}", rank))) {
        found = process.pid;
      }
    }
    return found != 0;
  });
  return found;
}

bool Program::wait_until(const std::string& what, const std::function<bool()>& condition) {
  const TimePoint deadline = SteadyClock().now() + kForever;
  while (!condition()) {
    if (!readable_within(handle_, kBetweenLooks) && SteadyClock().now() < deadline) continue;
    if (condition()) break;
    ADD_FAILURE() << "not so before the end: " << what << "\n" << text_of(folder_.path() / "err.txt");
    return false;
  }
  return true;
}

bool Program::wait_until_training(int workers) {
  return wait_until("steps of every worker are recorded", [&] {
    const std::string steps = steps_csv();
    for (int rank = 0; rank < workers; ++rank) {
      if (steps.find(fmt::format("\n0,{},", rank)) == std::string::npos) return false;
    }
    return true;
  });
}

bool Program::all_gone_within(Duration limit) const {
  const TimePoint deadline = SteadyClock().now() + limit;
  while (!processes().empty()) {
    if (SteadyClock().now() >= deadline) return false;
    poll(nullptr, 0, static_cast<int>(kBetweenLooks.count()));
  }
  return true;
}

void Program::signal(int number) const { kill(pid_, number); }

ProgramEnd Program::wait(Duration limit) {
  if (!readable_within(handle_, std::chrono::duration_cast<std::chrono::milliseconds>(limit))) {
    ADD_FAILURE() << "still running after " << seconds(limit) << " s";
    signal(SIGKILL);
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  reaped_ = true;
  if (kSanitized) expect_no_sanitizer_reports();
  return {.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          .out = text_of(folder_.path() / "out.txt"),
          .err = text_of(folder_.path() / "err.txt")};
}

void Program::expect_no_sanitizer_reports() const {
  std::vector<std::filesystem::path> files{folder_.path() / "err.txt"};
  std::error_code ignored;  // there are no logs if nothing was launched
  for (const auto& entry : std::filesystem::directory_iterator(output_ / "logs", ignored)) files.push_back(entry);
  for (const std::filesystem::path& file : files) {
    const std::string text = text_of(file);
    for (const char* report : {"AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error: "}) {
      EXPECT_EQ(text.find(report), std::string::npos) << file << ":\n" << text;
    }
  }
}

std::vector<std::string> Program::column(const std::string& file, const std::string& name) const {
  const auto cells_of = [](const std::string& line) {
    std::vector<std::string> cells;
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = std::min(line.find(',', begin), line.size());
      cells.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
    return cells;
  };
  const std::vector<std::string> lines = lines_of(text_of(output_ / file));
  std::vector<std::string> column;
  if (lines.empty()) return column;
  const std::vector<std::string> names = cells_of(lines.front());
  const auto place = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  for (std::size_t i = 1; i < lines.size(); ++i) column.push_back(cells_of(lines[i]).at(place));
  return column;
}

nlohmann::json Program::summary() const {
  const nlohmann::json json = nlohmann::json::parse(text_of(output_ / "summary.json"), nullptr, false);
  return json.is_discarded() ? nlohmann::json() : json;
}

std::vector<float> Program::weights() const {
  std::vector<float> all;
  const Result<experiments::SafetensorsFile> file =
      experiments::from_safetensors(text_of(output_ / "model.safetensors"));
  if (!file.ok()) return all;
  for (const auto& tensor : file->tensors) all.insert(all.end(), tensor.values.begin(), tensor.values.end());
  return all;
}

ProgramEnd run_program(std::vector<std::string> flags) { return Program(std::move(flags)).wait(); }

}  // namespace syncopate::testing_support
