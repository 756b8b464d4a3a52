#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {

void add_compression_options(std::vector<OptionSpec>& table) {
  OptionSpec option{
      .group = "Job",
      .name = "compress",
      .placeholder = "CODEC",
      .sentence =
          "Gradients travel in fewer bytes: rounded (fp16, bf16, int8), by their signs, the R·n "
          "largest or R·n drawn ones of n, or as matrices of rank K. With --sync-every it is what workers "
          "have come to since they last met.",
      .range = kCodecSpellings,
      .usual = to_string(RunSettings().compress),
      .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<CodecConfig> codec = parse_codec(value);
    if (!codec.ok()) return option_kinds::wrong(option, value, "codec");
    request.compress = *codec;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return to_string(config.compress); };
  table.push_back(option_kinds::only(option, conditions::kSendsGradients));
  table.push_back(option_kinds::only(
      option_kinds::choice({.group = "Job",
                            .name = "int8-rounding",
                            .placeholder = "HOW",
                            .sentence = "Of int8: to the nearest, or up or down by chance, so that the mean of what "
                                        "arrives is the gradient (QSGD)."},
                           &RunSettings::int8_rounding, "rounding",
                           {Int8Rounding::kNearest, Int8Rounding::kStochastic}),
      conditions::kInt8));
  table.push_back(option_kinds::only(
      option_kinds::number({.group = "Job",
                            .name = "compress-warmup",
                            .placeholder = "EPOCHS",
                            .sentence = "Of topk: over so many epochs the part that is sent falls exponentially to R; "
                                        "with 4 and R = 0.001: 25, 6.3, 1.6 and 0.4 % (Deep Gradient Compression).",
                            .unit = "epochs"},
                           &RunSettings::compress_warmup, "epochs", std::int64_t{0}, std::int64_t{1000}),
      conditions::kTopK));
  table.push_back(option_kinds::only(
      option_kinds::number(
          {.group = "Job",
           .name = "compress-decay",
           .placeholder = "BETA",
           .sentence = "Of topk and topk2bit: what is left of what was not sent when the next gradient, "
                       "or the next difference of weights, is added (SparseLoCo, with 0.95)."},
          &RunSettings::compress_decay, "decay", 0.0, 1.0),
      conditions::kTopKOfEither));
  table.push_back(option_kinds::only(
      option_kinds::choice(
          {.group = "Job",
           .name = "compress-momentum",
           .placeholder = "HOW",
           .sentence = "Of topk: workers keep the velocity of their own gradients (momentum correction), which "
                       "masking also clears where a value was sent (momentum factor masking); the update is then "
                       "plain sgd. Deep Gradient Compression is masking with --compress-warmup."},
          &RunSettings::compress_momentum, "momentum",
          {CompressMomentum::kOff, CompressMomentum::kCorrection, CompressMomentum::kMasking}),
      conditions::kTopKOfMomentum));
  table.push_back(option_kinds::only(
      option_kinds::on_or_off(
          {.group = "Parameter servers",
           .name = "compress-answers",
           .placeholder = "HOW",
           .sentence = "Weights, too, travel compressed, as differences; a server keeps a shard more for each worker."},
          &RunSettings::compress_answers, "compressed answers"),
      conditions::kCompressedPushes));
}

}  // namespace syncopate::experiments
