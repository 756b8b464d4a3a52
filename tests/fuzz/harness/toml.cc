// A config file. A configuration that is taken is taken again as it is recorded.
#include "experiments/config/toml.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness toml("toml", [](Bytes input) {
  const Result<experiments::ResolvedRun> config = experiments::from_toml_text(text_of(input));
  if (!config.ok()) {
    require(!config.status().message().empty(), "what is refused is refused with a reason");
    return;
  }
  const std::string recorded = experiments::to_toml(*config);
  const Result<experiments::ResolvedRun> again = experiments::from_toml_text(recorded);
  require(again.ok(), "a recorded configuration can be read");
  require(experiments::to_toml(*again) == recorded, "a recorded configuration is read back as it was written");
});

}  // namespace
}  // namespace syncopate::fuzz
