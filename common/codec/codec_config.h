// Which codec compresses gradients on their way, and how it is spelled: "int8", "topk:0.01", "powersgd:4".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate {

enum class CodecKind { kNone, kFp16, kBf16, kInt8, kTopK, kRandomK, kSign, kPowerSgd };

struct CodecConfig {
  CodecKind kind = CodecKind::kNone;
  double ratio = 1;  // top-k, random-k: the part of all elements that is sent, above 0 and at most 1
  int rank = 1;      // PowerSGD: 1 to 64

  bool operator==(const CodecConfig&) const = default;
};

// What parse_codec takes, for people.
inline constexpr const char* kCodecSpellings =
    "none, fp16, bf16, int8, topk:R or randomk:R with R above 0 and at most 1, sign, or powersgd:K with K from 1 to 64";

// Invalid argument, with the value and kCodecSpellings, for anything else.
Result<CodecConfig> parse_codec(std::string_view text);
// As parse_codec reads it back to the same config.
std::string to_string(const CodecConfig& config);

// True for codecs that leave out so much that what is lost must be added to the next gradient (error_feedback.h):
// top-k, random-k, sign, PowerSGD. What fp16, bf16 and int8 lose is the rounding of single values, to nearest and so
// without a preferred direction, and small beside the noise of a batch: a residual would cost an arena and two passes
// for it.
bool needs_error_feedback(CodecKind kind);

// How many of `elements` top-k and random-k send: ratio·elements rounded up, and so 1 at least unless there are none.
std::size_t kept_elements(double ratio, std::size_t elements);

}  // namespace syncopate
