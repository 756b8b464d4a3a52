// --hosts and --hostfile. A name that is taken must never be an option of the remote shell.
#include "experiments/config/host_list.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness host_list("host_list", [](Bytes input) {
  for (const auto& hosts : {experiments::parse_hosts(text_of(input)), experiments::parse_host_file(text_of(input))}) {
    if (!hosts.ok()) continue;
    for (const experiments::HostSlots& host : *hosts) {
      require(!host.name.empty() && host.name.front() != '-', "a host is no option");
      require(host.name.find_first_of(" \t\n;|&$`\"'\\") == std::string::npos, "a host is one word");
      require(host.slots >= 0, "a host has slots, or none");
    }
    require(experiments::total_slots(*hosts) >= 1, "there is room for a worker");
    const Result<std::vector<experiments::HostSlots>> again = experiments::parse_hosts(experiments::to_text(*hosts));
    require(again.ok() && *again == *hosts, "hosts are read back as they were written");
  }
});

}  // namespace
}  // namespace syncopate::fuzz
