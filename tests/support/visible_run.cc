#include "tests/support/visible_run.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "tests/support/private_network.h"
#include "tests/support/running_processes.h"

namespace syncopate::testing_support {
namespace {

std::string value_of(const RunningProcess& process, const std::string& option) {
  for (const std::string& argument : process.arguments) {
    if (argument.starts_with(option + "=")) return argument.substr(option.size() + 1);
  }
  return "";
}

// Fields of the lines of a list of the kernel's, without its head.
std::vector<std::vector<std::string>> rows_of(const char* file) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream lines(file);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream rest(line);
    std::vector<std::string> fields;
    for (std::string field; rest >> field;) fields.push_back(field);
    rows.push_back(std::move(fields));
  }
  return rows;
}

}  // namespace

std::optional<VisibleRun> visible_run(pid_t coordinator) {
  for (const RunningProcess& process : processes_of_run(coordinator)) {
    VisibleRun run{value_of(process, "--run"), value_of(process, "--rendezvous")};
    if (!run.id.empty() && !run.control.empty()) return run;
  }
  return std::nullopt;
}

std::vector<std::string> listening_places(pid_t coordinator) {
  std::vector<std::string> places;
  if (!enter_private_network()) {
    if (const std::optional<VisibleRun> run = visible_run(coordinator)) places.push_back(run->control);
    return places;
  }
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    for (const std::vector<std::string>& row : rows_of(file)) {
      if (row.size() < 10 || row[3] != "0A") continue;
      unsigned port = 0;
      const std::string text = row[1].substr(row[1].find(':') + 1);
      std::from_chars(text.data(), text.data() + text.size(), port, 16);
      places.push_back(fmt::format("tcp://127.0.0.1:{}", port));
    }
  }
  for (const std::vector<std::string>& row : rows_of("/proc/net/unix")) {
    const bool listens = row.size() > 7 && row[3] == "00010000" && row[7].starts_with("@");
    if (listens) places.push_back((row[4] == "0005" ? "seqpacket://" : "ipc://") + row[7]);
  }
  return places;
}

bool is_alive(pid_t process) {
  std::string state;
  std::ifstream lines(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("State:")) state = line;
  }
  return !state.empty() && state.find('Z') == std::string::npos;
}

std::size_t peak_memory(pid_t process) {
  std::ifstream lines(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) * 1024;
  }
  return 0;
}

}  // namespace syncopate::testing_support
