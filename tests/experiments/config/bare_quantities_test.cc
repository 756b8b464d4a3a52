#include "experiments/config/bare_quantities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/text/quantity.h"
#include "experiments/config/line_options.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(BareQuantities, AreToldBackWithTheirUnit) {
  EXPECT_THAT(bare_quantities({"advise", "--step-time=150", "--workers=8", "--memory=16000000000"}),
              ElementsAre("--step-time=150: taken as 150 s, since a number without a unit is in seconds",
                          "--memory=16000000000: taken as 16.00 GB, since a number without a unit is in bytes"));
  EXPECT_THAT(bare_quantities({"--timeout", "0.25", "--bucket-bytes", "512"}),
              ElementsAre("--timeout=0.25: taken as 250 ms, since a number without a unit is in seconds",
                          "--bucket-bytes=512: taken as 512 B, since a number without a unit is in bytes"));
  EXPECT_THAT(bare_quantities({"compare", "--vary=chunk-bytes=64kB,4096"}), ElementsAre(HasSubstr("chunk-bytes=4096")));
  EXPECT_THAT(bare_quantities({"--compute=5"}), ElementsAre(HasSubstr("--compute=5: taken as 5 s")));
}

TEST(BareQuantities, AreNotWhatHasAUnitOrNeedsNone) {
  EXPECT_THAT(
      bare_quantities({"advise", "--step-time=150ms", "--memory=16GB", "--workers=8", "--grace=0", "--timeout"}),
      IsEmpty());
  EXPECT_THAT(bare_quantities({"--compute=solo", "--evaluate-every=50", "--timeout=x", "--vary", "--vary=timeout"}),
              IsEmpty());
  EXPECT_THAT(bare_quantities({"submit", "--memory=4"}), IsEmpty()) << "which is refused";
  EXPECT_THAT(bare_quantities({"--mode=ps", "--", "train.py", "--timeout=3"}), IsEmpty()) << "another program's";
}

// Whatever option reads seconds or bytes: none is forgotten.
TEST(BareQuantities, AreToldOfEveryOptionThatReadsThem) {
  int checked = 0;
  for (const OptionSpec& option : all_options()) {
    if (unit_hint(option.unit).empty()) continue;
    EXPECT_THAT(bare_quantities({"--" + option.name + "=77"}), SizeIs(1)) << option.name;
    ++checked;
  }
  EXPECT_GE(checked, 10);
}

}  // namespace
}  // namespace syncopate::experiments
