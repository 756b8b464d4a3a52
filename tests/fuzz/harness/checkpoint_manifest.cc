// A checkpoint's manifest, and one writer's part of it, which comes over the control line. What is taken, and written
// out, is taken again as the same.
#include "experiments/checkpoint/manifest.h"
#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness checkpoint_manifest("checkpoint_manifest", [](Bytes input) {
  const Result<experiments::Manifest> manifest = experiments::parse_manifest(text_of(input));
  if (manifest.ok()) {
    const Result<experiments::Manifest> again = experiments::parse_manifest(experiments::to_text(*manifest));
    require(again.ok() && *again == *manifest, "a manifest is read back as it was written");
  }
  const Result<experiments::StoredPart> part = experiments::parse_part(text_of(input));
  if (part.ok()) {
    const Result<experiments::StoredPart> again = experiments::parse_part(experiments::to_text(*part));
    require(again.ok() && *again == *part, "a part is read back as it was written");
  }
});

}  // namespace
}  // namespace syncopate::fuzz
