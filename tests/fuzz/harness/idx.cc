// IDX: the input is a file of images and, behind it, one of labels. What is opened can be read throughout.
#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/scratch_file.h"
#include "worker/data/idx_reader.h"

namespace syncopate::fuzz {
namespace {

const Harness idx("idx", [](Bytes bytes) {
  Input input(bytes);
  const std::string images = scratch_file("images", input.part());
  const std::string labels = scratch_file("labels", input.rest());
  (void)worker::read_idx_shape(images);
  const Result<std::unique_ptr<worker::ImageDataset>> data = worker::open_idx(images, labels);
  if (!data.ok()) return;
  std::vector<std::uint8_t> scratch(static_cast<std::size_t>((*data)->shape().values()));
  for (std::int64_t i = 0; i < (*data)->size(); ++i) {
    require((*data)->image(i, scratch).size() == scratch.size(), "an image has its shape's values");
    require((*data)->label(i) < worker::kIdxClasses, "a label is one of the classes");
  }
});

}  // namespace
}  // namespace syncopate::fuzz
