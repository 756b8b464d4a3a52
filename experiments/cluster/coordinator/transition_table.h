// A state machine as data: for each phase and each event, what follows. Compile-time constants.
//
// A table is a list of rows, and has no default: `is_complete` is false as long as some pair of phase and event is in
// no row, or in two.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace syncopate::experiments {

// Some of the events of a machine: `{Event::kExit}`, or `EventSet{Event::kExit} | Event::kLoss`.
template <typename Event>
class EventSet {
 public:
  constexpr EventSet(Event event) : bits_(bit(event)) {}  // NOLINT(google-explicit-constructor): one event is a set
  constexpr bool has(Event event) const { return (bits_ & bit(event)) != 0; }
  constexpr EventSet operator|(EventSet other) const {
    other.bits_ |= bits_;
    return other;
  }

 private:
  static constexpr std::uint32_t bit(Event event) { return std::uint32_t{1} << static_cast<unsigned>(event); }
  std::uint32_t bits_;
};

// What an event means in a phase.
enum class Effect {
  kTransition,  // the next phase is `next`, which may be the same one
  kIgnored,     // the phase stays, on purpose: the event may arrive, and changes nothing
  kImpossible,  // the phase stays: only a defect of the coordinator itself would bring the event about
};

// `Phase` and `Event` are enums that count from zero and end with kCount.
template <typename Phase, typename Event>
struct TransitionRow {
  Phase from;
  EventSet<Event> on;
  Effect effect;
  Phase next;  // for a transition

  static constexpr TransitionRow to(Phase from, EventSet<Event> on, Phase next) {
    return {from, on, Effect::kTransition, next};
  }
  static constexpr TransitionRow ignored(Phase from, EventSet<Event> on) { return {from, on, Effect::kIgnored, from}; }
  static constexpr TransitionRow impossible(Phase from, EventSet<Event> on) {
    return {from, on, Effect::kImpossible, from};
  }
};

template <typename Phase, typename Event, std::size_t kRows>
struct TransitionTable {
  static constexpr std::size_t kPhases = static_cast<std::size_t>(Phase::kCount);
  static constexpr std::size_t kEvents = static_cast<std::size_t>(Event::kCount);

  std::array<TransitionRow<Phase, Event>, kRows> rows;

  // Returns the number of rows that handle this pair.
  constexpr std::size_t rows_for(Phase phase, Event event) const {
    std::size_t count = 0;
    for (const TransitionRow<Phase, Event>& row : rows) count += row.from == phase && row.on.has(event) ? 1 : 0;
    return count;
  }
  constexpr bool is_complete() const {
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      for (std::size_t event = 0; event < kEvents; ++event) {
        if (rows_for(static_cast<Phase>(phase), static_cast<Event>(event)) != 1) return false;
      }
    }
    return true;
  }

  // Returns the row that handles this pair. Requires that the table is complete.
  constexpr const TransitionRow<Phase, Event>& row_for(Phase phase, Event event) const {
    for (const TransitionRow<Phase, Event>& row : rows) {
      if (row.from == phase && row.on.has(event)) return row;
    }
    return rows.front();
  }
  // Returns the phase that follows `phase` after `event`.
  constexpr Phase next(Phase phase, Event event) const {
    const TransitionRow<Phase, Event>& row = row_for(phase, event);
    assert(row.effect != Effect::kImpossible);
    return row.effect == Effect::kTransition ? row.next : phase;
  }
};

template <typename Phase, typename Event, std::size_t kRows>
TransitionTable(std::array<TransitionRow<Phase, Event>, kRows>) -> TransitionTable<Phase, Event, kRows>;

}  // namespace syncopate::experiments
