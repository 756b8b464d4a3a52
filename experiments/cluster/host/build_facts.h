// How this program was compiled. It is the only place that asks the compiler.
#pragma once

#include <string>

namespace syncopate::experiments {

std::string program_version();      // "0.9.0"
std::string compiler_name();        // "g++ 12.2.0"
std::string build_kind();           // "optimised, assertions off"
std::string compiled_vector_set();  // "AVX-512", "AVX2", "baseline"
std::string compiled_sanitizers();  // "address,undefined"; empty for none
// Returns a hash of all sources, which is the same in programs made of the same sources: "3f09a2c41b77d05e".
std::string source_fingerprint();

}  // namespace syncopate::experiments
