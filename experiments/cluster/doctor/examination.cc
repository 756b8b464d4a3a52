#include "experiments/cluster/doctor/examination.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "experiments/cluster/doctor/doctor_agent.h"
#include "experiments/cluster/doctor/host_line.h"

namespace syncopate::experiments {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::unique_ptr<HostLine>>;

std::vector<std::string> command_for(const std::string& host, const ExaminationOptions& options) {
  std::vector<std::string> agent{options.shell.program};
  for (std::string& argument : doctor_agent_arguments(options.with_gpus, options.towards)) agent.push_back(argument);
  if (host == "localhost") return agent;
  agent.insert(agent.begin(), {options.shell.program, "--guard"});
  return through_remote_shell(options.shell, host, remote_command(options.shell, {}, agent));
}

Status read_facts(HostLine& line, TimePoint deadline, ExaminedHost& host) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Json report, line.receive(deadline));
  SYNCOPATE_ASSIGN_OR_RETURN(host.report, parse_host_report(report.dump() + "\n"));
  SYNCOPATE_ASSIGN_OR_RETURN(const Json limits, line.receive(deadline));
  SYNCOPATE_ASSIGN_OR_RETURN(host.limits, parse_host_limits(limits.dump()));
  return {};
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The answer that took the shortest says most, and is as wrong as half of its way at most.
Status read_clock(HostLine& line, TimePoint deadline, ExaminedHost& host) {
  constexpr int kQuestions = 8;
  const SteadyClock clock;
  double shortest = std::numeric_limits<double>::infinity();
  for (int question = 0; question < kQuestions; ++question) {
    const double asked = wall_seconds();
    const TimePoint begin = clock.now();
    line.send(Json{{"clock", true}});
    SYNCOPATE_ASSIGN_OR_RETURN(const Json answer, line.receive(deadline));
    const double way = seconds(clock.now() - begin);
    if (way >= shortest || !answer.contains("wall_ns") || !answer["wall_ns"].is_number()) continue;
    shortest = way;
    host.clock_ms = 1e3 * (1e-9 * answer["wall_ns"].get<double>() - asked - way / 2);
    host.clock_within_ms = 1e3 * way / 2;
  }
  return {};
}

// A pair that is being measured.
class PairQuestion {
 public:
  PairQuestion(ExaminedPair& pair, Lines& lines, const ExaminationOptions& options)
      : pair_(pair), ends_{lines[pair.one].get(), lines[pair.other].get()} {
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(options.patience);
    for (int rank : {0, 1}) {
      ends_[rank]->send(Json{{"pair", fmt::format("{}-{}", pair.one, pair.other)},
                             {"rank", rank},
                             {"sending_ms", options.sending / std::chrono::milliseconds(1)},
                             {"limit_ms", limit.count()}});
    }
    deadline_ = SteadyClock().now() + options.patience + kMargin;
  }

  void introduce() {
    Json addresses = Json::array();
    std::vector<int> there;
    for (int rank : {0, 1}) {
      const Json answer = answer_of(rank);
      if (!answer.contains("address")) continue;
      addresses.push_back(answer["address"]);
      there.push_back(rank);
    }
    const Json members = there.size() == 2 ? Json{{"members", addresses}} : Json{{"off", true}};
    for (const int rank : there) ends_[rank]->send(members);
    has_addresses_ = there.size() == 2;
    if (there.size() == 1) (void)answer_of(there.front());
  }

  void finish() {
    if (!has_addresses_) return;
    const Json one = answer_of(0), other = answer_of(1);
    if (!pair_.failure.empty()) return;
    pair_.latency_us = one.value("latency_us", 0.0);
    pair_.there = one.value("bytes_per_second", 0.0);
    pair_.back = other.value("bytes_per_second", 0.0);
  }

 private:
  static constexpr Duration kMargin = std::chrono::seconds(2);

  Json answer_of(int rank) {
    const Result<Json> answer = ends_[rank]->receive(deadline_);
    if (!answer.ok()) {
      if (pair_.failure.empty()) pair_.failure = answer.status().message();
      return Json::object();
    }
    const auto failed = answer->find("failed");
    if (failed != answer->end() && failed->is_string() && pair_.failure.empty()) pair_.failure = *failed;
    return *answer;
  }

  ExaminedPair& pair_;
  HostLine* ends_[2];
  TimePoint deadline_;
  bool has_addresses_ = false;
};

}  // namespace

// The circle method: one stays, the others go round; of an odd number one rests in each round.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds_of_pairs(std::size_t hosts) {
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds;
  if (hosts < 2) return rounds;
  const std::size_t places = hosts + hosts % 2, moving = places - 1;
  for (std::size_t round = 0; round < moving; ++round) {
    rounds.emplace_back();
    for (std::size_t i = 0; i < places / 2; ++i) {
      const std::size_t one = i == 0 ? moving : (round + i) % moving;
      const std::size_t other = (round + moving - i) % moving;
      if (std::max(one, other) < hosts) rounds.back().emplace_back(std::min(one, other), std::max(one, other));
    }
  }
  return rounds;
}

Result<Examination> examine(const ExaminationOptions& options, const std::function<void(const std::string&)>& shows) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RunKeys keys, RunKeys::make());
  const SecretText line(keys.to_text().view(), "\n");
  Examination found;
  Lines lines;
  shows(fmt::format("asking {} host{}", options.hosts.size(), options.hosts.size() == 1 ? "" : "s"));
  for (const std::string& host : options.hosts) {
    found.hosts.push_back({.name = host});
    lines.push_back(std::make_unique<HostLine>(command_for(host, options), line));
  }
  const TimePoint deadline = SteadyClock().now() + options.patience;
  for (std::size_t host = 0; host < lines.size(); ++host) {
    Status status = read_facts(*lines[host], deadline, found.hosts[host]);
    if (status.ok()) status = read_clock(*lines[host], deadline + options.patience, found.hosts[host]);
    found.hosts[host].failure = status.message();
  }
  const auto rounds = rounds_of_pairs(lines.size());
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    shows(fmt::format("measuring pairs, round {} of {}", round + 1, rounds.size()));
    std::vector<ExaminedPair> pairs;
    for (const auto& [one, other] : rounds[round]) {
      if (!found.hosts[one].failure.empty() || !found.hosts[other].failure.empty()) continue;
      pairs.push_back({.one = one, .other = other});
    }
    std::vector<PairQuestion> questions;
    for (ExaminedPair& pair : pairs) questions.emplace_back(pair, lines, options);
    for (PairQuestion& question : questions) question.introduce();
    for (PairQuestion& question : questions) question.finish();
    found.pairs.insert(found.pairs.end(), pairs.begin(), pairs.end());
  }
  std::ranges::sort(found.pairs, {}, [](const ExaminedPair& pair) { return std::pair(pair.one, pair.other); });
  return found;
}

}  // namespace syncopate::experiments
