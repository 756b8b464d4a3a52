// A gzip stream. No more comes out than is allowed.
#include "worker/data/gzip.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness gzip("gzip", [](Bytes input) {
  constexpr std::size_t kLimit = 256 * 1024;
  const Result<std::vector<std::uint8_t>> inflated = worker::inflate_gzip(input, kLimit);
  if (inflated.ok()) require(inflated->size() <= kLimit, "no more is inflated than is allowed");
});

}  // namespace
}  // namespace syncopate::fuzz
