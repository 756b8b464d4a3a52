#include "experiments/lab/doctor/diagnosis_of_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/text/format.h"

namespace syncopate::experiments {
namespace {

constexpr std::int64_t kFewestDescriptors = 4096;      // for 64 processes, each with links to all
constexpr std::int64_t kFewestLockedBytes = 64 << 10;  // a run's keys lie in locked memory
constexpr double kMostClockMs = 1000;                  // runs compare clocks by themselves; files and logs do not
constexpr double kSlowPart = 0.5;                      // of the median pair

std::string gpus_of(const ExaminedHost& host) {
  const std::vector<Gpu>& gpus = host.report.machine.gpus;
  return gpus.empty() ? "no GPU" : fmt::format("{} × {}", gpus.size(), gpus.front().name);
}

// Returns the value that most hosts have; of equally many, that of the first host.
template <typename T, typename Of>
T usual(const std::vector<const ExaminedHost*>& hosts, const Of& of) {
  std::map<T, int> counts;
  for (const ExaminedHost* host : hosts) ++counts[of(*host)];
  T best = of(*hosts.front());
  for (const ExaminedHost* host : hosts) {
    if (counts[of(*host)] > counts[best]) best = of(*host);
  }
  return best;
}

void check_limits(const ExaminedHost& host, std::vector<Finding>& findings) {
  const auto found = [&](std::string what, std::string remedy) {
    findings.push_back({"host " + host.name, std::move(what), std::move(remedy)});
  };
  const HostLimits& limits = host.limits;
  const int cores = host.report.environment.cores;
  if (cores < limits.cores_online) {
    found(fmt::format("processes may run on {} of its {} cores", cores, limits.cores_online),
          "widen the cpuset of their control group, or what taskset or the scheduler has pinned the shell to");
  }
  if (limits.core_quota && *limits.core_quota < cores) {
    found(fmt::format("the control group gives {:.3g} of {} cores' time", *limits.core_quota, cores),
          "raise its cpu.max (Kubernetes: limits.cpu), or run as many workers as it gives cores");
  }
  if (limits.descriptors < kFewestDescriptors) {
    found(fmt::format("at most {} files and sockets may be open", limits.descriptors),
          fmt::format("raise it to {} or more (ulimit -Hn, limits.conf, LimitNOFILE)", kFewestDescriptors));
  }
  if (limits.locked_bytes && *limits.locked_bytes < kFewestLockedBytes) {
    found(fmt::format("only {} of memory may be locked, so that a run's keys could be swapped out",
                      format_bytes(static_cast<double>(*limits.locked_bytes))),
          "raise it to 64 KiB or more (ulimit -Hl, limits.conf, LimitMEMLOCK)");
  }
  if (std::abs(host.clock_ms) - host.clock_within_ms > kMostClockMs) {
    found(fmt::format("its clock is {} {} this one's", format_duration(std::abs(host.clock_ms) / 1e3),
                      host.clock_ms > 0 ? "ahead of" : "behind"),
          "let chrony or ntpd set it; a run corrects its own times, but not those of files and logs");
  }
}

// Where hosts should be alike.
void check_alike(const std::vector<const ExaminedHost*>& hosts, std::vector<Finding>& findings) {
  const auto mtu_of = [](const ExaminedHost& host) { return host.limits.mtu; };
  const auto driver_of = [](const ExaminedHost& host) { return host.limits.gpu_driver; };
  const int mtu = usual<int>(hosts, mtu_of);
  const std::string gpus = usual<std::string>(hosts, gpus_of), driver = usual<std::string>(hosts, driver_of);
  for (const ExaminedHost* host : hosts) {
    const std::string where = "host " + host->name;
    if (mtu_of(*host) != mtu && mtu_of(*host) > 0 && mtu > 0) {
      findings.push_back(
          {where,
           fmt::format("{} has an MTU of {}, and the other hosts' is {}: large frames are lost between them",
                       host->limits.interface, mtu_of(*host), mtu),
           fmt::format("give all the same, as by ip link set {} mtu {}", host->limits.interface, mtu)});
    }
    if (gpus_of(*host) != gpus) {
      findings.push_back({where, fmt::format("has {}, and the other hosts have {}", gpus_of(*host), gpus),
                          "leave it out, or use --device=cpu; a job goes at the pace of its slowest worker"});
    } else if (driver_of(*host) != driver) {
      findings.push_back({where,
                          fmt::format("has NVIDIA's driver '{}', and the other hosts '{}'", driver_of(*host), driver),
                          "install the same driver on all"});
    }
    const bool has_gpus = !host->report.machine.gpus.empty();
    if (has_gpus && !host->report.machine.gpu_program) {
      findings.push_back({where, "has GPUs, and the program for them is not built",
                          "build it there with a CUDA toolkit, cuDNN and NCCL (docs/gpus.md)"});
    }
  }
}

double median_rate(const std::vector<ExaminedPair>& pairs) {
  std::vector<double> rates;
  for (const ExaminedPair& pair : pairs) {
    if (pair.failure.empty()) rates.push_back(std::min(pair.there, pair.back));
  }
  if (rates.empty()) return 0;
  std::ranges::nth_element(rates, rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2));
  return rates[rates.size() / 2];
}

Finding of_failed_pair(const std::string& where, const std::string& failure) {
  if (failure.starts_with("large messages")) {
    return {where, "small messages pass, large ones do not",
            "the MTU somewhere on the way is smaller than the hosts': give hosts and switches the same"};
  }
  return {
      where, fmt::format("cannot reach each other ({})", failure),
      "let them through to each other on all ports, both ways (firewall, security group), and look at the cable and "
      "the routes (ping, ip route get)"};
}

void check_pairs(const Examination& examination, std::vector<Finding>& findings) {
  constexpr std::size_t kEnoughToCompare = 3;
  const double median = median_rate(examination.pairs);
  for (const ExaminedPair& pair : examination.pairs) {
    const std::string where =
        fmt::format("{} and {}", examination.hosts[pair.one].name, examination.hosts[pair.other].name);
    if (!pair.failure.empty()) {
      findings.push_back(of_failed_pair(where, pair.failure));
      continue;
    }
    const double rate = std::min(pair.there, pair.back);
    if (examination.pairs.size() < kEnoughToCompare || rate >= kSlowPart * median) continue;
    findings.push_back(
        {where, fmt::format("{}/s, where the median pair has {}/s", format_bytes(rate), format_bytes(median)),
         "compare what ethtool says of speed and duplex, and look at cable, switch port and other traffic"});
  }
}

}  // namespace

std::vector<Finding> findings_of(const Examination& examination, const std::string& fingerprint) {
  std::vector<Finding> findings;
  std::vector<const ExaminedHost*> reached;
  for (const ExaminedHost& host : examination.hosts) {
    if (!host.failure.empty()) {
      findings.push_back({"host " + host.name, "cannot be examined: " + host.failure,
                          "it must let you in without asking (ssh -o BatchMode=yes HOST true), and have this program "
                          "(--remote-program) and this directory"});
      continue;
    }
    reached.push_back(&host);
    if (host.report.fingerprint != fingerprint) {
      findings.push_back(
          {"host " + host.name,
           fmt::format("its program is of other sources ({}) than this one ({})", host.report.fingerprint, fingerprint),
           "build the same there"});
    }
    check_limits(host, findings);
  }
  if (!reached.empty()) check_alike(reached, findings);
  check_pairs(examination, findings);
  return findings;
}

}  // namespace syncopate::experiments
