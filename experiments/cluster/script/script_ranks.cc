#include "experiments/cluster/script/script_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <utility>

#include "common/os/readiness.h"
#include "common/step_file.h"
#include "experiments/cluster/command/command_start.h"
#include "experiments/cluster/command/free_port.h"
#include "experiments/cluster/plan/command_environment.h"
#include "experiments/cluster/starter.h"

namespace syncopate::experiments {
namespace {

using nlohmann::json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::chrono::milliseconds kTick{100};

std::string text(const json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double number(const json& line, const char* name, double other = kNan) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : other;
}

Duration nanoseconds(double count) {
  return Duration(std::isfinite(count) && count > 0 ? static_cast<std::int64_t>(std::min(count, 1e18)) : 0);
}

int whole(const json& line, const char* name, int least, int most, int other) {
  return static_cast<int>(std::clamp<double>(number(line, name, other), least, most));
}

Status unknown_words(int rank, const json& line) {
  return Status::data_loss(
      fmt::format("rank {} of the script says what is not known: {}", rank, line.dump().substr(0, 200)));
}

Result<ParamLayout> layout_of_tensors(const json& tensors) {
  ParamLayout layout;
  const auto is_size = [](const json& each) { return each.is_number_integer() && each.get<std::int64_t>() >= 1; };
  for (const json& tensor : tensors) {
    const bool is_tensor = tensor.is_array() && tensor.size() == 2 && tensor[0].is_string() && tensor[1].is_array() &&
                           !tensor[1].empty() && std::ranges::all_of(tensor[1], is_size);
    if (!is_tensor) return Status::data_loss("the script speaks of a tensor without a name or a shape");
    layout.add(tensor[0].get<std::string>(), tensor[1].get<std::vector<std::int64_t>>());
  }
  if (layout.size() == 0) return Status::data_loss("the script trains no tensor");
  return layout;
}

}  // namespace

Result<std::unique_ptr<ScriptRanks>> ScriptRanks::start(const ScriptStart& start, RunObserver& observer,
                                                        Interrupts& interrupts) {
  SYNCOPATE_ASSIGN_OR_RETURN(ScriptDoor door, ScriptDoor::open());
  SYNCOPATE_ASSIGN_OR_RETURN(const int port, free_port("127.0.0.1"));
  std::unique_ptr<ScriptRanks> ranks(new ScriptRanks(start, observer, interrupts, std::move(door)));
  const ProcessSpec& first = start.plan.processes.front();
  EnvironmentVariables environment = first.environment;
  environment.emplace_back(kMasterPort, fmt::to_string(port));
  environment.emplace_back("SYNCOPATE_SIMULATED", ranks->door_.address());
  environment.emplace_back("SYNCOPATE_RANK_LOGS", std::filesystem::absolute(start.log_directory).string());
  SYNCOPATE_ASSIGN_OR_RETURN(StartedChild child, start_child(start_line_of(start.program, first.command), environment,
                                                             first.name(), ranks->log_of(0)));
  ranks->child_ = std::move(child);
  return ranks;
}

ScriptRanks::~ScriptRanks() {
  if (!child_) return;
  // Ranks are in the group of the process that has begun the script, and end where their connection does.
  ::kill(-child_->pid, SIGKILL);
  ::kill(child_->pid, SIGKILL);  // it may not be in its group yet
  reap(*child_);
}

std::string ScriptRanks::log_of(int rank) const { return fmt::format("{}/script-{}.log", start_.log_directory, rank); }

void ScriptRanks::show_output(bool is_last) {
  for (const std::string& line : output_.read(is_last)) observer_.on_output(line);
}

// Connections.

Status ScriptRanks::take_arrival(ScriptLink& link, bool& is_known) {
  SYNCOPATE_RETURN_IF_ERROR(link.read());
  const std::optional<json> line = link.take();
  if (!line) return {};
  is_known = true;
  if (text(*line, "is") == "parent") {
    parent_.emplace(std::move(link));
    return {};
  }
  const int rank = whole(*line, "rank", -1, start_.config.workers, -1);
  if (text(*line, "is") != "rank" || rank < 0 || rank >= start_.config.workers || of(rank).link) {
    return unknown_words(rank, *line);
  }
  of(rank).memory = link.take_memory();
  if (of(rank).memory.size() != 2) return Status::data_loss(fmt::format("rank {} of the script gives no memory", rank));
  of(rank).link.emplace(std::move(link));
  of(rank).answered = clock_.now();
  return {};
}

Status ScriptRanks::take_arrivals() {
  while (std::optional<ScriptLink> link = door_.accept()) unknown_.push_back(std::move(*link));
  for (std::size_t i = 0; i < unknown_.size();) {
    bool is_known = false;
    SYNCOPATE_RETURN_IF_ERROR(take_arrival(unknown_[i], is_known));
    if (is_known || unknown_[i].has_ended()) {
      unknown_.erase(unknown_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  if (!parent_) return {};
  SYNCOPATE_RETURN_IF_ERROR(parent_->read());
  while (const std::optional<json> line = parent_->take()) {
    ended_[whole(*line, "rank", -1, start_.config.workers, -1)] =
        whole(*line, "status", 0, std::numeric_limits<int>::max(), 0);
  }
  return {};
}

bool ScriptRanks::wait(std::span<const int> ranks, TimePoint deadline) {
  std::vector<pollfd> items = {{.fd = interrupts_.handle(), .events = POLLIN, .revents = 0},
                               {.fd = door_.handle(), .events = POLLIN, .revents = 0}};
  for (const ScriptLink& link : unknown_) items.push_back({.fd = link.handle(), .events = POLLIN, .revents = 0});
  if (parent_ && !parent_->has_ended()) items.push_back({.fd = parent_->handle(), .events = POLLIN, .revents = 0});
  for (const int rank : ranks) {
    if (of(rank).link) items.push_back({.fd = of(rank).link->handle(), .events = POLLIN, .revents = 0});
  }
  ready_before(std::min(deadline, clock_.now() + kTick), items);
  return items.front().revents == 0;
}

// How ranks end.

Status ScriptRanks::failure_of(int rank, int status) const {
  ProcessEnd end = experiments::end_of(status, false);
  if (end.exit_code == 0) return {};
  if (end.has_last_words()) end.last_words = last_line_of(log_of(rank));
  return Status::peer_lost(fmt::format("rank {} of the script {}", rank, describe(end)));
}

Status ScriptRanks::end_of(int rank) {
  // A process that ends closes its connection before the one that has begun it sees its end.
  const TimePoint deadline = clock_.now() + from_seconds(start_.config.timeout_seconds);
  while (!ended_.contains(rank) && parent_ && !parent_->has_ended() && clock_.now() < deadline) {
    wait({}, deadline);
    SYNCOPATE_RETURN_IF_ERROR(take_arrivals());
  }
  if (!ended_.contains(rank)) {
    return Status::peer_lost(fmt::format("rank {} of the script is gone, and nothing says why", rank));
  }
  return failure_of(rank, ended_.at(rank));
}

// What ranks say.

Result<bool> ScriptRanks::take_news(int rank, const json& line, TimePoint now) {
  const std::string is = text(line, "is");
  if (is == "learnt") {
    of(rank).learnt[static_cast<std::int64_t>(number(line, "step", 0))] = {number(line, "loss"),
                                                                           number(line, "accuracy")};
    return true;
  }
  if (is == "evaluation") {
    if (rank == 0) {
      evaluations_.push_back({.steps_done = static_cast<std::int64_t>(number(line, "step", 0)),
                              .taken = now,
                              .accuracy = number(line, "accuracy"),
                              .loss = number(line, "loss"),
                              .epoch = number(line, "epoch")});
    }
    return true;
  }
  if (is == "fact") {
    const std::string name = text(line, "name");
    if (name == kRefusedFact) return Status::invalid_argument(text(line, "value"));
    if (rank == 0) observer_.on_fact(name, text(line, "value"));
    return true;
  }
  return false;
}

Status ScriptRanks::come_to_meeting(int rank, const json& line) {
  static const std::map<std::string, ScriptMeetings::Kind> kKinds = {{"sum", ScriptMeetings::Kind::kSum},
                                                                     {"broadcast", ScriptMeetings::Kind::kBroadcast},
                                                                     {"gather", ScriptMeetings::Kind::kGather},
                                                                     {"barrier", ScriptMeetings::Kind::kBarrier}};
  const auto kind = kKinds.find(text(line, "what"));
  const double size = number(line, "bytes", 0);
  if (kind == kKinds.end() || !(size >= 0 && size < 1e15)) return unknown_words(rank, line);
  ScriptMeetings::Part part{.kind = kind->second,
                            .root = whole(line, "root", -1, start_.config.workers, 0),
                            .scale = number(line, "scale", 1)};
  if (size > 0) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes,
                               of(rank).memory[0].first(static_cast<std::size_t>(size)));
    part.bytes.assign(bytes.begin(), bytes.end());
  }
  of(rank).waits_in_meeting = true;
  return meetings_.come(rank, std::move(part));
}

Result<bool> ScriptRanks::answer_meeting(int rank) {
  std::optional<ScriptMeetings::Outcome> outcome = meetings_.take(rank);
  if (!outcome) return false;
  if (!outcome->bytes.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, of(rank).memory[0].first(outcome->bytes.size()));
    std::ranges::copy(outcome->bytes, memory.begin());
  }
  of(rank).waits_in_meeting = false;
  of(rank).answered = clock_.now();
  of(rank).link->send({{"texts", outcome->texts}});
  return true;
}

Result<ScriptStep> ScriptRanks::step_of(int rank, const json& line) {
  const std::size_t tensors = opening_.layout.tensors().size();
  const auto ready = line.find("ready");
  const auto absent = line.find("absent");
  const auto is_count = [](const json& each) { return each.is_number(); };
  if (ready == line.end() || !ready->is_array() || ready->size() != tensors || !std::ranges::all_of(*ready, is_count) ||
      absent == line.end() || !absent->is_array() || !std::ranges::all_of(*absent, is_count)) {
    return unknown_words(rank, line);
  }
  ScriptStep step{.learning_rate = number(line, "rate", 0),
                  .before = nanoseconds(number(line, "before", 0)),
                  .ready = {},
                  .samples = whole(line, "samples", 1, std::numeric_limits<int>::max(), 1)};
  for (const json& each : *ready) step.ready.push_back(nanoseconds(each.get<double>()));
  of(rank).absent.push_back(absent->get<std::set<std::size_t>>());
  return step;
}

// Tensors of which no rank has had a gradient in the step. Where ranks take means all have handed theirs over by now.
json ScriptRanks::absent_everywhere(int rank, std::size_t step) const {
  if (!opening_.takes_means) return json::array();
  std::set<std::size_t> absent = ranks_[static_cast<std::size_t>(rank)].absent[step];
  for (const Rank& other : ranks_) {
    if (other.absent.size() <= step) return json::array();
    std::erase_if(absent, [&](std::size_t tensor) { return !other.absent[step].contains(tensor); });
  }
  return absent;
}

// Before and after the run: all ranks beside each other.

Status ScriptRanks::serve(const std::function<bool()>& is_done, const char* doing) {
  std::vector<int> all(ranks_.size());
  std::iota(all.begin(), all.end(), 0);
  const Duration patience = from_seconds(start_.config.timeout_seconds);
  TimePoint heard = clock_.now();
  while (!is_done()) {
    if (!wait(all, heard + patience)) return Status::cancelled("interrupted");
    show_output(false);
    SYNCOPATE_RETURN_IF_ERROR(take_arrivals());
    for (const int rank : all) {
      Rank& its = of(rank);
      if (!its.link) continue;
      SYNCOPATE_RETURN_IF_ERROR(its.link->read());
      while (const std::optional<json> line = its.link->take()) {
        heard = clock_.now();
        SYNCOPATE_ASSIGN_OR_RETURN(const bool is_news, take_news(rank, *line, TimePoint()));
        if (is_news) continue;
        const std::string is = text(*line, "is");
        if (is == "meet") {
          SYNCOPATE_RETURN_IF_ERROR(come_to_meeting(rank, *line));
        } else if (is == "exchange" && !its.exchange) {
          its.exchange = *line;
          its.link->send(json::object());
        } else if (is == "join" && its.exchange && !its.has_joined) {
          its.has_joined = true;
        } else if (is == "leave") {
          its.has_left = true;
        } else {
          return unknown_words(rank, *line);
        }
      }
      if (its.link->has_ended()) {
        its.link.reset();
        its.has_left = true;
        if (const Status status = end_of(rank); !status.ok()) return status;
      }
    }
    for (const int rank : all) {
      if (of(rank).link && of(rank).waits_in_meeting) SYNCOPATE_RETURN_IF_ERROR(answer_meeting(rank).status());
    }
    if (!parent_) SYNCOPATE_RETURN_IF_ERROR(check_begins());
    if (clock_.now() >= heard + patience) {
      std::vector<int> silent;
      for (const int rank : all) {
        if (!of(rank).link || !(of(rank).has_joined || of(rank).waits_in_meeting)) silent.push_back(rank);
      }
      return Status::deadline_exceeded(fmt::format("the script's ranks {} have said nothing for {:g} s while {}",
                                                   fmt::join(silent, ", "), start_.config.timeout_seconds, doing));
    }
  }
  return {};
}

// The process that has begun the script may end before it becomes ranks.
Status ScriptRanks::check_begins() {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(child_->pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return {};
  }
  const bool has_exited = info.si_code == CLD_EXITED;
  if (has_exited && info.si_status == kNotStarted) return Status::invalid_argument(last_line_of(log_of(0)));
  if (!has_exited || info.si_status != 0) return failure_of(0, has_exited ? info.si_status << 8 : info.si_status);
  return Status::invalid_argument(
      fmt::format("{} ended well, and its ranks did not come: a simulated run needs a script that imports torch 2.5 or "
                  "later, or syncopate.torch, where Syncopate's package is installed (docs/pytorch.md)",
                  command_of(start_.config)));
}

Result<ScriptOpening> ScriptRanks::open() {
  const auto have_joined = [this] {
    return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.has_joined || rank.has_left; });
  };
  SYNCOPATE_RETURN_IF_ERROR(serve(have_joined, "they were to make their optimizer"));
  const bool have_none = std::ranges::all_of(ranks_, [](const Rank& rank) { return !rank.has_joined; });
  if (have_none) {
    return Status::invalid_argument(
        fmt::format("{} ended well, and told of no step: it must train with Syncopate's DistributedOptimizer "
                    "(docs/pytorch.md)",
                    command_of(start_.config)));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(opening_, opening());
  SYNCOPATE_RETURN_IF_ERROR(spread_weights());
  return opening_;
}

Result<ScriptOpening> ScriptRanks::opening() {
  const json& first = *ranks_.front().exchange;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].has_joined || *ranks_[rank].exchange != first) {
      return Status::invalid_argument(
          fmt::format("rank {} of the script trains other tensors than rank 0, or with other options", rank));
    }
  }
  ScriptOpening opening{.takes_means = first.value("takes_means", false),
                        .gives_in_step = first.value("gives_in_step", false)};
  SYNCOPATE_ASSIGN_OR_RETURN(opening.layout, layout_of_tensors(first.value("tensors", json::array())));
  const auto options = first.find("options");
  library::OptionTexts texts;
  if (options != first.end() && options->is_object()) {
    for (const auto& [name, value] : options->items()) texts[name] = value.is_string() ? value.get<std::string>() : "";
  }
  SYNCOPATE_ASSIGN_OR_RETURN(opening.options, library::TrainingOptions::parse(texts, start_.config.workers));
  return opening;
}

// All begin with rank 0's.
Status ScriptRanks::spread_weights() {
  const std::size_t bytes = 2 * opening_.layout.size() * sizeof(float);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<const std::byte> first, ranks_.front().memory[1].first(bytes));
  for (Rank& rank : ranks_) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, rank.memory[1].first(bytes));
    if (memory.data() != first.data()) std::ranges::copy(first.first(bytes / 2), memory.begin());
  }
  return {};
}

// During the run.

Result<std::span<const float>> ScriptRanks::weights(int rank) {
  const std::size_t size = opening_.layout.size();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, of(rank).memory[1].first(2 * size * sizeof(float)));
  return std::span(reinterpret_cast<const float*>(memory.data()), size);
}

Result<std::span<const float>> ScriptRanks::gradients(int rank) {
  const std::size_t size = opening_.layout.size();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, of(rank).memory[1].first(2 * size * sizeof(float)));
  return std::span(reinterpret_cast<const float*>(memory.data()) + size, size);
}

Status ScriptRanks::check_as_many_steps(int rank) const {
  const Rank& own = ranks_[static_cast<std::size_t>(rank)];
  for (std::size_t other = 0; opening_.takes_means && other < ranks_.size(); ++other) {
    const std::size_t steps = ranks_[other].absent.size();
    const bool is_over = ranks_[other].has_left ? own.absent.size() > steps : own.has_left && steps > own.absent.size();
    if (!is_over) continue;
    const auto [fewer, more] = own.has_left ? std::pair(static_cast<std::size_t>(rank), other)
                                            : std::pair(other, static_cast<std::size_t>(rank));
    return Status::peer_lost(fmt::format(
        "ranks do not do the same: rank {} of the script has ended after {} steps, and rank {} makes another; a "
        "DistributedSampler gives each as many batches",
        fewer, ranks_[fewer].absent.size(), more));
  }
  return {};
}

Result<std::optional<ScriptStep>> ScriptRanks::go_on(int rank, std::span<const float> weights, const Clock& clock,
                                                     const std::function<void()>& pause) {
  Result<std::optional<ScriptStep>> step = go_on_until_computed(rank, weights, clock, pause);
  if (step.ok() && !*step) of(rank).has_left = true;
  if (step.ok()) {
    if (Status status = check_as_many_steps(rank); !status.ok()) step = std::move(status);
  }
  if (!step.ok() && failure_.ok()) failure_ = step.status();
  return step;
}

Result<std::optional<ScriptStep>> ScriptRanks::go_on_until_computed(int rank, std::span<const float> weights,
                                                                    const Clock& clock,
                                                                    const std::function<void()>& pause) {
  Rank& its = of(rank);
  json answer = json::object();
  if (!weights.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, its.memory[1].first(weights.size_bytes()));
    std::memcpy(memory.data(), weights.data(), weights.size_bytes());
    answer["absent"] = absent_everywhere(rank, its.absent.size() - 1);
  }
  its.link->send(answer);
  its.answered = clock_.now();
  const Duration patience = from_seconds(start_.config.timeout_seconds);
  std::optional<TimePoint> met_by;  // in virtual time
  while (true) {
    if (its.waits_in_meeting) {
      if (!met_by) met_by = clock.now() + patience;
      SYNCOPATE_ASSIGN_OR_RETURN(const bool is_answered, answer_meeting(rank));
      if (!is_answered) {
        if (clock.now() >= *met_by) {
          return Status::deadline_exceeded(fmt::format("rank {} waits in an operation of all ranks for rank {}", rank,
                                                       fmt::join(meetings_.absent(rank), ", ")));
        }
        pause();
        continue;
      }
      met_by.reset();
    }
    SYNCOPATE_RETURN_IF_ERROR(its.link->read());
    const std::optional<json> line = its.link->take();
    if (!line && its.link->has_ended()) {
      its.link.reset();
      SYNCOPATE_RETURN_IF_ERROR(end_of(rank));
      return std::optional<ScriptStep>();
    }
    if (!line) {
      // The coordinator takes an interrupt and ends the run, in virtual time, whatever the rank does meanwhile.
      is_interrupted_ |= !wait({{rank}}, is_interrupted_ ? clock_.now() : its.answered + patience);
      if (is_interrupted_) pause();
      SYNCOPATE_RETURN_IF_ERROR(take_arrivals());
      if (clock_.now() < its.answered + patience) continue;
      return Status::deadline_exceeded(
          fmt::format("rank {} of the script has computed for {:g} s without an end; "
                      "--timeout ends every wait",
                      rank, start_.config.timeout_seconds));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const bool is_news, take_news(rank, *line, clock.now()));
    if (is_news) continue;
    const std::string is = text(*line, "is");
    if (is == "meet") {
      SYNCOPATE_RETURN_IF_ERROR(come_to_meeting(rank, *line));
    } else if (is == "step") {
      SYNCOPATE_ASSIGN_OR_RETURN(ScriptStep step, step_of(rank, *line));
      return std::optional(std::move(step));
    } else if (is == "leave") {
      return std::optional<ScriptStep>();
    } else {
      return unknown_words(rank, *line);
    }
  }
}

ScriptRanks::Learnt ScriptRanks::learnt(int rank, std::int64_t step) const {
  const auto& learnt = ranks_[static_cast<std::size_t>(rank)].learnt;
  const auto found = learnt.find(step);
  return found == learnt.end() ? Learnt{kNan, kNan} : found->second;
}

Status ScriptRanks::close(bool kill) {
  if (kill) {
    ::kill(-child_->pid, SIGKILL);
    show_output(true);
    return {};
  }
  for (Rank& rank : ranks_) {
    if (rank.link && rank.has_left) rank.link->send(json::object());  // to leave()
  }
  const auto are_gone = [this] { return std::ranges::all_of(ranks_, [](const Rank& rank) { return !rank.link; }); };
  const Status status = serve(are_gone, "they were to end");
  show_output(true);
  return status;
}

}  // namespace syncopate::experiments
