#include "common/server_figures.h"

#include <algorithm>

#include "common/figure_bits.h"

namespace syncopate {
namespace {

template <typename T>
T with(const T& one, const T& other, bool is_longest) {
  return is_longest ? std::max(one, other) : one + other;
}

template <typename T>
std::optional<T> with(const std::optional<T>& one, const std::optional<T>& other, bool is_longest) {
  return one && other ? with(*one, *other, is_longest) : one ? one : other;
}

}  // namespace

std::array<std::int64_t, kServerFigures> bits_of(const ServerFigures& figures) {
  std::array<std::int64_t, kServerFigures> bits{};
  std::size_t place = 0;
  each_server_figure([&](const ServerFigure&, auto member) { bits[place++] = bits_of(figures.*member); });
  return bits;
}

ServerFigures server_figures_in(std::span<const std::int64_t> bits) {
  ServerFigures figures;
  each_server_figure([&](const ServerFigure&, auto member) {
    if (bits.empty()) return;
    set_bits(bits.front(), figures.*member);
    bits = bits.subspan(1);
  });
  return figures;
}

void add_shard(const ServerFigures& more, ServerFigures& figures) {
  each_server_figure([&](const ServerFigure& figure, auto member) {
    figures.*member = with(figures.*member, more.*member, figure.is_of_a_thread);
  });
}

void add_time(const ServerFigures& more, ServerFigures& figures) {
  each_server_figure(
      [&](const ServerFigure&, auto member) { figures.*member = with(figures.*member, more.*member, false); });
}

}  // namespace syncopate
