#include "tests/schedules/drawn_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "common/random.h"
#include "ps/policy/consistency.h"

namespace syncopate::experiments {
namespace {

class FlagDrawing {
 public:
  FlagDrawing(std::uint64_t seed, std::uint64_t attempt) : random_(seed, attempt) {}

  std::vector<std::string> draw(std::uint64_t seed) {
    add("cluster", "simulated");
    const double mode = random_.uniform();
    mode_ = mode < 0.04 ? "local" : mode < 0.56 ? "ps" : "allreduce";
    add("mode", mode_);
    draw_job(seed);
    draw_time();
    if (mode_ == "ps") draw_servers();
    if (mode_ == "allreduce") draw_allreduce();
    if (mode_ != "local") draw_wire();
    draw_faults();
    if (mode_ != "local" && chance(0.1)) add("shard", "labels");
    return std::move(flags_);
  }

 private:
  void add(std::string_view name, const auto& value) { flags_.push_back(fmt::format("--{}={}", name, value)); }
  void add_flag(std::string_view name) { flags_.push_back(fmt::format("--{}", name)); }
  bool chance(double probability) { return random_.uniform() < probability; }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most - least + 1)));
  }
  template <typename Value>
  Value one_of(std::initializer_list<Value> values) {
    return values.begin()[random_.below(values.size())];
  }
  std::string_view one_of(std::initializer_list<std::string_view> values) { return one_of<std::string_view>(values); }

  void draw_job(std::uint64_t seed) {
    if (mode_ != "local") {
      workers_ = between(1, 5);
      add("workers", workers_);
    }
    steps_ = between(4, 24);
    add("steps", steps_);
    add("warmup-steps", 0);
    add("train-samples", 64);
    add("test-samples", 16);
    add("batch-size", between(1, 4));
    add("model", chance(0.7) ? "softmax" : "mlp:784-8-10");
    add("seed", seed);
    if (chance(0.5)) {
      optimizer_ = one_of({"sgd", "momentum", "adagrad"});
      add("optimizer", optimizer_);
    }
    if (chance(0.2)) add("evaluate-every", fmt::format("{}", between(2, 10)));
  }

  void draw_time() {
    compute_ms_ = one_of<std::int64_t>({1, 3, 10, 30});
    add("compute", fmt::format("{}ms", compute_ms_));
    const bool slows = chance(0.25);
    // Where workers meet after some steps, the others wait for all that a slow one has fallen behind.
    timeout_ms_ = slows ? 4000 : one_of<std::int64_t>({1000, 2000, 4000});
    add("timeout", static_cast<double>(timeout_ms_) / 1e3);
    if (!slows) return;
    const std::string rank = chance(0.2) ? "all" : fmt::to_string(between(0, workers_ - 1));
    const std::string how = chance(0.5)   ? fmt::format("{}x", between(2, 5))
                            : chance(0.5) ? fmt::format("+{}", between(1, 40))
                                          : fmt::format("p0.2:+{}", between(10, 100));
    add("straggler", rank + ":" + how);
  }

  void draw_servers() {
    servers_ = between(1, 3);
    add("servers", servers_);
    if (chance(0.2)) add("shards-per-server", 2);
    draw_consistency();
    if (chance(0.4)) {
      replicas_ = true;
      add("replicas", 1);
    }
    if (chance(0.4)) add("respawn", one_of({"0", "0.02", "0.1", "0.5"}));
    if (chance(0.5)) add("chunk-bytes", one_of<int>({4096, 8192, 16384}));
    if (chance(0.1)) add("sharding", one_of({"tensor", "hash", "least-loaded", "whole"}));
    if (chance(0.12)) add_flag("overlap-forward");
    if (chance(0.08)) {
      add("compress", one_of({"int8", "topk:0.1", "fp16"}));
      if (chance(0.3)) add("compress-answers", "off");
    }
  }

  void draw_consistency() {
    const std::span<const ps::ConsistencyTraits> kinds = ps::consistency_traits();
    const ps::ConsistencyTraits& kind = chance(0.25) ? kinds.front() : kinds[random_.below(kinds.size())];
    std::string text(kind.name);
    std::int64_t least = 0;
    for (const ps::ConsistencyParameter& parameter : kind.parameters) {
      if (parameter.name.empty()) break;
      least = std::max(least, parameter.least) + between(0, 3);
      text += fmt::format(":{}", least);
    }
    add("consistency", text);
    if (kind.backup_workers && chance(0.3)) add("backup-workers", between(1, 2));
    if (kind.shares_work() && chance(0.3)) add("work", "quota");
    if (kind.pipeline && chance(0.2)) add("pipeline-depth", between(1, 3));
    if (chance(0.05)) add("staleness-lr", "divide");
    if (chance(0.05)) add("delay-compensation", "0.04");
  }

  void draw_allreduce() {
    add("collective", one_of({"ring", "tree", "halving-doubling", "doubling", "binomial-tree", "direct", "auto"}));
    if (chance(0.3)) add("segment-bytes", one_of<int>({1024, 4096, 16384}));
    if (chance(0.25)) {
      if (chance(0.7)) add("sync-every", between(2, 6));
      if (!chance(0.5)) return;
      if (chance(0.5)) return add_flag("gossip");
      add("gossip", "async");
      if (chance(0.3)) add("work", "quota");
      return;
    }
    if (chance(0.3)) add("overlap", "off");
    if (chance(0.4)) add("bucket-bytes", one_of({"1024", "4096", "16384", "auto"}));
    if (chance(0.1)) add("compress", one_of({"int8", "topk:0.1", "sign", "randomk:0.1", "powersgd:2", "bf16"}));
    if (chance(0.7)) {
      add_flag("elastic");
      if (chance(0.6)) add("respawn", one_of({"0", "0.02", "0.1", "0.5"}));
    }
  }

  void draw_wire() {
    if (chance(0.5)) add("shape", one_of({"1gbit+100us", "100mbit+1ms", "20mbit+100us", "10gbit+20ms"}));
    if (chance(0.4)) add("network", one_of({"fifo", "fluid"}));
  }

  void draw_faults() {
    const std::int64_t count = between(0, 4);
    for (std::int64_t i = 0; i < count; ++i) add("fault", draw_fault());
  }

  std::string draw_fault() {
    if (workers_ > 1 && chance(0.06)) return fmt::format("churn:{}ms", between(20, 400));
    if (chance(0.06)) return fmt::format("random:{}{}", between(0, 1000000), chance(0.5) ? ":any" : "");
    std::string_view kind = chance(0.45) ? "kill" : one_of({"stop", "cut", "delay", "duplicate", "reorder"});
    const std::string target = draw_target();
    if (mode_ == "local" || target == "evaluator") kind = chance(0.5) ? "kill" : "stop";
    std::string fault = fmt::format("{}:{}@{}", kind, target, draw_when());
    if (kind != "kill") fault += fmt::format("+{}ms", draw_length());
    return fault;
  }

  std::string draw_target() {
    if (chance(0.08)) return "evaluator";
    if (mode_ == "ps" && chance(0.45)) {
      if (replicas_ && chance(0.4)) return fmt::format("standby{}", between(0, servers_ - 1));
      return chance(0.1) ? std::string("any-server") : fmt::format("server{}", between(0, servers_ - 1));
    }
    return chance(0.1) ? std::string("any-worker") : fmt::format("worker{}", between(0, workers_ - 1));
  }

  // Seldom behind the end of training.
  std::string draw_when() {
    if (chance(0.6)) return fmt::format("step{}", chance(0.1) ? steps_ - 1 : between(0, steps_ - 1));
    return fmt::format("{}ms", between(1, std::max<std::int64_t>(2, steps_ * (compute_ms_ + 4) * 3 / 2)));
  }

  // Most are outlasted; some look like a silence, or end a wait.
  std::int64_t draw_length() {
    if (chance(0.6)) return between(1, timeout_ms_ / 8);
    return between(1, timeout_ms_ * 3 / 2);
  }

  Random random_;
  std::vector<std::string> flags_;
  std::string_view mode_;
  std::string_view optimizer_;
  std::int64_t workers_ = 1;
  std::int64_t servers_ = 0;
  bool replicas_ = false;
  std::int64_t steps_ = 0;
  std::int64_t compute_ms_ = 0;
  std::int64_t timeout_ms_ = 0;
};

}  // namespace

std::vector<std::string> draw_flags(std::uint64_t seed, std::uint64_t attempt) {
  return FlagDrawing(seed, attempt).draw(seed);
}

}  // namespace syncopate::experiments
