// What a worker comes to that has the whole model, for tests of workers that train it together.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/drawn_batches.h"
#include "worker/local_strategy.h"
#include "worker/model.h"

namespace syncopate::worker {

struct WholeTraining {
  std::vector<float> weights;
  std::vector<double> losses;  // by step, as are the next
  std::vector<int> correct;
  TrainingState state;
};

// Trains that many steps on batches of which the last `empty` places have no sample.
inline WholeTraining train_whole(const std::string& spec, const SampleForm& form, int samples, int empty, int steps,
                                 const OptimizerConfig& optimizer) {
  const SteadyClock clock;
  const auto backend = make_reference_backend();
  const std::unique_ptr<Model> model = std::move(*make_model(spec, form, samples, *backend));
  LocalStrategy strategy(optimizer, clock);
  const ParamArenas arenas = *strategy.allocate(model->layout());
  model->initialize(1, arenas.weights);
  EXPECT_TRUE(strategy.join().ok());
  WholeTraining trained;
  DrawnBatches batches(form, samples);
  for (int step = 0; step < steps; ++step) {
    strategy.begin_step({.step = step, .learning_rate = 0.05});
    const BatchView batch = batches.next(empty);
    model->forward(arenas.weights, batch);
    model->backward(arenas.weights, arenas.gradients, [](std::size_t) {});
    EXPECT_TRUE(strategy.finish_step().ok());
    trained.losses.push_back(model->loss().loss);
    trained.correct.push_back(model->loss().correct);
  }
  EXPECT_TRUE(strategy.resumable()->save(trained.state).ok());
  trained.weights.assign(arenas.weights.begin(), arenas.weights.end());
  return trained;
}

}  // namespace syncopate::worker
