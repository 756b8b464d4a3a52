// --compress. What is taken, and written out, is taken again as the same.
#include "common/codec/codec_config.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness codec_config("codec_config", [](Bytes input) {
  const Result<CodecConfig> config = parse_codec(text_of(input));
  if (!config.ok()) return;
  const Result<CodecConfig> again = parse_codec(to_string(*config));
  require(again.ok() && *again == *config, "a codec is read back as it was written");
  require(kept_elements(config->ratio, 1000) <= 1000, "no codec keeps more than there is");
});

}  // namespace
}  // namespace syncopate::fuzz
