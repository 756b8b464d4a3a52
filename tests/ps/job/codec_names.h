// The codecs that parameter servers know, for tests that hold for all of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "ps/compression.h"

namespace syncopate::ps {

inline auto all_codecs() { return testing::Values("fp16", "bf16", "int8", "topk:0.1", "randomk:0.1", "sign"); }

inline Compression compression_of(const std::string& codec, bool answers = true) {
  return {.codec = *parse_codec(codec), .answers = answers, .seed = 5};
}

// "topk01"
inline std::string letters_of(const testing::TestParamInfo<const char*>& codec) {
  std::string name = codec.param;
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
  return name;
}

}  // namespace syncopate::ps
