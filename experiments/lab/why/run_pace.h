// RunPace: what has to be known of a run, beside its steps, to say where its time went. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/server_figures.h"
#include "experiments/lab/report/machine_state.h"
#include "ps/group.h"
#include "worker/pipeline/pipeline_schedule.h"

namespace syncopate::experiments {

// The link of each process, or none is known.
struct PacedLink {
  double bytes_per_second = 0;  // of payload, each way
  double delay_ms = 0;          // one way
  std::string rate = {};        // as it was given, which counts what frames take, too: "25 Gb/s"
};

struct PacedPipeline {
  worker::PipelineSchedule schedule = worker::PipelineSchedule::kOneForwardOneBackward;
  int stages = 2;
  int microbatches = 1;
  int workers_a_stage = 1;  // neighbours
  int chunks = 1;           // of a stage
  // In which a link carries a microbatch's activations to the next chunk of the chain, by chunk; empty: not known.
  std::vector<double> to_next_ms = {};
  double delay_ms = 0;  // of a message besides
};

struct RunPace {
  std::string what;  // "ps sync, 4 workers, 2 servers"
  int workers = 1;
  double batch_size = 1;  // of a worker's step
  int warmup_steps = 0;   // of each worker, which are left out
  std::set<int> lost;     // workers that were lost for good: their steps count, but the run went on without them

  // A worker whose step is number s waits for the `quorum` first workers to have pushed number s - lead. Empty: no
  // worker waits for others, or which ones is not recorded.
  std::optional<std::int64_t> lead = 0;
  int quorum = 1;
  std::int64_t meets_every = 1;    // steps: workers exchange nothing between meetings
  bool waits_in_forward = false;   // for the weights of the step before
  bool optimizer_is_local = true;  // part of what a worker computes by itself
  bool pairs_wait = false;         // gossip: for partners, whose part in a wait is not recorded
  // Set where workers compute different layers, and wait for their neighbours in each microbatch: that one computes
  // less than another makes no worker fast, and the ideal step is the mean of all.
  // Set where a step waits for others' computing within its messages, which part of it is not recorded: how it would
  // wait less for them.
  std::string to_wait_less = {};
  std::optional<PacedPipeline> pipeline = {};

  // Parameter servers; none otherwise.
  int servers = 0;
  bool has_colocated_servers = false;
  std::vector<double> server_parts = {};  // of the weights, which each is to hold; empty: equal ones
  ps::PsGroup group = {};
  bool compresses = false;                       // gradients, or what servers answer
  std::map<int, ServerFigures> of_servers = {};  // of the whole run; empty: not recorded

  std::optional<PacedLink> link = {};
  // What the parts of an allreduce that follow each other need of the link in a step, by its schedule; 0: not known.
  double schedule_link_ms = 0;
  double delays_a_step = 0;  // one-way delays that follow each other in an exchange, if no two buckets overlap
  // The part of the exposed exchange that twice as many servers leave, or colocated ones on hosts of their own, by the
  // closed form; none if it does not hold here.
  std::optional<double> exchange_left_by_servers = {};
  std::optional<double> exchange_left_by_link = {};  // the same of links of twice the rate
  bool is_simulated = false;
  // Processes share links of hosts, and which of their bytes cross these is not known: `link` is empty.
  bool shares_links = false;
  // They share them, and the busiest host's link carries so many times the bytes of a worker and of a server each way.
  struct HostLink {
    double of_workers = 0;
    double of_servers = 0;
  };
  std::optional<HostLink> host_link = {};
  // How many times what a rack's hosts can send is what its line carries; none: all hosts are on one switch.
  std::optional<double> oversubscription = {};
  bool on_device = false;       // GPUs compute, and their clocks measure it
  bool captures_steps = false;  // a GPU is given each step as one piece
  bool is_own_program = false;  // of the person's own, which takes few of our flags
  // Names of options that this run would refuse, or that would change nothing: no remedy names them.
  std::set<std::string> refused = {};
  std::optional<MachineLoad> machine = {};
  int processes = 0;  // workers and servers on this host's cores

  // Whether a worker's exchange goes on beside others', since it does not wait for them in each step.
  bool exchanges_alone() const { return !lead || *lead > 0; }
};

}  // namespace syncopate::experiments
