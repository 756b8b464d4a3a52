// What the coordinator of a large run costs: real connections (tcp, CURVE), the real control thread of a worker behind
// each, and nothing that trains. Each worker sends heartbeats, compares its clock and records steps as it does in a
// run; the results are written as in a run. All steps end at the same time, as synchronous ones do.
//
//   coordinator_bench [--workers=64,256,512] [--step-ms=100,1000] [--seconds=5]
//
// Prints, for each case: until all had connected, from the launch; the CPU time of the coordinator's thread and of all
// threads of its process, as a share of one core; how long an answer takes (a question about the time, every 20 ms);
// how old records are when they arrive; bytes a second on the link, in and out, as the kernel counts payload and
// segments; and peak memory.
#include <arpa/inet.h>
#include <dirent.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "common/os/resource_limits.h"
#include "experiments/cluster/control/control_client.h"
#include "experiments/cluster/control/zmq_control_line.h"
#include "experiments/cluster/coordinator/host_runtime.h"
#include "experiments/cluster/process/shared_keys.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/run/recorder.h"
#include "tests/experiments/cluster/control/peer.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;
using std::literals::chrono_literals::operator""us;

constexpr const char* kRun = "bench";
constexpr int kOfOneCrowd = 128;      // workers whose connections one process has
constexpr double kSegmentBytes = 66;  // Ethernet, IPv4 and TCP with time stamps, without preamble and gap
constexpr Duration kAskEvery = 20ms;
constexpr Duration kPatience = 120s;

void exit_unless_ok(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "coordinator_bench: {}\n", status.message());
  std::_Exit(1);
}

double cpu_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double percentile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

// What has passed through all tcp connections of this process.
struct LinkBytes {
  double in = 0;
  double out = 0;
};

LinkBytes link_bytes() {
  LinkBytes bytes;
  DIR* const folder = opendir("/proc/self/fd");
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (getsockopt(std::atoi(entry->d_name), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    bytes.in += static_cast<double>(info.tcpi_bytes_received) + kSegmentBytes * info.tcpi_segs_in;
    bytes.out += static_cast<double>(info.tcpi_bytes_acked) + kSegmentBytes * info.tcpi_segs_out;
  }
  closedir(folder);
  return bytes;
}

// A step whose parts differ from those of the last as much as measured ones do.
StepRecord step_of(int rank, std::int64_t step, Duration length, TimePoint end) {
  const auto noise = [&](std::int64_t of) { return Duration((rank * 7919 + step * 104729 + of * 1299709) % 999983); };
  StepRecord record{.step = step, .epoch = 0, .position = step, .end = end, .total = length};
  record.data = 20us + noise(1) / 100;
  record.forward = length / 5 + noise(2) / 10;
  record.backward = length / 3 + noise(3) / 10;
  record.core_wait = noise(4) / 100;
  record.compute_core_wait = noise(5) / 100;
  record.sync = {.exposed_wait = length / 4 + noise(6), .communication = length / 3 + noise(7)};
  record.sync.optimizer = 100us + noise(8) / 100;
  record.sync.bytes_out = record.sync.bytes_in = 1628224;
  record.samples = 64;
  record.loss = 2.3 / (1 + static_cast<double>(noise(9).count()) * 1e-6);
  record.accuracy = static_cast<double>(noise(10).count() % 65) / 64;
  return record;
}

// One worker's connection, and what it would be doing.
struct FakeWorker {
  FakeWorker(const std::string& address, const RunKeys& keys, int its_rank) : rank(its_rank) {
    const ProcessIdentity self{Role::kWorker, rank};
    activity.set("backward", 0);
    Result<std::unique_ptr<ControlClient>> made =
        ControlClient::connect({.address = address,
                                .run_id = kRun,
                                .self = self,
                                .make_line = zmq_control_line(address, keys, self),
                                .threads = os_threads()},
                               activity, SteadyClock().now() + kPatience);
    exit_unless_ok(made.status());
    client = std::move(*made);
    client->set_timeout(kPatience);
    heartbeats = client->on_heartbeat([this] {
      return allreduce::CollectiveState{
          .begun = 10 * steps,
          .last = {.name = "all_reduce", .bytes = 1048576, .step = steps, .bucket = 3, .buckets = 10},
          .under_way = true};
    });
    exit_unless_ok(client->join_membership(-1, SteadyClock().now() + kPatience).status());
    exit_unless_ok(client->ask_epoch(0, SteadyClock().now() + kPatience).status());
  }

  const int rank;
  Activity activity;
  std::atomic<std::int64_t> steps{0};
  std::unique_ptr<ControlClient> client;
  Subscription heartbeats;
};

// The process of some workers, until it is killed.
int be_crowd(const std::string& address, int first, int count, Duration step) {
  raise_descriptor_limit();
  const Result<SecretText> line = line_on_stdin(SteadyClock().now() + kPatience);
  exit_unless_ok(line.status());
  const Result<RunKeys> keys = RunKeys::parse(line->view());
  exit_unless_ok(keys.status());
  std::vector<std::unique_ptr<FakeWorker>> workers(static_cast<std::size_t>(count));
  {
    std::vector<std::jthread> starts;
    for (int i = 0; i < count; ++i) {
      starts.emplace_back(
          [&, i] { workers[static_cast<std::size_t>(i)] = std::make_unique<FakeWorker>(address, *keys, first + i); });
    }
  }
  for (TimePoint next = SteadyClock().now(); true; next += step) {
    std::this_thread::sleep_until(next);
    for (const auto& worker : workers) {
      const std::int64_t number = worker->steps++;
      worker->activity.set("backward", number);
      worker->client->add(step_of(worker->rank, number, step, SteadyClock().now()));
    }
  }
}

// Starts a child that does nothing for each process, as there would be an ssh, and the crowds that speak for them.
class Crowds final : public Launcher {
 public:
  explicit Crowds(Duration step) : step_(step) {}
  ~Crowds() override { kill_and_reap(crowds_); }

  Result<std::vector<StartedChild>> start(const JobPlan& plan, const LaunchOptions& options) override {
    std::vector<StartedChild> children;
    for (std::size_t i = 0; i < plan.processes.size(); ++i) {
      SYNCOPATE_ASSIGN_OR_RETURN(StartedChild child,
                                 start_child({"cat"}, {}, plan.processes[i].name(), "/dev/null", ""));
      child.process = i;
      children.push_back(std::move(child));
    }
    const int workers = count_of(plan, Role::kWorker);
    for (int first = 0; first < workers; first += kOfOneCrowd) {
      const std::vector<std::string> command{
          "/proc/self/exe", "--crowd=" + options.rendezvous, fmt::format("--first={}", first),
          fmt::format("--count={}", std::min(kOfOneCrowd, workers - first)), fmt::format("--step-ms={}", step_ / 1ms)};
      SYNCOPATE_ASSIGN_OR_RETURN(
          StartedChild crowd,
          start_child(command, {}, "crowd", options.log_directory + "/crowd.log", options.secret.view()));
      crowds_.push_back(std::move(crowd));
    }
    address_.set_value(options.rendezvous);
    return children;
  }
  Result<StartedChild> start_again(const JobPlan&, const LaunchOptions&, std::size_t, int) override {
    return Status::invalid_argument("nothing is started again");
  }
  std::string address() { return address_.get_future().get(); }

 private:
  const Duration step_;
  std::vector<StartedChild> crowds_;
  std::promise<std::string> address_;
};

// What the coordinator's thread notes of itself.
struct Sample {
  TimePoint time;
  double thread = 0;
  double process = 0;
  LinkBytes link;
};

Sample sample(TimePoint now) {
  return {now, cpu_seconds(CLOCK_THREAD_CPUTIME_ID), cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), link_bytes()};
}

// Records as a run does, and measures for some seconds from two seconds after training has begun.
class Measured final : public RunObserver {
 public:
  Measured(Recorder& recorder, Duration length) : recorder_(recorder), length_(length) {}

  void on_training_begins(TimePoint now) override {
    recorder_.on_training_begins(now);
    training = now;
  }
  void on_steps(int worker, std::span<const StepRecord> steps) override {
    recorder_.on_steps(worker, steps);
    if (!begin || end) return;
    const TimePoint now = SteadyClock().now();
    for (const StepRecord& step : steps) ages.push_back(seconds(now - step.end) * 1e3);
  }
  void on_evaluation(const EvaluationResult&) override {}
  void on_final_weights(std::span<const float>, std::span<const float>, const TableKeys&) override {}
  void on_worker_lost(int) override {}
  void on_worker_joined(int) override {}
  void on_fact(const std::string&, const std::string&) override {}
  void on_report(const std::string& line) override { fmt::print(stderr, "{}\n", line); }
  Status on_tick(TimePoint now) override {
    SYNCOPATE_RETURN_IF_ERROR(recorder_.on_tick(now));
    if (!training || now < *training + 2s) return {};
    if (!begin) begin = sample(now);
    if (now < begin->time + length_) return {};
    if (!end) end = sample(now);
    is_over = true;
    return Status::cancelled("measured");
  }

  std::optional<TimePoint> training;
  std::optional<Sample> begin, end;
  std::vector<double> ages;  // milliseconds
  std::atomic<bool> is_over = false;

 private:
  Recorder& recorder_;
  const Duration length_;
};

// Asks for the time until training is measured; milliseconds until each answer, from when it is being measured.
std::vector<double> ask(const std::string& address, const RunKeys& keys, const Measured& measured) {
  Peer peer(address, keys, {Role::kEvaluator, 0});
  peer.say_hello(kRun);
  std::vector<double> times;
  while (!measured.is_over) {
    const TimePoint asked = SteadyClock().now();
    control::ToCoordinator question;
    question.mutable_clock_question()->set_sent(asked.time_since_epoch().count());
    peer.say(question);
    while (!peer.hear().first.has_clock_answer()) {
    }
    times.push_back(seconds(SteadyClock().now() - asked) * 1e3);
    std::this_thread::sleep_until(asked + kAskEvery);
  }
  return times;
}

int measure(int workers, Duration step, Duration length) {
  raise_descriptor_limit();
  const testing_support::TemporaryFolder folder;
  RunRequest request;
  request.mode = Mode::kAllreduce;
  request.workers = workers;
  request.timeout_seconds = seconds(kPatience);
  request.output = folder.path() / "run";
  Result<ResolvedRun> config = resolve(request, {.device = DeviceKind::kCpu, .listen_address = "127.0.0.1"}, "");
  exit_unless_ok(config.status());
  const JobPlan plan = make_plan(*config, kRun, {.coordinator = "box", .hosts = {{"node1", workers, true}}});

  Result<ResultsWriter> results = ResultsWriter::create(*config, Environment{});
  exit_unless_ok(results.status());
  Console console(true);
  Recorder recorder(*config, {.steps_per_epoch = 100'000, .total_steps = 100'000}, *results, console);
  Measured measured(recorder, length);
  const RunKeys keys = *RunKeys::make();
  Interrupts interrupts;
  Crowds crowds(step);
  const Result<std::unique_ptr<ClusterRuntime>> runtime = make_host_runtime(
      plan, {.log_directory = folder.path(), .listen = {.keys = keys, .address = "127.0.0.1"}}, crowds, interrupts);
  exit_unless_ok(runtime.status());

  const TimePoint launch = SteadyClock().now();
  std::jthread coordinator(
      [&] { exit_unless_ok(coordinate(*config, plan, {.total_steps = 100'000}, **runtime, measured).status()); });
  std::vector<double> answers = ask(crowds.address(), keys, measured);
  coordinator.join();

  const Sample &begin = *measured.begin, &end = *measured.end;
  const double time = seconds(end.time - begin.time);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{:>7}  {:>7}  {:>9.1f}  {:>8.1f}  {:>8.1f}  {:>6.2f}  {:>6.2f}  {:>6.0f}  {:>6.0f}  {:>9.0f}  {:>7.0f}  "
      "{:>7.0f}  {:>6}\n",
      workers, step / 1ms, seconds(*measured.training - launch), 100 * (end.thread - begin.thread) / time,
      100 * (end.process - begin.process) / time, percentile(answers, 0.5), percentile(answers, 0.99),
      percentile(measured.ages, 0.5), percentile(measured.ages, 0.99), static_cast<double>(measured.ages.size()) / time,
      (end.link.in - begin.link.in) / time / 1e3, (end.link.out - begin.link.out) / time / 1e3, usage.ru_maxrss / 1024);
  return 0;
}

// Each case in a process of its own, whose memory is its own.
int measure_all(const std::string& program, const std::vector<int>& workers, const std::vector<int>& steps,
                double length) {
  fmt::print(
      "workers  step ms  connect s  thread %  process %  answer ms p50, p99  age ms p50, p99  records/s  in kB/s  "
      "out kB/s  MiB\n");
  std::fflush(stdout);
  for (const int count : workers) {
    for (const int step : steps) {
      const pid_t child = fork();
      if (child == 0) {
        execl(program.c_str(), program.c_str(), fmt::format("--workers={}", count).c_str(),
              fmt::format("--step-ms={}", step).c_str(), fmt::format("--seconds={}", length).c_str(), "--one", nullptr);
        std::_Exit(127);
      }
      int status = 0;
      if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace syncopate::experiments

int main(int argc, char** argv) {
  CLI::App app("What the coordinator of a large run costs.");
  std::vector<int> workers{64, 256, 512}, steps{100, 1000};
  double length = 5;
  bool is_one = false;
  std::string crowd;
  int first = 0, count = 0;
  app.add_option("--workers", workers, "how many workers, by case")->delimiter(',');
  app.add_option("--step-ms", steps, "milliseconds of a step, by case")->delimiter(',');
  app.add_option("--seconds", length, "how long each case is measured");
  app.add_flag("--one", is_one)->group("");
  app.add_option("--crowd", crowd)->group("");
  app.add_option("--first", first)->group("");
  app.add_option("--count", count)->group("");
  CLI11_PARSE(app, argc, argv);
  const std::chrono::milliseconds step(steps.front());
  if (!crowd.empty()) return syncopate::experiments::be_crowd(crowd, first, count, step);
  if (is_one) return syncopate::experiments::measure(workers.front(), step, syncopate::from_seconds(length));
  return syncopate::experiments::measure_all("/proc/self/exe", workers, steps, length);
}
