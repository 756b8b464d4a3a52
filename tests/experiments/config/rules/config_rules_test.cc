#include "experiments/config/rules/config_rules.h"

#include <gmock/gmock.h>

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ResolvedRun compressed(Mode mode, const char* codec, const char* optimizer) {
  ResolvedRun config;
  config.mode = mode;
  config.compress = *parse_codec(codec);
  config.optimizer = *optimizer_named(optimizer);
  return config;
}

TEST(Cautions, SayThatCodecsWhichChangeMagnitudesCostAccuracyUnderAdam) {
  for (const Mode mode : {Mode::kPs, Mode::kAllreduce}) {
    for (const char* codec : {"sign", "topk:0.01", "randomk:0.01"}) {
      EXPECT_THAT(cautions(compressed(mode, codec, "adam")),
                  ElementsAre(AllOf(HasSubstr(std::string("--compress=") + codec + " with --optimizer=adam"),
                                    HasSubstr("--optimizer=sgd or momentum"))));
      EXPECT_THAT(cautions(compressed(mode, codec, "adamw")), ElementsAre(HasSubstr("adamw divides")));
      EXPECT_THAT(cautions(compressed(mode, codec, "sgd")), IsEmpty());
      EXPECT_THAT(cautions(compressed(mode, codec, "momentum")), IsEmpty());
    }
    for (const char* codec : {"none", "fp16", "bf16", "int8", "powersgd:4"}) {
      EXPECT_THAT(cautions(compressed(mode, codec, "adam")), IsEmpty()) << codec;
    }
  }
  EXPECT_THAT(cautions(compressed(Mode::kLocal, "sign", "adam")), IsEmpty()) << "nothing is sent";
}

TEST(Cautions, NameTheFrozenVarianceAsTheRemedyAndAreSilentWithIt) {
  for (const char* codec : {"sign", "topk:0.01", "randomk:0.01"}) {
    ResolvedRun config = compressed(Mode::kAllreduce, codec, "adam");
    EXPECT_THAT(cautions(config), ElementsAre(HasSubstr("--adam-freeze-variance=STEPS, with a sixth of all steps, does "
                                                        "not (1-bit Adam)")));
    config.adam_freeze_variance = 200;
    EXPECT_THAT(cautions(config), IsEmpty());
  }
  EXPECT_THAT(cautions(compressed(Mode::kPs, "sign", "adam")), ElementsAre(HasSubstr("under --mode=allreduce")));
}

}  // namespace
}  // namespace syncopate::experiments
