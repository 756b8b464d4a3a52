// Which codec compresses gradients on their way, and how it is spelled: "int8", "topk:0.01", "powersgd:4".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate {

enum class CodecKind { kNone, kFp16, kBf16, kInt8, kTopK, kRandomK, kSign, kPowerSgd };

// How int8 comes to a whole number: to the nearest, or up or down by chance, so that the mean is right.
enum class Int8Rounding { kNearest, kStochastic };
// "nearest", "stochastic"
const char* name_of(Int8Rounding value);

// What a sender makes of momentum where only a part of a gradient goes (Lin et al. 2018, "Deep gradient compression"):
// nothing, so that it acts on what arrives; momentum correction (section 3.2); with momentum factor masking (3.3), too.
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
  double ratio = 1;  // top-k, random-k: the part of all elements that is sent, above 0 and at most 1
  int rank = 1;      // PowerSGD: 1 to 64
  Int8Rounding rounding = Int8Rounding::kNearest;
  std::int64_t warmup_epochs = 0;  // top-k: see ratio_in_epoch
  LocalMomentum momentum = {};     // top-k
  // 1-bit Adam (Tang et al. 2021, algorithm 1): above 0, so many updates are made of whole gradients; then what is
  // encoded is a sender's momentum, with error feedback whatever the codec. 0: every gradient is encoded.
  std::int64_t whole_updates = 0;

  bool operator==(const CodecConfig&) const = default;
};

// What parse_codec takes, for people.
inline constexpr const char* kCodecSpellings =
    "none, fp16, bf16, int8, topk:R or randomk:R with R above 0 and at most 1, sign, or powersgd:K with K from 1 to 64";

// Invalid argument, with the value and kCodecSpellings, for anything else.
Result<CodecConfig> parse_codec(std::string_view text);
// As parse_codec reads it back to the same kind, ratio and rank.
std::string to_string(const CodecConfig& config);
// Equal for equal configs: what all members of a job compare.
std::uint64_t hash_of(const CodecConfig& config);

// Top-k: the part that is sent in epoch `epoch`. Over `warmup_epochs` epochs it falls exponentially to `ratio`, as
// ratio^((epoch + 1) / (warmup_epochs + 1)): with 0.001 and 4 epochs 25 %, 6.3 %, 1.6 %, 0.4 %, and then 0.1 % (warm-up
// training, Lin et al. 2018, section 3.3: "75%, 93.75%, 98.4375%, 99.6%" left out).
double ratio_in_epoch(const CodecConfig& config, std::int64_t epoch);

// True for codecs that leave out so much that what is lost must be added to the next gradient (error_feedback.h):
// top-k, random-k, sign, PowerSGD. What fp16, bf16 and int8 lose is the rounding of single values, to nearest and so
// without a preferred direction, and small beside the noise of a batch: a residual would cost an arena and two passes
// for it.
bool needs_error_feedback(CodecKind kind);
// The same, but true for every codec under 1-bit Adam: what rounding loses of a momentum would be lost of all that is
// made of it later.
bool needs_error_feedback(const CodecConfig& config);

// How many of `elements` top-k and random-k send: ratio·elements rounded up, and so 1 at least unless there are none.
std::size_t kept_elements(double ratio, std::size_t elements);

}  // namespace syncopate
