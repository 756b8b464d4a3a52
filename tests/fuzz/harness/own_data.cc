// Data of a person's own: the first byte says of which kind the file is that the others are, or two files of one kind.
// What is opened can be read throughout.
#include <algorithm>
#include <array>
#include <cmath>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/scratch_file.h"
#include "worker/data/own/image_file.h"
#include "worker/data/own/open_own.h"

namespace syncopate::fuzz {
namespace {

void read_part(const worker::Dataset& data) {
  const worker::SampleForm& form = data.form();
  std::vector<float> values(static_cast<std::size_t>(form.values())), target(1);
  std::vector<int> label(1);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.read(i, 0, {.values = values, .ids = {}, .labels = label, .targets = target});
    require(std::ranges::all_of(values, [](float value) { return std::isfinite(value); }), "values are finite");
    require(label[0] >= 0 && label[0] < form.classes, "a label is a class");
    require(!form.regression || std::isfinite(target[0]), "a target is finite");
  }
}

const Harness own_data("own_data", [](Bytes bytes) {
  constexpr std::array kNames{"own.csv", "own.npz", "own.npy", "own-idx3", "image"};
  Input input(bytes);
  const std::string kind = kNames[input.byte() % kNames.size()];
  if (kind == "image") {
    const auto decoded = worker::decode_image(input.rest());
    if (!decoded.ok()) return;
    require(decoded->pixels.size() == static_cast<std::size_t>(decoded->shape.values()), "an image has its pixels");
    return (void)worker::scaled_image(*decoded, 8, 8);
  }
  worker::OwnOptions options{.test_fraction = 0.5};
  if (kind == "own.npy" || kind == "own-idx3") options.target = scratch_file("labels-" + kind, input.part());
  const Result<worker::DatasetPair> data = worker::open_own_data(scratch_file(kind, input.rest()), options, 1);
  if (!data.ok()) return;
  read_part(*data->train);
  read_part(*data->test);
});

}  // namespace
}  // namespace syncopate::fuzz
