// The tables of phases: that each pair of phase and event is handled on purpose, and that the diagrams in the README of
// the coordinator show them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "experiments/cluster/coordinator/process_phase.h"
#include "experiments/cluster/coordinator/run_phase.h"
#include "tests/support/build_paths.h"

namespace syncopate::experiments {
namespace {

using Arrow = std::tuple<std::string, std::string, std::string>;  // from, event, to

template <typename Phase, typename Event, std::size_t kRows>
std::set<Arrow> arrows_of(const TransitionTable<Phase, Event, kRows>& table) {
  std::set<Arrow> arrows;
  for (const TransitionRow<Phase, Event>& row : table.rows) {
    for (std::size_t i = 0; i < table.kEvents; ++i) {
      const auto event = static_cast<Event>(i);
      if (row.effect != Effect::kTransition || !row.on.has(event)) continue;
      arrows.insert({name_of(row.from), name_of(event), name_of(row.next)});
    }
  }
  return arrows;
}

template <typename Phase, typename Event, std::size_t kRows>
void expect_each_pair_in_one_row(const TransitionTable<Phase, Event, kRows>& table) {
  for (std::size_t phase = 0; phase < table.kPhases; ++phase) {
    for (std::size_t event = 0; event < table.kEvents; ++event) {
      EXPECT_EQ(table.rows_for(static_cast<Phase>(phase), static_cast<Event>(event)), 1u)
          << name_of(static_cast<Phase>(phase)) << ", " << name_of(static_cast<Event>(event));
    }
  }
}

// Returns the phases that `from` leads to, and `from`.
std::set<std::string> reachable_from(const std::string& from, const std::set<Arrow>& arrows) {
  std::set<std::string> reached{from};
  for (std::size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const auto& [start, event, end] : arrows) {
      if (reached.contains(start)) reached.insert(end);
    }
  }
  return reached;
}

// What the mermaid diagrams of one chapter show. A line that is none of the few forms used there is a failure.
class Diagram {
 public:
  explicit Diagram(const std::string& chapter) {
    std::ifstream file(testing_support::source_directory() + "/experiments/cluster/coordinator/README.md");
    EXPECT_TRUE(file.is_open());
    bool in_chapter = false, in_diagram = false;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("## ")) in_chapter = line == "## " + chapter;
      if (line.starts_with("```")) {
        in_diagram = in_chapter && line == "```mermaid";
      } else if (in_diagram) {
        read(line);
      }
    }
    for (const Arrow& arrow : drawn_) expand(arrow);
  }

  const std::set<Arrow>& arrows() const { return arrows_; }
  const std::string& initial() const { return initial_; }

 private:
  void read(const std::string& line) {
    static const std::regex box_begins(R"( *state (\w+) \{)"), box_ends(R"( *\})"), first(R"( *\[\*\] --> (\w+))"),
        last(R"( *\w+ --> \[\*\])"), arrow(R"( *(\w+) --> (\w+) : (.+))");
    std::smatch parts;
    if (line == "stateDiagram-v2" || std::regex_match(line, last)) return;
    if (std::regex_match(line, parts, box_begins)) {
      box_ = parts[1];
    } else if (std::regex_match(line, box_ends)) {
      box_.clear();
    } else if (std::regex_match(line, parts, first)) {
      initial_ = parts[1];
    } else if (std::regex_match(line, parts, arrow)) {
      if (!box_.empty()) boxes_[box_].insert({parts[1], parts[2]});
      std::istringstream events(parts[3]);
      for (std::string event; std::getline(events >> std::ws, event, ',');) {
        EXPECT_TRUE(drawn_.insert({parts[1], event, parts[2]}).second) << "drawn twice: " << line;
      }
    } else {
      ADD_FAILURE() << "cannot be read: " << line;
    }
  }
  void expand(const Arrow& arrow) {
    const auto& [from, event, to] = arrow;
    const auto box = boxes_.find(from);
    if (box == boxes_.end()) {
      arrows_.insert(arrow);
      return;
    }
    for (const std::string& phase : box->second) {
      EXPECT_TRUE(arrows_.insert({phase, event, to}).second) << "drawn twice: " << phase << ", " << event;
    }
  }

  std::string box_;                                     // being read
  std::map<std::string, std::set<std::string>> boxes_;  // the phases in each
  std::set<Arrow> drawn_, arrows_;                      // with boxes, and with the phases in their place
  std::string initial_;
};

TEST(RunPhases, EachPairOfPhaseAndEventIsHandledOnPurpose) { expect_each_pair_in_one_row(kRunTransitions); }

TEST(RunPhases, AreDrawnInTheReadme) {
  const Diagram diagram("Phases of the run");
  EXPECT_THAT(diagram.arrows(), testing::ContainerEq(arrows_of(kRunTransitions)));
  EXPECT_EQ(diagram.initial(), name_of(RunPhase::kGathering));
}

TEST(RunPhases, AreAllReachedAndAllLeadToTheEnd) {
  const std::set<Arrow> arrows = arrows_of(kRunTransitions);
  EXPECT_EQ(reachable_from("gathering", arrows).size(), kRunTransitions.kPhases);
  for (std::size_t i = 0; i < kRunTransitions.kPhases; ++i) {
    const auto phase = static_cast<RunPhase>(i);
    EXPECT_TRUE(reachable_from(name_of(phase), arrows).contains("killing")) << name_of(phase);
    if (is_stopping(phase)) continue;
    EXPECT_EQ(kRunTransitions.next(phase, RunEvent::kVerdict), RunPhase::kStopping) << name_of(phase);
  }
}

TEST(ProcessPhases, EachPairOfPhaseAndEventIsHandledOnPurpose) { expect_each_pair_in_one_row(kProcessTransitions); }

TEST(ProcessPhases, AreDrawnInTheReadme) {
  const Diagram diagram("Phases of a process");
  EXPECT_THAT(diagram.arrows(), testing::ContainerEq(arrows_of(kProcessTransitions)));
  EXPECT_EQ(diagram.initial(), name_of(ProcessPhase::kStarting));
}

TEST(ProcessPhases, AreAllReached) {
  EXPECT_EQ(reachable_from("starting", arrows_of(kProcessTransitions)).size(), kProcessTransitions.kPhases);
}

// However a process ends, and whoever notices first, it is known to have ended; and whoever is lost is no more there.
TEST(ProcessPhases, AnExitEndsEveryPhaseAndALossIsRememberedInEvery) {
  for (std::size_t i = 0; i < kProcessTransitions.kPhases; ++i) {
    const auto phase = static_cast<ProcessPhase>(i);
    const ProcessPhase after_exit = kProcessTransitions.next(phase, ProcessEvent::kExit);
    EXPECT_TRUE(has_ended(after_exit)) << name_of(phase);
    EXPECT_EQ(is_lost(after_exit), is_lost(phase)) << name_of(phase);
    const ProcessPhase after_loss = kProcessTransitions.next(phase, ProcessEvent::kLoss);
    EXPECT_TRUE(is_lost(after_loss)) << name_of(phase);
    EXPECT_EQ(has_ended(after_loss), has_ended(phase)) << name_of(phase);
  }
}

// No message of a lost process brings it back: the monitor admits it, or restarts it.
TEST(ProcessPhases, OnlyTheMonitorBringsALostProcessBack) {
  const ProcessEvent said[] = {ProcessEvent::kHello,        ProcessEvent::kReady,      ProcessEvent::kStep,
                               ProcessEvent::kLastStep,     ProcessEvent::kFinished,   ProcessEvent::kFailure,
                               ProcessEvent::kFinalWeights, ProcessEvent::kEpochBegins};
  for (std::size_t i = 0; i < kProcessTransitions.kPhases; ++i) {
    const auto phase = static_cast<ProcessPhase>(i);
    if (!is_lost(phase)) continue;
    for (const ProcessEvent event : said)
      EXPECT_TRUE(is_lost(kProcessTransitions.next(phase, event))) << name_of(phase);
  }
}

}  // namespace
}  // namespace syncopate::experiments
