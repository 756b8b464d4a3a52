// --shape. What is taken, and written out, is taken again as the same.
#include "common/transport/link_shape.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness link_shape("link_shape", [](Bytes input) {
  const Result<LinkShape> shape = LinkShape::parse(text_of(input));
  if (!shape.ok()) return;
  const Result<LinkShape> again = LinkShape::parse(shape->to_string());
  require(again.ok() && *again == *shape, "a shape is read back as it was written");
  require(shape->time_of(std::size_t{1} << 30) >= Duration::zero(), "no message takes less than no time");
});

}  // namespace
}  // namespace syncopate::fuzz
