#include "common/tables/exchange_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>

namespace syncopate {
namespace {

// A table is tried as a whole only if it has at most so many times the rows that all workers touch
// (allreduce::ReplicatedTables::kMostDense / 2).
constexpr double kMostWhole = 2;

struct Members {
  int workers = 0, servers = 0;
};
Members members_of(const ExchangeGround& ground) {
  Members members;
  for (const ExchangeGround::Host& host : ground.hosts) {
    members.workers += host.workers;
    members.servers += host.servers;
  }
  return members;
}

// Bytes over each host's link, each way.
class Links {
 public:
  explicit Links(const ExchangeGround& ground)
      : ground_(ground), members_(members_of(ground)), out_(ground.hosts.size()), in_(out_) {}

  // A host with workers passes `bytes` on, and receives as much, unless all workers share it.
  void ring(double bytes) {
    const auto has_workers = [](const ExchangeGround::Host& host) { return host.workers > 0; };
    if (std::ranges::count_if(ground_.hosts, has_workers) < 2) return;
    add([&](const ExchangeGround::Host& host) { return has_workers(host) ? bytes : 0; },
        [&](const ExchangeGround::Host& host) { return has_workers(host) ? bytes : 0; });
  }
  // Each worker sends `bytes` to each other.
  void to_each_other(double bytes) {
    const auto crossing = [&](const ExchangeGround::Host& host) {
      return bytes * host.workers * (members_.workers - host.workers);
    };
    add(crossing, crossing);
  }
  // Each worker sends `bytes` to the servers, divided among them.
  void to_servers(double bytes) { add(by_workers(bytes), by_servers(bytes)); }
  void from_servers(double bytes) { add(by_servers(bytes), by_workers(bytes)); }

  double seconds() const { return ground_.seconds_per_byte * std::max(std::ranges::max(out_), std::ranges::max(in_)); }

 private:
  std::function<double(const ExchangeGround::Host&)> by_workers(double bytes) const {
    return [=, all = members_.servers](const ExchangeGround::Host& host) {
      return bytes * host.workers * (all - host.servers) / all;
    };
  }
  std::function<double(const ExchangeGround::Host&)> by_servers(double bytes) const {
    return [=, all = members_.servers, n = members_.workers](const ExchangeGround::Host& host) {
      return bytes * host.servers * (n - host.workers) / all;
    };
  }
  template <typename Out, typename In>
  void add(const Out& out, const In& in) {
    for (std::size_t host = 0; host < out_.size(); ++host) {
      out_[host] += out(ground_.hosts[host]);
      in_[host] += in(ground_.hosts[host]);
    }
  }

  const ExchangeGround& ground_;
  const Members members_;
  std::vector<double> out_, in_;
};

// The seconds of one thing alone.
template <typename Add>
double alone(const ExchangeGround& ground, const Add& add) {
  Links links(ground);
  add(links);
  return links.seconds();
}

double row_bytes(const ExchangeDemand::Table& table) { return sizeof(float) * table.rows * table.width; }
double key_bytes(const ExchangeDemand::Table& table) { return sizeof(RowKey) * table.rows; }

// Adds a table's exchange among n workers, in the way that sends less.
void add_sum(const ExchangeGround& ground, const ExchangeDemand::Table& table, int n, Links& links) {
  const double rows = (n - 1) * (row_bytes(table) + key_bytes(table));
  const double whole = 2.0 * (n - 1) / n * sizeof(float) * table.all_rows * (table.width + 1);
  const bool may_be_whole = ground.sums_whole_tables && table.all_rows <= kMostWhole * n * table.rows;
  if (may_be_whole && whole < rows) return links.ring(whole);
  links.to_each_other(row_bytes(table) + key_bytes(table));
}

std::vector<bool> all_tables(const ExchangeDemand& demand, bool by_servers) {
  return std::vector<bool>(demand.tables.size(), by_servers);
}

// Moves those tables to the workers that take no longer there.
ExchangeChoice with_tables_moved(const ExchangeGround& ground, const ExchangeDemand& demand, ExchangeChoice choice) {
  double least = exchange_seconds(ground, demand, choice);
  for (std::size_t table = 0; table < demand.tables.size(); ++table) {
    ExchangeChoice moved = choice;
    moved.tables_by_servers[table] = false;
    const double seconds = exchange_seconds(ground, demand, moved);
    if (seconds > least) continue;
    choice = moved;
    least = seconds;
  }
  return choice;
}

const char* way(bool by_servers) { return by_servers ? "servers" : "workers"; }

}  // namespace

ExchangeChoice choice_by_kind(const ParamLayout& layout) {
  return {.dense_by_servers = false, .tables_by_servers = std::vector<bool>(layout.tables().size(), true)};
}

ExchangeDemand demand_of(const ParamLayout& layout, const std::vector<double>& rows) {
  assert(rows.empty() || rows.size() == layout.tables().size());
  ExchangeDemand demand{.dense_bytes = sizeof(float) * static_cast<double>(layout.dense().size()), .tables = {}};
  for (const TensorSpec& spec : layout.tables()) {
    const auto most = static_cast<double>(spec.table->rows_a_step);
    demand.tables.push_back({.rows = rows.empty() ? most : rows[demand.tables.size()],
                             .width = static_cast<double>(spec.width()),
                             .all_rows = static_cast<double>(spec.rows())});
  }
  return demand;
}

double exchange_seconds(const ExchangeGround& ground, const ExchangeDemand& demand, const ExchangeChoice& choice) {
  assert(choice.tables_by_servers.size() == demand.tables.size());
  const auto [n, servers] = members_of(ground);
  Links behind_backward(ground), before_forward(ground), keys(ground);
  double messages = 0, dense = 0;  // messages that wait for each other; the dense push and its answer
  bool pulls = false;
  if (choice.dense_by_servers) {
    const double bytes = demand.dense_bytes;
    behind_backward.to_servers(bytes);
    behind_backward.from_servers(bytes);
    const double unanswered = std::min(1.0, kPushWindowBytes * servers / std::max(1.0, bytes));
    dense = alone(ground, [&](Links& links) { links.to_servers(bytes); }) +
            unanswered * alone(ground, [&](Links& links) { links.from_servers(bytes); });
    messages += 2;
  } else {
    behind_backward.ring(2.0 * (n - 1) / n * demand.dense_bytes);
    messages += 2 * std::ceil(std::log2(n));
  }
  for (std::size_t i = 0; i < demand.tables.size(); ++i) {
    const ExchangeDemand::Table& table = demand.tables[i];
    if (!choice.tables_by_servers[i]) {
      if (n > 1) add_sum(ground, table, n, behind_backward);
      ++messages;
      continue;
    }
    behind_backward.to_servers(row_bytes(table));
    keys.to_servers(key_bytes(table));
    before_forward.from_servers(row_bytes(table));
    pulls = true;
  }
  if (pulls) messages += 2;
  return std::max(dense, behind_backward.seconds()) + keys.seconds() + before_forward.seconds() +
         messages * ground.latency;
}

ExchangeChoice choose_exchanges(const ExchangeGround& ground, const ExchangeDemand& demand) {
  ExchangeChoice best{.dense_by_servers = false, .tables_by_servers = all_tables(demand, false)};
  double least = exchange_seconds(ground, demand, best);
  for (const bool dense_by_servers : {false, true}) {
    const ExchangeChoice choice = with_tables_moved(
        ground, demand, {.dense_by_servers = dense_by_servers, .tables_by_servers = all_tables(demand, true)});
    const double seconds = exchange_seconds(ground, demand, choice);
    if (seconds >= (1 - kServersMargin) * least) continue;
    best = choice;
    least = seconds;
  }
  return best;
}

std::string describe(const ExchangeChoice& choice, const ParamLayout& layout, const ExchangeGround& ground,
                     const ExchangeDemand& demand) {
  std::string text = fmt::format("dense by {}", way(choice.dense_by_servers));
  for (std::size_t table = 0; table < layout.tables().size(); ++table) {
    text += fmt::format("; {} by {}", layout.tables()[table].name, way(choice.tables_by_servers[table]));
  }
  const auto milliseconds = [&](const ExchangeChoice& each) { return 1e3 * exchange_seconds(ground, demand, each); };
  return fmt::format("{} ({:.3g} ms a step; all by workers {:.3g} ms, all by servers {:.3g} ms)", text,
                     milliseconds(choice), milliseconds({false, all_tables(demand, false)}),
                     milliseconds({true, all_tables(demand, true)}));
}

}  // namespace syncopate
