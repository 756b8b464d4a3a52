// A tiny whole run under each kind of consistency: real processes.
#include "tests/support/every_consistency.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing_support::Program;
using testing_support::ProgramEnd;

TEST(EveryConsistencyProgram, TrainsToTheEnd) {
  for (const ps::ConsistencyTraits& traits : ps::consistency_traits()) {
    const std::string text = ps::consistency_example(traits, 1);
    for (const std::string servers : {"1", "colocated"}) {
      Program program({"--mode=ps", "--workers=2", "--servers=" + servers, "--consistency=" + text,
                       "--model=mlp:784-16-10", "--batch-size=16", "--train-samples=1024", "--test-samples=128",
                       "--steps=24"});
      const ProgramEnd end = program.wait();
      EXPECT_EQ(end.exit_code, 0) << text << ", servers " << servers << ": " << end.err;
    }
  }
}

}  // namespace
}  // namespace syncopate::experiments
