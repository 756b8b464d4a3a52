#include "experiments/lab/board/run_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/support/resolved.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::lines_of;
using std::literals::chrono_literals::operator""ms;

ResolvedRun run_of(int workers) {
  RunRequest request;
  request.mode = Mode::kPs;
  request.workers = workers;
  request.output = "results/a \"run\"\\";
  return resolved(request);
}

StepRecord sample_step() {
  StepRecord step;
  step.epoch = 2;
  step.total = 250ms;
  step.samples = 64;
  step.loss = 0.5;
  step.accuracy = 0.875;
  step.sync.exposed_wait = 125ms;
  step.sync.bytes_out = 1000;
  step.sync.bytes_in = 3000;
  step.sync.staleness_mean = 1.5;
  return step;
}

TEST(RunMetrics, AddUpWhatEachWorkerHasDone) {
  RunMetrics metrics(run_of(2));
  metrics.begin({});
  for (int i = 0; i < 3; ++i) metrics.add(1, sample_step());
  metrics.add(0, sample_step());
  const std::string text = metrics.text();
  for (const char* line :
       {"syncopate_training 1\n", "syncopate_epoch 2\n", "syncopate_samples_total 256\n",
        "syncopate_steps_total{worker=\"0\"} 1\n", "syncopate_steps_total{worker=\"1\"} 3\n",
        "syncopate_step_seconds_sum{worker=\"1\"} 0.75\n", "syncopate_step_seconds_count{worker=\"1\"} 3\n",
        "syncopate_wait_seconds_total{worker=\"1\"} 0.375\n", "syncopate_staleness_updates_sum{worker=\"1\"} 4.5\n",
        "syncopate_bytes_total{worker=\"1\",direction=\"out\"} 3000\n",
        "syncopate_bytes_total{worker=\"1\",direction=\"in\"} 9000\n", "syncopate_train_loss{worker=\"1\"} 0.5\n",
        "syncopate_train_accuracy{worker=\"1\"} 0.875\n", "syncopate_worker_up{worker=\"0\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("syncopate_test_accuracy"))) << "nothing was evaluated yet";
}

TEST(RunMetrics, ShowTheNewestEvaluation) {
  RunMetrics metrics(run_of(1));
  metrics.begin({});
  metrics.add(EvalRecord{.step = 10, .accuracy = 0.5, .loss = 2});
  metrics.add(EvalRecord{.step = 20,
                         .accuracy = 0.75,
                         .loss = std::numeric_limits<double>::quiet_NaN(),
                         .validation = {{.accuracy = 0.625, .loss = 0.25}}});
  const std::string text = metrics.text();
  for (const char* line :
       {"syncopate_evaluated_step 20\n", "syncopate_test_accuracy 0.75\n", "syncopate_test_loss NaN\n",
        "syncopate_validation_accuracy 0.625\n", "syncopate_validation_loss 0.25\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(RunMetrics, SayWhoIsThere) {
  RunMetrics metrics(run_of(3));
  EXPECT_THAT(metrics.text(), HasSubstr("syncopate_worker_up{worker=\"1\"} 0\n")) << "training has not begun";
  metrics.begin({});
  metrics.worker_lost(1);
  metrics.worker_lost(2);
  metrics.worker_joined(2);
  metrics.fault_injected();
  metrics.not_finite(7, "step 7: on worker 0 the loss is nan");
  std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("syncopate_worker_up{worker=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("syncopate_worker_up{worker=\"1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("syncopate_worker_up{worker=\"2\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("syncopate_worker_losses_total 2\n"));
  EXPECT_THAT(text, HasSubstr("syncopate_faults_total 1\n"));
  EXPECT_THAT(text, HasSubstr("syncopate_not_finite_total 1\n"));
  ASSERT_TRUE(metrics.end().ok());
  text = metrics.text();
  EXPECT_THAT(text, HasSubstr("syncopate_training 0\n"));
  EXPECT_THAT(text, HasSubstr("syncopate_worker_up{worker=\"0\"} 0\n"));
}

TEST(RunMetrics, GoOnCountingInTheNextRepeat) {
  RunMetrics metrics(run_of(1));
  for (int repeat = 0; repeat < 2; ++repeat) {
    metrics.begin({});
    metrics.add(0, sample_step());
    ASSERT_TRUE(metrics.end().ok());
  }
  EXPECT_THAT(metrics.text(), HasSubstr("syncopate_steps_total{worker=\"0\"} 2\n"));
  EXPECT_THAT(metrics.text(), HasSubstr("syncopate_repeat 2\n"));
}

// https://prometheus.io/docs/instrumenting/exposition_formats/: each family's HELP and TYPE come once, before its
// samples, and counters' names end with _total.
TEST(RunMetrics, AreInTheFormOfTheExposition) {
  RunMetrics metrics(run_of(2));
  metrics.begin({});
  metrics.add(0, sample_step());
  metrics.add(EvalRecord{.step = 20, .accuracy = 0.75, .validation = {{.accuracy = 0.625, .loss = 0.25}}});
  const std::string text = metrics.text();
  const std::regex sample("([a-z_]+)(\\{([a-z]+=\"([^\"\\\\\n]|\\\\[\\\\\"n])*\",?)*\\})? [-+0-9.e]+");
  std::map<std::string, std::string> types;
  std::string family, help;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("# HELP ")) {
      help = line.substr(7, line.find(' ', 7) - 7);
    } else if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_EQ(family, help);
      EXPECT_TRUE(types.emplace(family, line.substr(line.rfind(' ') + 1)).second) << family;
      EXPECT_EQ(types[family] == "counter", family.ends_with("_total")) << family;
    } else {
      std::smatch parts;
      ASSERT_TRUE(std::regex_match(line, parts, sample)) << line;
      const std::string name = parts[1];
      const bool is_summary = types[family] == "summary";
      EXPECT_TRUE(is_summary ? name == family + "_sum" || name == family + "_count" : name == family) << line;
    }
  }
  EXPECT_EQ(text.back(), '\n');
  EXPECT_THAT(text, HasSubstr("output=\"results/a \\\"run\\\"\\\\\"}"));
}

}  // namespace
}  // namespace syncopate::experiments
