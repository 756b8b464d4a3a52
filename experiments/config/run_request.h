// RunRequest: what a person has asked for. It says nothing of what was left open; resolve() (resolution.h) settles
// that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "experiments/config/run_settings.h"

namespace syncopate::experiments {

// A member without a value was not given. The comment says what then applies.
struct RunRequest : RunSettings {
  std::optional<int> workers;                   // 1 under local, one for each slot of the hosts, else 2
  std::optional<TransportKind> transport;       // shared memory on one host; else tcp for ps and sockets for allreduce
  std::optional<DeviceKind> device;             // GPUs where there is one for each worker
  std::optional<std::string> listen_address;    // the one that the route to the other hosts uses
  std::optional<double> elastic_alpha;          // 0.9 / workers
  std::optional<LinkShape> inside;              // that of the described cluster, or usual_link_inside()
  std::optional<ComputeModel> compute;          // that of the described cluster, or a profile's own times, or solo
  std::optional<ProcessingModel> processing;    // that of the described cluster; else solo if computing is, or none
  std::optional<ps::ShardingPolicy> sharding;   // whole tensors if the optimizer needs these, else balanced
  std::optional<std::int64_t> chunk_bytes;      // usual_chunk_bytes(transport)
  std::optional<CollectiveKind> collective;     // NCCL on GPUs, direct in shared memory, else by size
  std::optional<double> learning_rate;          // the usual one of the optimizer
  std::optional<int> batch_size;                // the worker's part of the global batch size, or kUsualBatchSize
  std::optional<int> warmup_steps;              // kUsualWarmupSteps, or half of the steps if these are fewer
  std::optional<double> stall_warning_seconds;  // usual_stall_warning_seconds(timeout_seconds)
  std::optional<std::string> output;            // results/, with the time and the mode in the name
};

inline constexpr int kUsualBatchSize = 64;  // samples per step and worker
inline constexpr int kUsualWarmupSteps = 10;

// Returns 5 s: longer than any step without a problem, and early enough for a person to read the warning before the
// verdict that half of the usual timeout brings. With a short timeout it returns a quarter of that.
double usual_stall_warning_seconds(double timeout_seconds);

// Returns 256 KiB for shared memory, so that updates and copies stay in a core's cache, and 1 MiB for ipc and tcp,
// where each message wakes the threads that move its bytes.
std::int64_t usual_chunk_bytes(TransportKind transport);

// Return the number of workers, the samples per step of each, its warm-up, and the learning rate that the request comes
// to. The batch of one worker is the integral part of a global batch size that is not a multiple of the workers, which
// check() refuses.
int workers_of(const RunRequest& request);
int batch_size_of(const RunRequest& request);
int warmup_steps_of(const RunRequest& request);
double learning_rate_of(const RunRequest& request);

}  // namespace syncopate::experiments
