// How long gradients take over a network, in closed form. Pure.
//
// The model is that of every formula here: a message costs alpha seconds, and each byte its share of a link that is
// full duplex. `bytes` is what one worker has to agree on. Times are in seconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncopate::prediction {

struct Network {
  double alpha = 0;             // seconds for each message, at least 0
  double bytes_per_second = 0;  // of a host's link in each direction, above 0
  int workers = 1;              // at least 1
  int workers_per_host = 1;     // at least 1

  int hosts() const { return (workers + workers_per_host - 1) / workers_per_host; }
};

// 2(p-1) alpha + 2(p-1) S / (pB), with p ranks: reduce-scatter, then allgather, a pth of the bytes in each message. All
// ranks count, since on a host only the last has its neighbour on another; on one host alone no byte goes over a link
// (Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 4.1; nccl-tests, doc/PERFORMANCE.md).
double ring_seconds(double bytes, const Network& network);

// 2 ceil(log2 p) (alpha + S/B): up a binomial tree and down again, each message whole (Thakur et al., "Optimization of
// Collective Communication Operations in MPICH", 2005). Ranks 2^k to 2^(k+1)-1 send to those 2^k below. With w of them
// a host, numbered host by host, all of a host share its link where 2^k is w or more, which makes w S/B of S/B; what
// stays on a host costs no more than its alpha.
double tree_seconds(double bytes, const Network& network);

// 2 log2(p) alpha + 2(p-1) S / (pB) for p ranks, a power of two: reduce-scatter by recursive halving, then allgather by
// recursive doubling (Goyal et al. 2017, section 4.1; Thakur et al. 2005). Other p count as the largest power below,
// and 2 (alpha + S/B) more: each rank beyond it gives all it has to another one, and gets the sum. The nearest ranks
// share the largest parts: in the round of distance d each rank sends S/(2d). Of the ranks of a host those share its
// link whose partner is on another one; with w a host, w a power of two, all where d is w or more: 2 (p-w) S / (pB).
double halving_doubling_seconds(double bytes, const Network& network);

// 2(h-1) alpha + 2(h-1) S / (hB) for h hosts: the ranks of a host add their gradients up first, each one a part, and
// the rings of these parts, which run at the same time, share the host's link. What stays on a host costs nothing.
double hierarchical_seconds(double bytes, const Network& network);

// BytePS's optimum for n hosts, whose workers add their gradients up first, and k hosts with a server alone (Jiang et
// al., "A Unified Architecture for Accelerating Distributed DNN Training", OSDI 2020, section 3): 2n(n-1) M / ((n^2 +
// kn - 2k) B). It takes the parts of M below, and is 2(n-1) M / (nB) for k = 0 and M/B for k = n. For k > n all bytes
// are on the k, which takes M/B. Two messages, the push and the pull, cost alpha each. k is at least 0. One host alone
// needs no time.
double byteps_seconds(double bytes, const Network& network, int server_hosts);

struct BytepsParts {
  double on_server_host = 0;  // 2(n-1) / (n^2 + kn - 2k) of all bytes, on each of k hosts
  double on_worker_host = 0;  // (n-k) / (n^2 + kn - 2k) of all bytes, on each of n hosts
};

// 0 <= k <= n, n >= 2.
BytepsParts byteps_parts(int worker_hosts, int server_hosts);

// Whole variables on servers as TensorFlow's GreedyLoadBalancingStrategy places them by bytes
// (tensorflow/contrib/training, device_setter.py): each, in the order of creation, on the server that has least so far,
// the first of equals. Returns the server of each variable.
std::vector<int> place_greedily(std::span<const double> bytes, int servers);

}  // namespace syncopate::prediction
