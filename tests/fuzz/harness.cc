#include "tests/fuzz/harness.h"

#include <cstdio>
#include <cstdlib>

namespace syncopate::fuzz {
namespace {

std::vector<const Harness*>& registered() {
  static std::vector<const Harness*> all;
  return all;
}

}  // namespace

Harness::Harness(const char* harness_name, void (*body)(Bytes)) : name(harness_name), run(body) {
  registered().push_back(this);
}

const std::vector<const Harness*>& harnesses() { return registered(); }

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace syncopate::fuzz
