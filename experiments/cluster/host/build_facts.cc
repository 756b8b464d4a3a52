#include "experiments/cluster/host/build_facts.h"

#include "source_fingerprint.h"

namespace syncopate::experiments {
namespace {

#ifdef __OPTIMIZE__
constexpr bool kOptimised = true;
#else
constexpr bool kOptimised = false;
#endif

#ifdef NDEBUG
constexpr bool kAssertions = false;
#else
constexpr bool kAssertions = true;
#endif

#if defined(__AVX512F__)
constexpr const char* kVectorSet = "AVX-512";
#elif defined(__AVX2__)
constexpr const char* kVectorSet = "AVX2";
#else
constexpr const char* kVectorSet = "baseline";
#endif

#ifdef __clang__
constexpr const char* kCompiler = "clang++ ";
#else
constexpr const char* kCompiler = "g++ ";
#endif

#ifdef SYNCOPATE_SANITIZE
constexpr const char* kSanitizers = SYNCOPATE_SANITIZE;
#else
constexpr const char* kSanitizers = "";
#endif

}  // namespace

std::string program_version() { return kVersion; }

std::string compiler_name() { return std::string(kCompiler) + __VERSION__; }

std::string build_kind() {
  return std::string(kOptimised ? "optimised" : "not optimised") +
         (kAssertions ? ", assertions on" : ", assertions off");
}

std::string compiled_vector_set() { return kVectorSet; }
std::string compiled_sanitizers() { return kSanitizers; }
std::string source_fingerprint() { return kSourceFingerprint; }

}  // namespace syncopate::experiments
