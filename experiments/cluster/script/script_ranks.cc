#include "experiments/cluster/script/script_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "common/step_file.h"
#include "experiments/cluster/plan/command_environment.h"

namespace syncopate::experiments {
namespace {

using nlohmann::json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Duration nanoseconds(double count) {
  return Duration(std::isfinite(count) && count > 0 ? static_cast<std::int64_t>(std::min(count, 1e18)) : 0);
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
  std::unique_ptr<ScriptRanks> ranks(new ScriptRanks(start, observer, interrupts, std::move(door)));
  SYNCOPATE_RETURN_IF_ERROR(ranks->processes_.begin());
  return ranks;
}

Status ScriptRanks::take_arrivals() {
  SYNCOPATE_RETURN_IF_ERROR(processes_.look());
  for (ScriptProcesses::Arrival& arrival : processes_.take_arrived()) {
    Rank& its = of(arrival.rank);
    if (its.link) return Status::data_loss(fmt::format("rank {} of the script has come twice", arrival.rank));
    its.link.emplace(std::move(arrival.link));
    its.memory = std::move(arrival.memory);
    its.answered = clock_.now();
  }
  return {};
}

void ScriptRanks::show_output(bool is_last) {
  for (const std::string& line : output_.read(is_last)) observer_.on_output(line);
}

// What ranks say.

Result<bool> ScriptRanks::take_news(int rank, const json& line, TimePoint now) {
  const std::string is = text_in(line, "is");
  if (is == "learnt") {
    of(rank).learnt[static_cast<std::int64_t>(number_in(line, "step", 0))] = {number_in(line, "loss"),
                                                                              number_in(line, "accuracy")};
    return true;
  }
  if (is == "evaluation") {
    if (rank == 0) {
      evaluations_.push_back({.steps_done = static_cast<std::int64_t>(number_in(line, "step", 0)),
                              .taken = now,
                              .accuracy = number_in(line, "accuracy"),
                              .loss = number_in(line, "loss"),
                              .epoch = number_in(line, "epoch")});
    }
    return true;
  }
  if (is == "fact") {
    const std::string name = text_in(line, "name");
    if (name == kRefusedFact) return Status::invalid_argument(text_in(line, "value"));
    if (rank == 0) observer_.on_fact(name, text_in(line, "value"));
    return true;
  }
  return false;
}

Status ScriptRanks::come_to_meeting(int rank, const json& line) {
  static const std::map<std::string, ScriptMeetings::Kind> kKinds = {{"sum", ScriptMeetings::Kind::kSum},
                                                                     {"broadcast", ScriptMeetings::Kind::kBroadcast},
                                                                     {"gather", ScriptMeetings::Kind::kGather},
                                                                     {"barrier", ScriptMeetings::Kind::kBarrier}};
  const auto kind = kKinds.find(text_in(line, "what"));
  const double size = number_in(line, "bytes", 0);
  if (kind == kKinds.end() || !(size >= 0 && size < 1e15)) return unknown_words(rank, line);
  ScriptMeetings::Part part{.kind = kind->second,
                            .root = whole_number_in(line, "root", -1, config_.workers, 0),
                            .scale = number_in(line, "scale", 1)};
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
  ScriptStep step{.learning_rate = number_in(line, "rate", 0),
                  .before = nanoseconds(number_in(line, "before", 0)),
                  .ready = {},
                  .samples = whole_number_in(line, "samples", 1, std::numeric_limits<int>::max(), 1)};
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

Status ScriptRanks::serve(const std::function<bool()>& is_done, bool (*is_awaited)(const Rank&), const char* doing) {
  std::vector<int> all(ranks_.size());
  std::iota(all.begin(), all.end(), 0);
  const Duration patience = from_seconds(config_.timeout_seconds);
  TimePoint heard = clock_.now();
  while (!is_done()) {
    std::vector<const ScriptLink*> links;
    for (const Rank& rank : ranks_) {
      if (rank.link) links.push_back(&*rank.link);
    }
    if (!processes_.wait(links, heard + patience)) return Status::cancelled("interrupted");
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
        const std::string is = text_in(*line, "is");
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
        heard = clock_.now();
        its.link.reset();
        its.has_left = true;
        SYNCOPATE_RETURN_IF_ERROR(processes_.end_of(rank));
      }
    }
    for (const int rank : all) {
      if (of(rank).link && of(rank).waits_in_meeting) SYNCOPATE_RETURN_IF_ERROR(answer_meeting(rank).status());
    }
    SYNCOPATE_RETURN_IF_ERROR(processes_.check_begins());
    if (clock_.now() >= heard + patience) {
      std::vector<int> silent;
      for (const int rank : all) {
        if (is_awaited(of(rank))) silent.push_back(rank);
      }
      return Status::deadline_exceeded(fmt::format("the script's ranks {} have said nothing for {:g} s while {}",
                                                   fmt::join(silent, ", "), config_.timeout_seconds, doing));
    }
  }
  return {};
}

Result<ScriptOpening> ScriptRanks::open() {
  const auto have_joined = [this] {
    return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.has_joined || rank.has_left; });
  };
  const auto joins = [](const Rank& rank) { return !rank.has_joined && !rank.has_left && !rank.waits_in_meeting; };
  SYNCOPATE_RETURN_IF_ERROR(serve(have_joined, joins, "they were to make their optimizer"));
  const bool have_none = std::ranges::all_of(ranks_, [](const Rank& rank) { return !rank.has_joined; });
  if (have_none) {
    return Status::invalid_argument(
        fmt::format("{} ended well, and told of no step: it must train with Syncopate's DistributedOptimizer "
                    "(docs/pytorch.md)",
                    command_of(config_)));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(opening_, opening());
  if (!opening_.takes_means) SYNCOPATE_RETURN_IF_ERROR(spread_weights());
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
  SYNCOPATE_ASSIGN_OR_RETURN(opening.options, library::TrainingOptions::parse(texts, config_.workers));
  return opening;
}

// All begin with rank 0's.
Status ScriptRanks::spread_weights() {
  const std::size_t bytes = opening_.layout.size() * sizeof(float);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<const std::byte> first, ranks_.front().memory[1].first(bytes));
  for (Rank& rank : ranks_) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, rank.memory[1].first(bytes));
    if (memory.data() != first.data()) std::ranges::copy(first, memory.begin());
  }
  return {};
}

// During the run.

Result<std::span<const float>> ScriptRanks::weights(int rank) { return floats_of(rank, 0); }

Result<std::span<const float>> ScriptRanks::gradients(int rank) {
  return floats_of(rank, opening_.takes_means ? 0 : opening_.layout.size());
}

Result<std::span<const float>> ScriptRanks::floats_of(int rank, std::size_t first) {
  const std::size_t size = opening_.layout.size();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory,
                             of(rank).memory[1].first((first + size) * sizeof(float)));
  return std::span(reinterpret_cast<const float*>(memory.data()) + first, size);
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
  SYNCOPATE_RETURN_IF_ERROR(failure_);
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
  const Duration patience = from_seconds(config_.timeout_seconds);
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
      SYNCOPATE_RETURN_IF_ERROR(processes_.end_of(rank));
      return std::optional<ScriptStep>();
    }
    if (!line) {
      // The coordinator takes an interrupt and ends the run, in virtual time, whatever the rank does meanwhile.
      is_interrupted_ |= !processes_.wait({{&*its.link}}, is_interrupted_ ? clock_.now() : its.answered + patience);
      if (is_interrupted_) pause();
      SYNCOPATE_RETURN_IF_ERROR(take_arrivals());
      if (clock_.now() < its.answered + patience) continue;
      return Status::deadline_exceeded(
          fmt::format("rank {} of the script has computed for {:g} s without an end; "
                      "--timeout ends every wait",
                      rank, config_.timeout_seconds));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const bool is_news, take_news(rank, *line, clock.now()));
    if (is_news) continue;
    const std::string is = text_in(*line, "is");
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
    processes_.kill();
    show_output(true);
    return {};
  }
  for (Rank& rank : ranks_) {
    if (rank.link && rank.has_left) rank.link->send(json::object());  // to leave()
  }
  const auto are_gone = [this] { return std::ranges::all_of(ranks_, [](const Rank& rank) { return !rank.link; }); };
  const auto ends = [](const Rank& rank) { return rank.link && !rank.waits_in_meeting; };
  const Status status = serve(are_gone, ends, "they were to end");
  show_output(true);
  return status;
}

}  // namespace syncopate::experiments
