// A linear regression with a loop of its own, by gradients of several processes: ./train allreduce|ps [STEPS]
#include <syncopate/syncopate.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

namespace sy = syncopate::api;

constexpr std::size_t kInputs = 16, kBatch = 32;

int failed(const sy::Status& status) {
  if (const sy::PeerLost* lost = status.lost()) std::fprintf(stderr, "lost: rank %d\n", lost->rank);
  std::fprintf(stderr, "train: %s\n", status.message().c_str());
  return 1;
}

int main(int argc, char** argv) {
  const bool has_servers = argc > 1 && std::string_view(argv[1]) == "ps";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 200;
  sy::Result<sy::Job> job = sy::init();
  if (!job.ok()) return failed(job.status());

  sy::ParamLayout layout;
  const std::size_t slope = layout.add("slope", {kInputs});
  const std::size_t offset = layout.add("offset", {1});
  sy::StrategyOptions options;
  options.mode = has_servers ? sy::Mode::kParameterServers : sy::Mode::kAllReduce;
  options.optimizer.rule = "momentum";
  sy::Result<sy::Strategy> strategy = job->connect(layout, options);
  if (!strategy.ok()) return failed(strategy.status());
  if (sy::Status joined = strategy->join(); !joined.ok()) return failed(joined);  // all begin with rank 0's zeros

  std::mt19937 random(static_cast<unsigned>(1 + job->rank()));  // each rank has data of its own
  std::normal_distribution<float> normal;
  float loss = 0;
  for (int step = 0; step < steps; ++step) {
    strategy->begin_step(0.02);
    const std::span<float> w = strategy->weights(slope), dw = strategy->gradients(slope);
    const std::span<float> b = strategy->weights(offset), db = strategy->gradients(offset);
    std::vector<float> sum(kInputs + 1);
    loss = 0;
    for (std::size_t sample = 0; sample < kBatch; ++sample) {
      float x[kInputs], error = b[0] - 3;  // what is to be found: slopes 1, 2, 3 ... and 3
      for (std::size_t i = 0; i < kInputs; ++i) {
        x[i] = normal(random);
        error += (w[i] - static_cast<float>(i + 1)) * x[i];
      }
      loss += error * error / kBatch;
      for (std::size_t i = 0; i < kInputs; ++i) sum[i] += 2 * error * x[i] / kBatch;
      sum[kInputs] += 2 * error / kBatch;
    }
    db[0] = sum[kInputs];
    strategy->gradient_ready(offset);  // what is ready may travel
    for (std::size_t i = 0; i < kInputs; ++i) dw[i] = sum[i];
    strategy->gradient_ready(slope);
    if (const auto stats = strategy->finish_step(); !stats.ok()) return failed(stats.status());
    if (job->rank() == 0 && step % 50 == 0) {
      std::printf("step %d: loss %g\n", step, loss);
      std::fflush(stdout);
    }
  }
  if (sy::Status left = strategy->leave(); !left.ok()) return failed(left);
  if (sy::Status mean = job->collective().sum({&loss, 1}, 1.0f / static_cast<float>(job->size())); !mean.ok()) {
    return failed(mean);
  }
  if (job->rank() == 0) std::printf("end: mean loss %g, offset %.9g\n", loss, strategy->weights(offset)[0]);
  if (sy::Status left = job->leave(); !left.ok()) return failed(left);
}
