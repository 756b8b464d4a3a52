// NCCL's log.
#include "allreduce/nccl/nccl_log.h"

#include "tests/fuzz/harness.h"

namespace syncopate::fuzz {
namespace {

const Harness nccl_log("nccl_log",
                       [](Bytes input) { (void)allreduce::describe(allreduce::parse_nccl_log(text_of(input))); });

}  // namespace
}  // namespace syncopate::fuzz
