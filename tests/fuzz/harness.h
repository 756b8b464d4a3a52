// A harness: one parser of bytes that come from outside, given any bytes. It must come back with a value or a Status,
// whatever they are: no crash, no hang, no memory that a few bytes have only claimed to need.
//
// The same source runs in two ways: under libFuzzer (tests/fuzz/run), and in fuzz_tests,
// which replays what is kept below corpus/ and mutates it a little, with any compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace syncopate::fuzz {

using Bytes = std::span<const std::uint8_t>;

// Defined once in harness/NAME.cc, as a global of the name NAME.
struct Harness {
  const char* name;
  void (*run)(Bytes input);

  Harness(const char* name, void (*run)(Bytes));
};

// Those that this program is linked with, in no order.
const std::vector<const Harness*>& harnesses();

// Ends the program, saying what does not hold, unless `holds`. In every build: an oracle is what a harness is for.
void require(bool holds, std::string_view what);

inline std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace syncopate::fuzz
