// What libFuzzer calls: the one harness that the program is linked with.
#include <google/protobuf/stubs/logging.h>
#include <spdlog/spdlog.h>

#include "tests/fuzz/harness.h"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  spdlog::set_level(spdlog::level::off);
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  syncopate::fuzz::harnesses().front()->run({data, size});
  return 0;
}
