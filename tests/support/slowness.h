// What sanitizers cost: the one place that tests ask.
#pragma once

namespace syncopate::testing_support {

#ifdef SYNCOPATE_SANITIZE
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// By how much deadlines are longer.
inline constexpr int kSlowness = kSanitized ? 4 : 1;

// Why a test of --collective=mpi is skipped under them; mpirun alone can be tested.
inline constexpr const char* kWhyNoMpi =
    "Open MPI unloads its plugins before reports are written: what they did cannot be told from what we did";

}  // namespace syncopate::testing_support
