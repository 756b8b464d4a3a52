// ServerFigures: what a parameter server has had to do in steps, without what is sent when workers join and leave. Each
// figure is described once: the control connection, a program's file of steps, a server's last line and summary.json
// follow from each_server_figure(). Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/clock.h"

namespace syncopate {

struct ServerFigures {
  std::int64_t updates = 0;  // of the last membership epoch, whose state goes on
  std::int64_t pushes = 0;
  std::int64_t dropped = 0;    // messages and connections that failed their checks
  Duration busy{};             // in which the thread of the busiest shard worked on messages
  Duration serving{};          // from a shard's first push to the end of its last
  std::int64_t bytes_in = 0;   // payload, sum over its shards
  std::int64_t bytes_out = 0;  // payload, sum over its shards
  // In which a thread of a shard was ready and had no core to run on, the longest; none where that is not known.
  std::optional<Duration> core_wait = {};

  bool operator==(const ServerFigures&) const = default;
};

struct ServerFigure {
  const char* key = nullptr;    // in summary.json; null: it has none
  bool is_of_a_thread = false;  // of a server's shards the longest counts; all else is summed
};

// Calls visit(figure, member) for each, in the order in which they travel.
template <typename Visit>
constexpr void each_server_figure(const Visit& visit) {
  using Figures = ServerFigures;
  visit(ServerFigure{}, &Figures::updates);
  visit(ServerFigure{.key = "pushes"}, &Figures::pushes);
  visit(ServerFigure{}, &Figures::dropped);
  visit(ServerFigure{.key = "busy_seconds", .is_of_a_thread = true}, &Figures::busy);
  visit(ServerFigure{.key = "serving_seconds", .is_of_a_thread = true}, &Figures::serving);
  visit(ServerFigure{.key = "bytes_in"}, &Figures::bytes_in);
  visit(ServerFigure{.key = "bytes_out"}, &Figures::bytes_out);
  visit(ServerFigure{.key = "core_wait_seconds", .is_of_a_thread = true}, &Figures::core_wait);
}

inline constexpr std::size_t kServerFigures = [] {
  std::size_t count = 0;
  each_server_figure([&count](const ServerFigure&, auto) { ++count; });
  return count;
}();
// What is not described is nowhere: each has 8 bytes, and one that is optional 8 more.
static_assert(sizeof(ServerFigures) == (kServerFigures + 1) * sizeof(std::int64_t));

// As bits (common/figure_bits.h), and back; those that are missing in `bits` are zeros.
std::array<std::int64_t, kServerFigures> bits_of(const ServerFigures& figures);
ServerFigures server_figures_in(std::span<const std::int64_t> bits);

// Adds to what a server has done: what another of its shards has done in the same time, and what it has done in
// another.
void add_shard(const ServerFigures& more, ServerFigures& figures);
void add_time(const ServerFigures& more, ServerFigures& figures);

}  // namespace syncopate
