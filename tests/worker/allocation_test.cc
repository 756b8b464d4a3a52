// That a training step allocates nothing once it has run: every `new` of this program is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "tests/worker/tensor_helpers.h"
#include "worker/data/image_dataset.h"
#include "worker/data/text_form.h"
#include "worker/local_strategy.h"
#include "worker/model.h"

namespace {

struct Allocations {
  int count = 0;
  std::size_t largest = 0;  // bytes
};
thread_local Allocations allocations;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations.count;
  allocations.largest = std::max(allocations.largest, size);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace syncopate::worker {
namespace {

// What the fourth training step of a model allocates.
Allocations of_one_step(const std::string& spec, ComputeBackend& backend) {
  const SampleForm form = spec.starts_with("gpt") ? form_of_text(12, 10) : form_of_images({16, 16, 1}, 10);
  const auto model = std::move(*make_model(spec, form, 4, backend));
  Random random(1);
  const Tensor images = random_tensor(4 * form.values(), random);
  const std::vector<int> ids = random_labels(4 * form.id_columns(), 10, random);
  const std::vector<int> labels = random_labels(4 * form.labels, 10, random);
  const SteadyClock clock;
  LocalStrategy strategy({.kind = OptimizerKind::kAdam}, clock);
  const ParamArenas arenas = *strategy.allocate(model->layout());
  model->initialize(1, arenas.weights);
  const std::function<void(std::size_t)> ignore = [](std::size_t) {};
  for (int step = 0; step < 4; ++step) {
    allocations = {};
    strategy.begin_step({step, 0.01});
    model->forward(arenas.weights, {images, labels, ids});
    model->backward(arenas.weights, arenas.gradients, ignore);
    EXPECT_TRUE(strategy.finish_step().ok());
  }
  return allocations;
}

TEST(SteadyState, OfPlainLoopsAllocatesNothing) {
  const auto backend = make_reference_backend();
  EXPECT_EQ(of_one_step("mlp", *backend).count, 0);
  EXPECT_EQ(of_one_step("lenet", *backend).count, 0);
  EXPECT_EQ(of_one_step("gpt:2-2-16", *backend).count, 0);
  EXPECT_EQ(of_one_step("resnet20", *backend).count, 0);
}

TEST(SteadyState, OfOneDnnAllocatesNothingButTheLibrarysOwnLists) {
  const auto backend = make_onednn_backend();
  for (const auto& [spec, most] : {std::pair("mlp", 300), {"lenet", 300}, {"gpt:2-2-16", 300}, {"resnet20", 3000}}) {
    const Allocations step = of_one_step(spec, *backend);
    EXPECT_LE(step.largest, 512u) << spec;
    EXPECT_LE(step.count, most) << spec;
    RecordProperty(spec, step.count);
  }
}

}  // namespace
}  // namespace syncopate::worker
