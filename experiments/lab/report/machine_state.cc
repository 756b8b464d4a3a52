#include "experiments/lab/report/machine_state.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/os/usable_cores.h"

namespace syncopate::experiments {
namespace {

constexpr double kOthersAreMany = 0.05, kStealIsMuch = 0.01, kThrottledIsMuch = 0.05, kCoresAreBusy = 0.6;
// The resolution of the kernel's counters, in seconds; a smaller share of a core means nothing.
constexpr double kCounts = 0.05;

// Reads a file that the kernel generates; empty if there is none.
std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double computed_seconds(int who) {
  rusage usage{};
  if (::getrusage(who, &usage) != 0) return 0;
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

std::optional<double> share(std::optional<double> before, std::optional<double> after, double of) {
  if (!before || !after || of <= 0) return std::nullopt;
  return std::clamp((*after - *before) / of, 0.0, 1.0);
}

std::string percent(std::optional<double> part) {
  return part ? fmt::format("{:.0f} %", 100 * *part) : std::string("unknown");
}

}  // namespace

MachineReading read_machine() {
  const std::vector<int> cores = usable_cores();
  MachineReading reading{.at = std::chrono::steady_clock::now()};
  reading.cores = static_cast<double>(cores.size());
  reading.quota = core_quota();
  reading.throttling = throttling();
  if (const auto times = core_times(text_of("/proc/stat"), cores, static_cast<double>(::sysconf(_SC_CLK_TCK)))) {
    reading.busy = times->busy;
    reading.steal = times->steal;
  }
  reading.own = computed_seconds(RUSAGE_SELF) + computed_seconds(RUSAGE_CHILDREN);
  reading.waiting = waiting_seconds(text_of("/proc/pressure/cpu"));
  double load[1];
  if (::getloadavg(load, 1) == 1) reading.load = load[0];
  reading.mhz = mean_mhz(text_of("/proc/cpuinfo"));
  std::istringstream(text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")) >> reading.governor;
  return reading;
}

MachineLoad load_between(const MachineReading& before, const MachineReading& after, int workers) {
  MachineLoad load{.seconds = seconds(after.at - before.at), .cores = after.cores, .workers = workers};
  if (after.quota && *after.quota < after.cores) load.quota = load.cores = *after.quota;
  const double time = load.seconds * load.cores, own = after.own - before.own;
  if (time > 0) load.own = std::clamp(own / time, 0.0, 1.0);
  // Others run on the cores themselves, whatever part of them this process may use.
  const double of_cores = load.seconds * after.cores;
  if (before.busy && after.busy && of_cores > 0) {
    const double others = *after.busy - *before.busy - own;
    load.others = others < kCounts ? 0 : std::clamp(1 - own / of_cores, 0.0, others / of_cores);
  }
  if (load.quota && before.throttling && after.throttling) {
    const double periods = after.throttling->periods - before.throttling->periods;
    load.throttled = share(before.throttling->throttled, after.throttling->throttled, periods);
  }
  load.steal = share(before.steal, after.steal, of_cores);
  load.waiting = share(before.waiting, after.waiting, load.seconds);
  load.load_before = before.load, load.load_after = after.load;
  load.mhz_before = before.mhz, load.mhz_after = after.mhz;
  load.governor = after.governor;
  return load;
}

std::vector<MachineTrouble> troubles_of(const MachineLoad& load) {
  using Kind = MachineTrouble::Kind;
  std::vector<MachineTrouble> troubles;
  if (load.others.value_or(0) > kOthersAreMany) {
    troubles.push_back({Kind::kOthers, *load.others,
                        fmt::format("other processes used {} of the cores, so that times are of a busy machine; run "
                                    "again when it is idle",
                                    percent(load.others))});
  }
  if (load.steal.value_or(0) > kStealIsMuch && *load.steal * load.seconds * load.cores >= kCounts) {
    troubles.push_back({Kind::kSteal, *load.steal,
                        fmt::format("the host of this virtual machine took {} of the cores away (steal), so that times "
                                    "are not this machine's alone",
                                    percent(load.steal))});
  }
  if (load.throttled.value_or(0) > kThrottledIsMuch) {
    troubles.push_back({Kind::kThrottled, *load.throttled,
                        fmt::format("the CPU quota of {:.3g} core{} (cgroup) stopped the run's processes in {} of its "
                                    "periods, so that times are the quota's; raise it (cpu.max, docker --cpus, "
                                    "Kubernetes limits.cpu), or use fewer workers",
                                    load.quota.value_or(0), load.quota == 1 ? "" : "s", percent(load.throttled))});
  }
  const double busy = load.own.value_or(1) + load.others.value_or(0) + load.steal.value_or(0);
  if (load.workers > load.cores && load.cores > 0 && busy > kCoresAreBusy) {
    troubles.push_back(
        {Kind::kMoreWorkersThanCores, load.workers / load.cores,
         fmt::format(
             "{} workers shared {:.3g} core{}: waiting for a processor counts as compute and as wait, which can "
             "turn the order of modes around; use fewer workers or more cores, or let time be "
             "simulated (--cluster=simulated)",
             load.workers, load.cores, load.cores == 1 ? "" : "s")});
  }
  return troubles;
}

std::string beware_lines(const MachineLoad& load) {
  std::string lines;
  for (const MachineTrouble& trouble : troubles_of(load)) lines += fmt::format("beware: {}\n", trouble.text);
  return lines;
}

std::string to_text(const MachineLoad& load) {
  std::optional<double> others = load.others;
  if (load.own && others && !load.quota)
    others = std::min(*others, 1 - std::round(100 * *load.own) / 100);  // in all at most 100 %
  std::string text = fmt::format("{} worker{} on {:.3g} core{}; of their time the run used {}, others {}, steal {}",
                                 load.workers, load.workers == 1 ? "" : "s", load.cores, load.cores == 1 ? "" : "s",
                                 percent(load.own), percent(others), percent(load.steal));
  if (load.quota)
    text +=
        fmt::format("; a CPU quota gives {:.3g}, throttled in {} of its periods", *load.quota, percent(load.throttled));
  if (load.load_before && load.load_after) {
    text += fmt::format("; load average {:.1f} before, {:.1f} after", *load.load_before, *load.load_after);
  }
  return text;
}

std::optional<CoreTimes> core_times(std::string_view proc_stat, const std::vector<int>& of, double ticks) {
  CoreTimes times;
  std::size_t found = 0;
  std::istringstream lines{std::string(proc_stat)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) continue;
    std::istringstream words(line.substr(3));
    int core = 0;
    double user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, softirq = 0, steal = 0;
    if (!(words >> core >> user >> nice >> system >> idle >> io >> irq >> softirq >> steal)) continue;
    if (std::ranges::find(of, core) == of.end()) continue;
    times.busy += (user + nice + system + irq + softirq) / ticks;
    times.steal += steal / ticks;
    ++found;
  }
  if (found == 0 || found != of.size() || ticks <= 0) return std::nullopt;
  return times;
}

std::optional<double> waiting_seconds(std::string_view pressure) {
  if (!pressure.starts_with("some ")) return std::nullopt;
  const std::string_view line = pressure.substr(0, pressure.find('\n'));
  const std::size_t total = line.find("total=");
  if (total == std::string_view::npos) return std::nullopt;
  double microseconds = 0;
  const std::string_view digits = line.substr(total + 6);
  if (std::from_chars(digits.data(), digits.data() + digits.size(), microseconds).ec != std::errc())
    return std::nullopt;
  return 1e-6 * microseconds;
}

std::optional<double> mean_mhz(std::string_view cpuinfo) {
  double sum = 0;
  int cores = 0;
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with("cpu MHz") || colon == std::string::npos) continue;
    sum += std::strtod(line.c_str() + colon + 1, nullptr);
    ++cores;
  }
  if (cores == 0 || sum <= 0) return std::nullopt;
  return sum / cores;
}

}  // namespace syncopate::experiments
