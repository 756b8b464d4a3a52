// How long a synchronous training step takes, in closed form: no event is simulated, and nothing is measured. Pure.
//
// A step alone takes `compute` seconds, divided among passes and tensors as timed_model.h says. Gradients become ready
// in reverse order.
//
// Allreduce: a bucket is reduced once its last gradient is ready and the bucket before it is done; the step ends with
// the last of them and with the backward pass. With `overlap` off, the first bucket waits for the backward pass.
// Where workers have a share of the state each, a bucket's first half, its reduce-scatter, goes like this; the second
// halves, which gather the new weights, follow one after the other while the next forward pass computes, which waits
// for each bucket's; with `overlap` off, behind all of that. At stage 3 they are in their place twice: each pass
// gathers a layer's weights while it computes with layers before, up to some buckets ahead, and backward begins with
// those that forward has ended with.
//
// Parameter servers, by their protocol. A server's link carries what all workers on other hosts want of it, and a
// host's link what its workers send and receive; a server adds and answers in no time of its own.
//   kAnswerPushes   Each gradient is pushed as it becomes ready, in chunks of 1 MiB a server; once all workers have
//   pushed
//                   a chunk, its server answers with its next weights, while others are still pushed; the step ends
//                   when the last answer is there. On separate servers, answers have the links' other direction to
//                   themselves; with servers on the workers' hosts, pushes and answers share each direction. It is what
//                   this project's servers do.
//   kPullThenPush   At the step's beginning every worker pulls all variables, in forward order, and a layer waits for
//                   its own; each gradient is pushed as it becomes ready; the step ends when the busiest server has
//                   all, which is the barrier of synchronous training. It is what TensorFlow's do.
// Where plans are aggregated, servers and links see one worker a host; what hosts sum takes no time.
// With `overlap` off, all is pushed behind the backward pass, and pulled before the forward pass. (The bound without
// overlap is then max(M/B, WM/(KB)) each way for evenly sharded separate servers, and 2(p-1) M / (pB) for colocated
// ones: Jiang et al., OSDI 2020, section 2.2; with spare ones besides, byteps_seconds().)
#pragma once

#include <span>
#include <vector>

#include "common/status.h"
#include "prediction/communication_cost.h"
#include "prediction/model_profile.h"

namespace syncopate::prediction {

enum class Exchange { kRing, kTree, kHalvingDoubling, kHierarchical, kServers, kByteps };
enum class ServerProtocol { kAnswerPushes, kPullThenPush };
enum class Sharding { kEven, kWhole };  // each tensor cut into equal parts, or each on one server (place_greedily)

struct ExchangePlan {
  Exchange exchange = Exchange::kRing;
  bool overlap = true;
  double bucket_bytes = 0;  // all but servers: gradients are gathered up to so many, a larger one by itself; 0: each
  int servers = 1;          // servers: at least 1. byteps: hosts with a server alone, at least 0
  Sharding sharding = Sharding::kEven;
  bool colocated = false;   // servers: on the workers' hosts, one each on the first; else on hosts of their own
  int spare_servers = 0;    // with an even, colocated one on each of more hosts: on hosts of their own (byteps_parts)
  bool aggregated = false;  // synchronous servers: one worker of each host pushes the sum of all of its host
  ServerProtocol protocol = ServerProtocol::kAnswerPushes;
  int stage = 0;           // ring: of what workers have a share each (ZeRO's stages 1 to 3); 0: of nothing
  double ahead_bytes = 0;  // stage 3: layers are gathered ahead until they have as many; at least the next one
};

struct StepPrediction {
  double step = 0;           // seconds
  double exposed = 0;        // the part of it that is not `compute`
  double communication = 0;  // what the busiest link, or all buckets one after another, would take by themselves
};

// `compute` is what a step of one worker's batch takes without any exchange, above 0. Fails with invalid argument for
// values out of range, and for more colocated servers than hosts.
Result<StepPrediction> predict_step(const ModelProfile& profile, double compute, const Network& network,
                                    const ExchangePlan& plan);

// Returns how long an allreduce of so many bytes takes by the plan's exchange, which is not servers.
double exchange_seconds(double bytes, const Network& network, const ExchangePlan& plan);

// Returns the bytes of each bucket of gradients, in backward order, of tensors of so many bytes in forward order.
std::vector<double> bucket_sizes(std::span<const double> tensors, double bucket_bytes);

// Returns the error that predict_step() fails with, without predicting anything.
Status check_step(const ModelProfile& profile, double compute, const Network& network, const ExchangePlan& plan);

}  // namespace syncopate::prediction
