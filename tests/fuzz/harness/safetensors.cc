// Weights in a file. Values are taken only if they are there.
#include "experiments/checkpoint/safetensors.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness safetensors("safetensors", [](Bytes input) {
  const Result<experiments::SafetensorsFile> file = experiments::from_safetensors(text_of(input));
  if (!file.ok()) return;
  std::size_t bytes = 0;
  for (const experiments::SafetensorsFile::Tensor& tensor : file->tensors) {
    bytes += tensor.values.size() * sizeof(float) + tensor.whole_numbers.size() * sizeof(std::int64_t);
  }
  require(bytes <= input.size(), "no value comes from nowhere");
});

}  // namespace
}  // namespace syncopate::fuzz
