// A rank of a job on two hosts, for tests of the library: sums numbers whose sum depends on its order. Who it is, where
// rank 0 is and the secret are in the environment.
//
//   rank_on_host FLOATS TIMES HOST-OF-RANK-0 HOST-OF-RANK-1 ...
//
// Prints how many sums differ in their bits from those of ranks of each host in order, added up; and how many bytes
// this host has sent to the other meanwhile, as its kernel counts them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "library/syncopate/syncopate.h"

namespace {

float drawn(int rank, std::size_t i) {
  const auto number = static_cast<std::uint32_t>((i + 1) * 2654435761U + static_cast<std::uint32_t>(rank) * 40503U);
  return static_cast<float>(number % 16777213) * (number % 3 == 0 ? 0x1p-10f : 1.0f);
}

float in_order(const std::vector<int>& host_of, std::size_t i) {
  float sums[2] = {};
  bool has_begun[2] = {};
  for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
    const int host = host_of[rank];
    const float value = drawn(static_cast<int>(rank), i);
    sums[host] = has_begun[host] ? sums[host] + value : value;
    has_begun[host] = true;
  }
  return sums[0] + sums[1];
}

// Counts all devices of this network namespace but the loopback interface.
long long bytes_sent() {
  std::ifstream devices("/proc/self/net/dev");
  long long sent = 0;
  for (std::string line; std::getline(devices, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find("lo:") != std::string::npos) continue;
    std::istringstream columns(line.substr(colon + 1));
    long long number = 0;
    for (int column = 0; column < 9; ++column) columns >> number;
    sent += number;
  }
  return sent;
}

void exit_unless_ok(const syncopate::api::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const auto floats = static_cast<std::size_t>(std::atoll(argv[1]));
  const int times = std::atoi(argv[2]);
  std::vector<int> host_of;
  for (int i = 3; i < argc; ++i) host_of.push_back(std::atoi(argv[i]));
  syncopate::api::Result<syncopate::api::Job> job = syncopate::api::init();
  exit_unless_ok(job.status());
  std::vector<float> values(floats);
  exit_unless_ok(job->collective().barrier());
  const long long before = bytes_sent();
  long long differ = 0;
  for (int time = 0; time < times; ++time) {
    for (std::size_t i = 0; i < floats; ++i) values[i] = drawn(job->rank(), i);
    exit_unless_ok(job->collective().sum(values));
    for (std::size_t i = 0; i < floats; ++i) differ += values[i] != in_order(host_of, i);
  }
  exit_unless_ok(job->collective().barrier());
  const long long sent = bytes_sent() - before;
  exit_unless_ok(job->leave());
  std::printf("%lld %lld\n", differ, sent);
  return 0;
}
