#include "experiments/config/option_groups.h"
#include "experiments/config/option_kinds.h"

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
  table.push_back(option_kinds::only(option,
                                     "--mode=allreduce, without --sync-every and --gossip and with another collective "
                                     "than nccl, or with --mode=ps and "
                                     "a consistency other than local-sgd and easgd",
                                     may_compress));
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
