// Syncopate for a training loop of your own: allreduce, or parameter servers. docs/cpp_library.md shows a whole
// program.
//
//   Result<Job> job = init();                        every rank; RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
//   Result<Strategy> strategy = job->connect(layout, {.mode = Mode::kParameterServers});
//   ... initial weights into strategy->weights(i), on rank 0
//   strategy->join();
//   repeat:
//     strategy->begin_step(rate);
//     ... gradients into strategy->gradients(i); strategy->gradient_ready(i)
//     strategy->finish_step();                       the next weights are in strategy->weights(i)
//   strategy->leave(); job->leave();
//
// Nothing here throws an exception of its own: what can fail returns a Status. After a failure of a Strategy only its
// destructor may follow. Objects are for one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#define SYNCOPATE_EXPORT __attribute__((visibility("default")))
#define SYNCOPATE_HIDDEN __attribute__((visibility("hidden")))

namespace syncopate::api {

enum class Code {
  kOk,
  kInvalidArgument,  // a call that cannot work; the message says what would
  kPeerLost,         // a rank or a server is gone, or has not come in time
  kFailed,           // anything else: no memory, no descriptor, a port that is taken
};

// Who was waited for in vain, and what for.
struct PeerLost {
  int rank = -1;           // -1: a server, or unknown
  std::string process;     // "rank 1", "server 0"; empty if unknown
  int pid = 0;             // 0 if unknown
  std::string host;        // its name
  std::string operation;   // "finishing a step"
  std::int64_t step = -1;  // -1 outside of steps
  bool has_ended = false;  // false: it may be alive, and has not come in time
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  Status(PeerLost lost, std::string message)
      : code_(Code::kPeerLost), message_(std::move(message)), lost_(std::move(lost)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  // For people: what was wrong, with the value, and what would be right. Empty if ok.
  const std::string& message() const { return message_; }
  // Where the code is kPeerLost; else null.
  const PeerLost* lost() const { return lost_ ? &*lost_ : nullptr; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
  std::optional<PeerLost> lost_;
};

// Either a T or the Status that explains why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Status status) : state_(std::move(status)) {}

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  // Require ok().
  T& operator*() { return std::get<T>(state_); }
  T* operator->() { return &std::get<T>(state_); }

 private:
  std::variant<T, Status> state_;
};

// The tensors of a model, in float32, the same on all ranks. Begin with those whose gradients are ready last: a step's
// gradients travel from the end.
class ParamLayout {
 public:
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;  // each at least 1; empty for a single number
  };

  // Returns the tensor's number, from 0.
  std::size_t add(std::string name, std::vector<std::int64_t> shape) {
    tensors_.push_back({std::move(name), std::move(shape)});
    return tensors_.size() - 1;
  }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

enum class Mode { kAllReduce, kParameterServers };

// An update rule, and its numbers, each with its usual value where none is given; none that the rule does not have.
struct Optimizer {
  // sgd, momentum, nesterov, adam, adamw, adagrad, ftrl, rmsprop, adadelta, adamax, radam
  std::string rule = "sgd";
  std::optional<double> momentum = {};
  std::optional<double> beta1 = {};
  std::optional<double> beta2 = {};
  std::optional<double> rho = {};  // of rmsprop and adadelta: what means of squares keep
  std::optional<double> epsilon = {};
  std::optional<double> weight_decay = {};
  std::optional<double> initial_accumulator = {};
  std::optional<double> l1 = {}, l2 = {}, beta = {};  // of ftrl, which has one learning rate in all steps
};

// Alike on all ranks; what means nothing beside the others is refused.
struct StrategyOptions {
  Mode mode = Mode::kAllReduce;
  Optimizer optimizer = {};
  std::string consistency = "sync";  // under servers: sync, async, bounded:4, softsync:2, local-sgd:8, easgd:8
  int servers = 1;                   // under servers: 1 to 1024; the lowest rank of each host starts its part of them
  std::string update = {};           // under allreduce: own; sharded: each rank that of a part (empty: own)
  std::string compress = {};         // of gradients: fp16, bf16, int8, sign, topk:0.01, randomk:0.01, powersgd:4
  // When a rank's own gradient is NaN or infinite: go-on says so once on the standard error, with rank, step and
  // tensor; stop fails its finish_step, and nobody else gets that gradient.
  std::string on_nan = {};          // stop, go-on; empty: go-on
  std::size_t bucket_bytes = 0;     // what travels at once; 0: 1 MiB, under servers 256 KiB
  std::string server_program = {};  // the path of syncopate-server; empty: the one that was installed with the library
};

// What a step's synchronisation has cost.
struct StepStats {
  double wait_seconds = 0;  // that the caller waited in finish_step
  std::int64_t bytes_out = 0;
  std::int64_t bytes_in = 0;
  double staleness = 0;  // the mean, in updates; 0 in synchronous modes
};

// Gradients in, next weights out. Weights and gradients lie in its memory, which is valid as long as it is.
class SYNCOPATE_EXPORT Strategy {
 public:
  Strategy(Strategy&& other) noexcept;
  Strategy& operator=(Strategy&& other) noexcept;
  ~Strategy();

  // The elements of a tensor, row by row. Requires a number that ParamLayout::add has returned.
  std::span<float> weights(std::size_t tensor);
  std::span<float> gradients(std::size_t tensor);

  // Before it, rank 0 puts the initial weights in place; after it, all ranks have them.
  Status join();

  // The rate is finite, at least 0, and the same on all ranks in each step: finish_step says so where it is not.
  void begin_step(double learning_rate);
  // The gradient of `tensor` is in gradients(tensor), and is left alone until finish_step has returned. Once a step for
  // each tensor, in any order. Does not wait: what is wrong, finish_step says.
  void gradient_ready(std::size_t tensor);
  // Returns once the weights are those of the next step.
  Result<StepStats> finish_step();

  // After the last step: all ranks agree to stop, and have the same weights. Servers end.
  Status leave();

 private:
  friend class Job;
  struct SYNCOPATE_HIDDEN Impl;
  explicit Strategy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Operations of all ranks, which all make in the same order with as many elements. Each returns once it is done.
class SYNCOPATE_EXPORT Collective {
 public:
  Collective(Collective&& other) noexcept;
  Collective& operator=(Collective&& other) noexcept;
  ~Collective();

  // Leaves scale · (the sum over all ranks) in `values`, in the same bits on each; 1/size makes it the mean.
  Status sum(std::span<float> values, float scale = 1);
  // Leaves rank `root`'s bytes on all.
  Status broadcast(std::span<std::byte> bytes, int root = 0);
  Status broadcast(std::span<float> values, int root = 0) { return broadcast(std::as_writable_bytes(values), root); }
  Status barrier();

 private:
  friend class Job;
  struct SYNCOPATE_HIDDEN Impl;
  explicit Collective(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

enum class Wire { kSharedMemory, kSockets };

// What is not given is taken from the environment, as torchrun, mpirun, srun and run_experiment set it. A process that
// has neither is a job of its own.
struct JobOptions {
  std::optional<int> rank = {};   // as torchrun (RANK), mpirun or srun say it
  std::optional<int> size = {};   // as they say it, too
  std::string address = {};       // of rank 0, "127.0.0.1:29500", which no other program has; MASTER_ADDR:MASTER_PORT
  std::optional<Wire> wire = {};  // shared memory on one host, sockets between several
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  // of each wait for another rank
  // For ranks on several hosts:
  std::string secret_file = {};  // 32 random bytes at least, the same on all hosts; SYNCOPATE_SECRET_FILE
  std::string own_address = {};  // by which the others reach this host; SYNCOPATE_ADDRESS, or that of the way to rank 0
};

// The ranks of a job, connected. Strategies may outlive it. One that ends without leave() counts as lost.
class SYNCOPATE_EXPORT Job {
 public:
  Job(Job&& other) noexcept;
  Job& operator=(Job&& other) noexcept;
  ~Job();

  int rank() const;
  int size() const;
  Collective& collective();

  // An operation of all ranks. Parameter servers live as long as the strategy of the rank that has started them, and as
  // the thread that has made it. Fails with invalid argument, naming a rank, if ranks differ.
  Result<Strategy> connect(const ParamLayout& layout, const StrategyOptions& options = {});

  // Waits for all ranks. Afterwards each may end, and nobody is told.
  Status leave();

 private:
  friend Result<Job> init(const JobOptions& options);
  struct SYNCOPATE_HIDDEN Impl;
  static Result<Job> join(const JobOptions& options);
  explicit Job(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Connects this process with the others of its job, each of which calls it.
SYNCOPATE_EXPORT Result<Job> init(const JobOptions& options = {});

}  // namespace syncopate::api
