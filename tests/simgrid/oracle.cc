#include "tests/simgrid/oracle.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>

namespace syncopate::simulation {
namespace {

namespace s4u = simgrid::s4u;

// Hosts on their switches: each has a link up and a link down, and each rack, if there are several, a line up and one
// down.
std::vector<s4u::Host*> build_platform(const Fabric& fabric, double speed) {
  s4u::NetZone* zone = s4u::create_full_zone("cluster");
  const auto link = [zone](const std::string& name, double bandwidth) {
    return zone->create_link(name, bandwidth)->set_latency(0.0)->seal();
  };
  const double bandwidth = fabric.bytes_per_second * speed;
  const int in_rack = fabric.hosts / fabric.racks;
  std::vector<s4u::Host*> hosts;
  std::vector<s4u::Link*> up, down, line_up, line_down;
  for (int i = 0; i < fabric.hosts; ++i) {
    const std::string name = std::to_string(i);
    hosts.push_back(zone->create_host("host" + name, 1e9)->seal());
    up.push_back(zone->create_link("up" + name, bandwidth)
                     ->set_latency(std::chrono::duration<double>(fabric.latency).count())
                     ->seal());
    down.push_back(link("down" + name, bandwidth));
  }
  for (int rack = 0; rack < fabric.racks; ++rack) {
    const double line = in_rack * bandwidth / fabric.oversubscription;
    line_up.push_back(link("line_up" + std::to_string(rack), line));
    line_down.push_back(link("line_down" + std::to_string(rack), line));
  }
  const auto at = [](const auto& all, int i) { return all[static_cast<std::size_t>(i)]; };
  for (int from = 0; from < fabric.hosts; ++from) {
    for (int to = 0; to < fabric.hosts; ++to) {
      if (from == to) continue;
      std::vector<s4u::LinkInRoute> route{s4u::LinkInRoute(at(up, from))};
      if (from / in_rack != to / in_rack) {
        route.emplace_back(at(line_up, from / in_rack));
        route.emplace_back(at(line_down, to / in_rack));
      }
      route.emplace_back(at(down, to));
      zone->add_route(at(hosts, from)->get_netpoint(), at(hosts, to)->get_netpoint(), nullptr, nullptr, route, false);
    }
  }
  zone->seal();
  return hosts;
}

// Each transfer is an actor, which at its end starts those that wait for it.
class Player {
 public:
  Player(const TransferPlan& plan, const std::vector<s4u::Host*>& hosts)
      : plan_(plan), hosts_(hosts), next_(plan.transfers.size()), arrivals_(plan.transfers.size()) {
    for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
      const int after = plan.transfers[i].after;
      if (after >= 0) {
        next_[static_cast<std::size_t>(after)].push_back(i);
      } else {
        start(i);
      }
    }
  }

  const std::vector<double>& arrivals() const { return arrivals_; }

 private:
  s4u::Host* host(int number) const { return hosts_[static_cast<std::size_t>(number)]; }

  void start(std::size_t i) {
    s4u::Actor::create(std::to_string(i), host(plan_.transfers[i].from), [this, i] {
      const PlannedTransfer& each = plan_.transfers[i];
      if (each.begin > 0) s4u::this_actor::sleep_for(each.begin);
      s4u::Comm::sendto(host(each.from), host(each.to), each.bytes);
      arrivals_[i] = s4u::Engine::get_clock();
      for (const std::size_t next : next_[i]) start(next);
    });
  }

  const TransferPlan& plan_;
  const std::vector<s4u::Host*> hosts_;
  std::vector<std::vector<std::size_t>> next_;
  std::vector<double> arrivals_;
};

std::vector<double> play(const TransferPlan& plan, double speed) {
  // Its arguments are where SimGrid expects its settings; and it must not listen for the test's.
  std::array<std::string, 9> words{"oracle",
                                   "--cfg=network/model:CM02",
                                   "--cfg=network/latency-factor:1",
                                   "--cfg=network/bandwidth-factor:1",
                                   "--cfg=network/weight-S:0",
                                   "--cfg=network/TCP-gamma:0",
                                   "--cfg=network/crosstraffic:0",
                                   "--cfg=surf/precision:1e-12",
                                   "--log=root.threshold:error"};
  std::array<char*, 10> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  int count = static_cast<int>(words.size());
  s4u::Engine engine(&count, arguments.data());
  Player player(plan, build_platform(plan.fabric, speed));
  engine.run();
  return player.arrivals();
}

bool write_all(int fd, const std::vector<double>& values) {
  const auto* at = reinterpret_cast<const char*>(values.data());
  for (std::size_t left = values.size() * sizeof(double); left > 0;) {
    const ssize_t written = write(fd, at, left);
    if (written <= 0) return false;
    at += written;
    left -= static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int fd, std::vector<double>& values) {
  auto* at = reinterpret_cast<char*>(values.data());
  for (std::size_t left = values.size() * sizeof(double); left > 0;) {
    const ssize_t got = read(fd, at, left);
    if (got <= 0) return false;
    at += got;
    left -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

std::vector<double> arrivals_by_simgrid(const TransferPlan& plan, double speed) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("SimGrid: no pipe for its answer");
  std::fflush(nullptr);  // or it would be printed by both
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(60);
    // Not its destructors: they are those of the test program, too.
    _exit(write_all(ends[1], play(plan, speed)) ? 0 : 1);
  }
  close(ends[1]);
  std::vector<double> arrivals(plan.transfers.size());
  const bool is_whole = child > 0 && read_all(ends[0], arrivals);
  close(ends[0]);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  if (!is_whole)
    throw std::runtime_error("SimGrid: no answer to " + plan.name + " (status " + std::to_string(status) + ")");
  return arrivals;
}

}  // namespace syncopate::simulation
