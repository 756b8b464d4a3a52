#include "tests/simgrid/transfers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <utility>

namespace syncopate::simulation {
namespace {

Fabric one_switch(int hosts) {
  Fabric fabric;
  fabric.hosts = hosts;
  fabric.bytes_per_second = 1.25e9;
  fabric.latency = std::chrono::microseconds(10);
  return fabric;
}

}  // namespace

TransferPlan ring(int hosts, std::uint64_t bytes) {
  TransferPlan plan{"a ring of " + std::to_string(hosts), one_switch(hosts), {}};
  for (int round = 0; round < 2 * (hosts - 1); ++round) {
    for (int host = 0; host < hosts; ++host) {
      // What the host before has sent in the round before.
      const int after = round == 0 ? -1 : (round - 1) * hosts + (host + hosts - 1) % hosts;
      plan.transfers.push_back(
          {.from = host, .to = (host + 1) % hosts, .bytes = bytes / static_cast<std::uint64_t>(hosts), .after = after});
    }
  }
  return plan;
}

TransferPlan incast(int hosts, std::uint64_t bytes) {
  TransferPlan plan{std::to_string(hosts - 1) + " to one, alike", one_switch(hosts), {}};
  for (int host = 1; host < hosts; ++host) plan.transfers.push_back({.from = host, .to = 0, .bytes = bytes});
  return plan;
}

TransferPlan unequal_incast(int hosts, std::uint64_t bytes, double apart) {
  TransferPlan plan{
      std::to_string(hosts - 1) + (apart == 0 ? " to one, unequal" : " to one, in turn"), one_switch(hosts), {}};
  for (int host = 1; host < hosts; ++host) {
    const auto part = static_cast<std::uint64_t>(1 + host * 7 % hosts);
    plan.transfers.push_back({.from = host,
                              .to = 0,
                              .bytes = bytes * part / static_cast<std::uint64_t>(hosts),
                              .begin = apart * (host - 1)});
  }
  return plan;
}

TransferPlan two_on_a_link(std::uint64_t bytes) {
  return {"two on one link",
          one_switch(3),
          {{.from = 0, .to = 1, .bytes = 2 * bytes}, {.from = 0, .to = 2, .bytes = bytes}}};
}

TransferPlan all_to_all(int hosts, std::uint64_t bytes) {
  TransferPlan plan{"all to all, " + std::to_string(hosts) + " hosts", one_switch(hosts), {}};
  for (int distance = 1; distance < hosts; ++distance) {
    for (int host = 0; host < hosts; ++host) {
      plan.transfers.push_back({.from = host, .to = (host + distance) % hosts, .bytes = bytes});
    }
  }
  return plan;
}

TransferPlan racks(int hosts, std::uint64_t bytes) {
  TransferPlan plan{"two racks of " + std::to_string(hosts / 2), one_switch(hosts), {}};
  plan.fabric.racks = 2;
  plan.fabric.oversubscription = 3;
  const int each = hosts / 2;
  for (int host = 0; host < hosts; ++host) {
    const int rack = host / each;
    plan.transfers.push_back({.from = host, .to = (host + each) % hosts, .bytes = bytes});
    plan.transfers.push_back({.from = host, .to = rack * each + (host + 1) % each, .bytes = bytes, .begin = 1e-6});
  }
  return plan;
}

TransferPlan drawn(int hosts, std::uint64_t bytes, unsigned seed) {
  TransferPlan plan{"drawn, seed " + std::to_string(seed), one_switch(hosts), {}};
  plan.fabric.racks = hosts / 4;
  plan.fabric.oversubscription = 2;
  std::vector<std::pair<int, int>> pairs;
  for (int from = 0; from < hosts; ++from) {
    for (int to = 0; to < hosts; ++to) {
      if (from != to) pairs.emplace_back(from, to);
    }
  }
  std::mt19937 random(seed);
  std::ranges::shuffle(pairs, random);
  pairs.resize(static_cast<std::size_t>(hosts * hosts / 2));
  const double all_at_once = static_cast<double>(bytes) / plan.fabric.bytes_per_second;
  for (const auto& [from, to] : pairs) {
    plan.transfers.push_back({.from = from,
                              .to = to,
                              .bytes = 1 + random() % bytes,
                              .begin = all_at_once * static_cast<double>(random() % 1000) / 1000 * hosts / 4});
  }
  return plan;
}

std::vector<double> arrivals_by(NetworkModel model, const TransferPlan& plan) {
  const auto network = make_network({.model = model, .links = plan.fabric.links()});
  std::vector<std::vector<std::size_t>> next(plan.transfers.size());
  // What is to begin, the earliest first, and of one time in the order of the plan.
  using Begin = std::pair<Tick, std::size_t>;
  std::priority_queue<Begin, std::vector<Begin>, std::greater<>> to_begin;
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const PlannedTransfer& each = plan.transfers[i];
    if (each.after >= 0) {
      next[static_cast<std::size_t>(each.after)].push_back(i);
    } else {
      to_begin.push({std::llround(each.begin * 1e12), i});
    }
  }
  std::map<std::pair<int, int>, int> connections;
  std::vector<double> arrivals(plan.transfers.size());
  std::vector<Network::Happening> happened;
  while (!to_begin.empty() || network->next()) {
    if (!to_begin.empty() && (!network->next() || to_begin.top().first <= *network->next())) {
      const auto [time, i] = to_begin.top();
      to_begin.pop();
      const PlannedTransfer& each = plan.transfers[i];
      const auto [connection, is_new] = connections.try_emplace({each.from, each.to});
      if (is_new) connection->second = network->connect(plan.fabric.path(each.from, each.to));
      network->begin(time, {.id = i, .connection = connection->second, .bytes = each.bytes});
      continue;
    }
    happened.clear();
    network->advance(*network->next(), happened);
    for (const Network::Happening& each : happened) {
      if (each.what != Network::Happening::What::kArrived) continue;
      arrivals[each.id] = static_cast<double>(each.time) * 1e-12;
      for (const std::size_t i : next[each.id]) to_begin.push({each.time, i});
    }
  }
  return arrivals;
}

}  // namespace syncopate::simulation
