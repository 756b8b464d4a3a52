// What the oracle and our networks are both asked: transfers between hosts, some of which begin when others have
// arrived.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulation/fabric.h"

namespace syncopate::simulation {

struct PlannedTransfer {
  int from = 0, to = 0;  // two hosts
  std::uint64_t bytes = 0;
  double begin = 0;  // seconds; of one with `after`, none
  int after = -1;    // begins as soon as this one, earlier in the plan, has arrived; -1: none
};

struct TransferPlan {
  std::string name;
  Fabric fabric;
  std::vector<PlannedTransfer> transfers;
};

// Every host sends a part of `bytes` to the next one, and passes on what it gets: an allreduce of `bytes` round a ring.
TransferPlan ring(int hosts, std::uint64_t bytes);
// All hosts but the first send `bytes` to it.
TransferPlan incast(int hosts, std::uint64_t bytes);
// The same with another size for each sender, up to `bytes`; each begins `apart` seconds after the one before.
TransferPlan unequal_incast(int hosts, std::uint64_t bytes, double apart);
// Two that leave by one host's link, of which the one is twice as long.
TransferPlan two_on_a_link(std::uint64_t bytes);
// Every host sends `bytes` to each other one, to the nearest after it first; all begin at once.
TransferPlan all_to_all(int hosts, std::uint64_t bytes);
// Hosts in two racks, whose lines carry a third of what they can send. Each sends `bytes` to a host of the other rack
// and, a microsecond later, to one of its own.
TransferPlan racks(int hosts, std::uint64_t bytes);
// As many transfers as there are hosts, squared and halved: of which pairs, when, and how many bytes, up to `bytes`,
// the seed says. The hosts are in racks of four, whose lines carry half of what they can send.
TransferPlan drawn(int hosts, std::uint64_t bytes, unsigned seed);

// Returns when each transfer of the plan arrives, in seconds, by a network of ours.
std::vector<double> arrivals_by(NetworkModel model, const TransferPlan& plan);

}  // namespace syncopate::simulation
