// Which codec compresses gradients when they are sent, and its spelling: "int8", "topk:0.01", "powersgd:4".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate {

enum class CodecKind { kNone, kFp16, kBf16, kInt8, kTopK, kTopK2Bit, kRandomK, kSign, kPowerSgd };

// How int8 rounds to a whole number: to the nearest, or randomly up or down, so that the mean is right.
enum class Int8Rounding { kNearest, kStochastic };
// "nearest", "stochastic"
const char* name_of(Int8Rounding value);

// How a sender treats momentum if only a part of a gradient is sent (Lin et al. 2018, "Deep gradient compression"): not
// at all, so that momentum acts on what arrives; by momentum correction (section 3.2); or also by momentum factor
// masking (3.3).
enum class CompressMomentum { kOff, kCorrection, kMasking };
// "off", "correction", "masking"
const char* name_of(CompressMomentum value);

// The velocity that a sender keeps (error_feedback.h).
struct LocalMomentum {
  CompressMomentum how = CompressMomentum::kOff;
  float momentum = 0;
  bool nesterov = false;

  bool enabled() const { return how != CompressMomentum::kOff; }
  bool operator==(const LocalMomentum&) const = default;
};

struct CodecConfig {
  CodecKind kind = CodecKind::kNone;
  double ratio = 1;  // top-k, random-k: the share of all elements that is sent, above 0 and at most 1
  int rank = 1;      // PowerSGD: 1 to 64
  Int8Rounding rounding = Int8Rounding::kNearest;
  std::int64_t warmup_epochs = 0;  // top-k: see ratio_in_epoch
  LocalMomentum momentum = {};     // top-k
  float decay = 1;  // with error feedback: what is left of a residual when the next gradient is added; 0 to 1
  // 1-bit Adam (Tang et al. 2021, algorithm 1): if above 0, this many updates are made from uncompressed gradients;
  // afterwards a sender encodes its momentum, with error feedback for any codec. 0: every gradient is encoded.
  std::int64_t whole_updates = 0;

  bool operator==(const CodecConfig&) const = default;
};

// The spellings that parse_codec accepts, for messages.
inline constexpr const char* kCodecSpellings =
    "none, fp16, bf16, int8, topk:R, topk2bit:R or randomk:R with R above 0 and at most 1, sign, or powersgd:K with K "
    "from "
    "1 to 64";

// Fails with invalid argument, with the value and kCodecSpellings, for anything else.
Result<CodecConfig> parse_codec(std::string_view text);
// Returns a spelling that parse_codec reads back to the same kind, ratio and rank.
std::string to_string(const CodecConfig& config);
// Equal for equal configs: all members of a job compare it.
std::uint64_t hash_of(const CodecConfig& config);

// Returns the share that top-k sends in epoch `epoch`. Over `warmup_epochs` epochs it falls exponentially to `ratio`,
// as ratio^((epoch + 1) / (warmup_epochs + 1)): with 0.001 and 4 epochs 25 %, 6.3 %, 1.6 %, 0.4 %, and then 0.1 %
// (warm-up training, Lin et al. 2018, section 3.3: "75%, 93.75%, 98.4375%, 99.6%" left out).
double ratio_in_epoch(const CodecConfig& config, std::int64_t epoch);

// True for codecs that leave out so much that the loss must be added to the next gradient (error_feedback.h): top-k
// of either kind, random-k, sign, PowerSGD. fp16, bf16 and int8 lose only the rounding of single values, to nearest and
// so without a preferred direction, and small compared with the noise of a batch: a residual would cost an arena and
// two passes over it.
bool needs_error_feedback(CodecKind kind);
// The same, but true for every codec under 1-bit Adam: the rounding error of a momentum would affect all later values
// that are computed from it.
bool needs_error_feedback(const CodecConfig& config);

// Returns how many of `elements` top-k and random-k send: ratio·elements rounded up, so at least 1 unless there are
// none.
std::size_t kept_elements(double ratio, std::size_t elements);

}  // namespace syncopate
