// Which exchange takes which tensor of a model with row-sparse tables: sums among the workers, or servers. Pure.
//
// An exchange costs what the busiest link needs for its bytes, as Poseidon (Zhang et al. 2017, "Poseidon: an efficient
// communication architecture for distributed deep learning on GPU clusters", HybComm) and Parallax (Kim et al. 2019,
// section 3) count them, and the delays of the messages that wait for each other. For n workers, S servers, D bytes of
// dense tensors, R of the rows that a worker touches in a step, with K of their keys, a worker and a server on links of
// their own:
//
//                        a worker's link carries           a server's
//   dense, workers       2 D (n-1)/n, both ways
//   dense, servers       D out, then D in                  n D / S in, then out
//   a table, workers     (n-1) (R + K), both ways          (all_to_all; or the whole table in an allreduce, if it is
//                                                          small and that is less)
//   a table, servers     R out, behind backward            n R / S in
//                        K out, R in, before forward       n R / S out
//
// Where a worker and a server share a host's link, bytes inside the host are free, and the others add up. A step takes
// first what is sent behind backward, then the rows that come before forward. Answers to dense pushes wait for all
// workers: of each server's share up to a window is answered only once it has all been pushed; rows fill that time.
//
// Left out: computing, the part of an exchange that hides behind backward, and the load of servers that have more rows
// than others by chance. The last is on the servers' side alone: they must win by kMargin.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/param_layout.h"

namespace syncopate {

struct ExchangeChoice {
  bool dense_by_servers = false;
  std::vector<bool> tables_by_servers;  // by table of the layout

  bool operator==(const ExchangeChoice&) const = default;
};

// Dense tensors among the workers, tables by servers.
ExchangeChoice choice_by_kind(const ParamLayout& layout);

// Who shares a link of this speed with whom.
struct ExchangeGround {
  struct Host {
    int workers = 0;
    int servers = 0;
  };
  std::vector<Host> hosts;        // at least one worker and one server, over all
  double seconds_per_byte = 0;    // of a host's link, each way
  double latency = 0;             // seconds, of each message
  bool sums_whole_tables = true;  // whether a small table may be summed as a whole among the workers
};

// What a step exchanges.
struct ExchangeDemand {
  struct Table {
    double rows = 0;  // that a worker touches in a step
    double width = 0;
    double all_rows = 0;
  };
  double dense_bytes = 0;
  std::vector<Table> tables;
};
// Returns the demand of a layout whose tables' rows are touched as `rows` says, or, where it is empty, as many as may
// be.
ExchangeDemand demand_of(const ParamLayout& layout, const std::vector<double>& rows);

// The servers' choices must be this part faster than what sums more among the workers.
inline constexpr double kServersMargin = 0.05;
// The most of a server's share of dense pushes that is under way at once.
inline constexpr double kPushWindowBytes = 8 * 1024 * 1024;

// Returns the seconds that a step's exchanges take under a choice, whose tables are those of the demand.
double exchange_seconds(const ExchangeGround& ground, const ExchangeDemand& demand, const ExchangeChoice& choice);
// Returns the choice that takes the least, as far as it is found by moving one table after the other. Equal arguments
// give equal choices on every machine of one kind.
ExchangeChoice choose_exchanges(const ExchangeGround& ground, const ExchangeDemand& demand);

// Returns, for example, "dense by workers; users by servers; items by servers (1.2 ms a step; all by workers 1.5 ms,
// all by servers 1.4 ms)".
std::string describe(const ExchangeChoice& choice, const ParamLayout& layout, const ExchangeGround& ground,
                     const ExchangeDemand& demand);

}  // namespace syncopate
