// Texts, byte by byte. What is opened can be read throughout.
#include "worker/data/text_files.h"

#include <algorithm>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/scratch_file.h"

namespace syncopate::fuzz {
namespace {

const Harness text_files("text_files", [](Bytes bytes) {
  Input input(bytes);
  const int context = 1 + input.byte();
  scratch_file("first.txt", input.part());
  scratch_file("second.txt", input.rest());
  const Result<worker::TextParts> parts = worker::open_text({scratch_folder()}, context);
  if (!parts.ok()) return;
  std::vector<int> ids(static_cast<std::size_t>(context)), labels(ids.size());
  for (const worker::Dataset* part : {parts->first.get(), parts->second.get()}) {
    for (std::int64_t i = 0; i < part->size(); ++i) {
      part->read(i, 0, {.ids = ids, .labels = labels});
      require(std::ranges::equal(std::span(ids).subspan(1), std::span(labels).first(labels.size() - 1)),
              "each character is predicted from those before it");
    }
  }
});

}  // namespace
}  // namespace syncopate::fuzz
