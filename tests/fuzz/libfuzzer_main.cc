// What libFuzzer calls: the harness that --harness=NAME names. libFuzzer itself takes no notice of what begins with
// "--", and hands it on to the processes that it starts.
#include <google/protobuf/stubs/logging.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "common/text/log.h"
#include "tests/fuzz/harness.h"

namespace {
const syncopate::fuzz::Harness* g_harness = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  syncopate::silence_log();
  google::protobuf::SetLogHandler(nullptr);
  constexpr std::string_view kOption = "--harness=";
  for (const std::string_view argument : std::span(*argv, static_cast<std::size_t>(*argc))) {
    if (!argument.starts_with(kOption)) continue;
    for (const auto* harness : syncopate::fuzz::harnesses()) {
      if (argument.substr(kOption.size()) == harness->name) g_harness = harness;
    }
  }
  if (!g_harness) {
    std::fputs("--harness=NAME: must name a harness of tests/fuzz/harness\n", stderr);
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  g_harness->run({data, size});
  return 0;
}
