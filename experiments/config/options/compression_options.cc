#include "common/text/list_text.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {

void add_compression_options(std::vector<OptionSpec>& table) {
  OptionSpec option{.group = "Job",
                    .name = "compress",
                    .placeholder = "CODEC",
                    .sentence =
                        "Gradients travel in fewer bytes: rounded (fp16, bf16, int8), by their signs, the R·n "
                        "largest or R·n drawn ones of n, or as matrices of rank K.",
                    .range = kCodecSpellings,
                    .usual = to_string(RunConfig().compress),
                    .is_text = true};
  option.set = [option](RunConfig& config, const std::string& value) -> Status {
    const Result<CodecConfig> codec = parse_codec(value);
    if (!codec.ok()) return option_kinds::wrong(option, value, "codec");
    config.compress = *codec;
    return {};
  };
  option.get = [](const RunConfig& config) { return to_string(config.compress); };
  const std::vector<std::string> pushing_weights =
      ps::consistency_names([](const ps::ConsistencyTraits& traits) { return traits.pushes_weights; });
  table.push_back(option_kinds::only(option,
                                     "--mode=allreduce, without --sync-every and --gossip and with another collective "
                                     "than nccl, or with --mode=ps and a consistency other than " +
                                         list_text(pushing_weights, "and"),
                                     may_compress));
  table.push_back(option_kinds::only(
      option_kinds::choice({.group = "Job",
                            .name = "int8-rounding",
                            .placeholder = "HOW",
                            .sentence = "Of int8: to the nearest, or up or down by chance, so that the mean of what "
                                        "arrives is the gradient (QSGD)."},
                           &RunConfig::int8_rounding, "rounding", {Int8Rounding::kNearest, Int8Rounding::kStochastic}),
      "--compress=int8", [](const RunConfig& config) { return codec_of(config).kind == CodecKind::kInt8; }));
  table.push_back(option_kinds::only(
      option_kinds::number({.group = "Job",
                            .name = "compress-warmup",
                            .placeholder = "EPOCHS",
                            .sentence = "Of topk: over so many epochs the part that is sent falls exponentially to R; "
                                        "with 4 and R = 0.001: 25, 6.3, 1.6 and 0.4 % (Deep Gradient Compression).",
                            .unit = "epochs"},
                           &RunConfig::compress_warmup, "epochs", std::int64_t{0}, std::int64_t{1000}),
      "--compress=topk:R", [](const RunConfig& config) { return codec_of(config).kind == CodecKind::kTopK; }));
  table.push_back(option_kinds::only(
      option_kinds::choice(
          {.group = "Job",
           .name = "compress-momentum",
           .placeholder = "HOW",
           .sentence = "Of topk: workers keep the velocity of their own gradients (momentum correction), which "
                       "masking also clears where a value was sent (momentum factor masking); the update is then "
                       "plain sgd. Deep Gradient Compression is masking with --compress-warmup."},
          &RunConfig::compress_momentum, "momentum",
          {CompressMomentum::kOff, CompressMomentum::kCorrection, CompressMomentum::kMasking}),
      "--compress=topk:R and --optimizer=momentum or nesterov", may_correct_momentum));
  table.push_back(option_kinds::only(
      option_kinds::on_or_off(
          {.group = "Parameter servers",
           .name = "compress-answers",
           .placeholder = "HOW",
           .sentence = "Weights, too, travel compressed, as differences; a server keeps a shard more for each worker."},
          &RunConfig::compress_answers, "compressed answers"),
      "--mode=ps and --compress", [](const RunConfig& config) { return compression_of(config).of_pushes(); }));
}

}  // namespace syncopate::experiments
