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

}  // namespace syncopate::testing_support
