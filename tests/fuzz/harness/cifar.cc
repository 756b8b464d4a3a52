// CIFAR-10's records.
#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/scratch_file.h"
#include "worker/data/cifar_reader.h"

namespace syncopate::fuzz {
namespace {

const Harness cifar("cifar", [](Bytes bytes) {
  Input input(bytes);
  const std::int64_t records = input.byte() % 3;
  const std::vector<std::string> paths{scratch_file("batch.bin", input.rest())};
  const Result<std::unique_ptr<worker::ImageDataset>> data = worker::open_cifar10(paths, records, 1);
  if (!data.ok()) return;
  std::vector<std::uint8_t> scratch(static_cast<std::size_t>((*data)->shape().values()));
  for (std::int64_t i = 0; i < (*data)->size(); ++i) {
    require((*data)->image(i, scratch).size() == scratch.size(), "an image has its shape's values");
    require((*data)->label(i) < worker::kCifarClasses, "a label is one of the classes");
    std::vector<float> values(scratch.size());
    int label = 0;
    (*data)->read(i, records, {.values = values, .labels = {&label, 1}});
  }
});

}  // namespace
}  // namespace syncopate::fuzz
