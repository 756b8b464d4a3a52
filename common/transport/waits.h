// How endpoints wait, alike over every wire: what they check meanwhile, and for how long.
#pragma once

#include "common/clock.h"

namespace syncopate {

// How often a wait checks whether it was interrupted, whether a peer is gone, and whether peers are still expected.
inline constexpr std::chrono::milliseconds kLookUpEvery{50};

// How long an endpoint polls before it sleeps; between two polls it yields the core. A response often arrives sooner
// than a sleeper wakes, and the awaited peer may be next on this very core. That pays on crowded machines, too: 4
// workers on 2 cores train a quarter faster than with sleeping at once.
inline constexpr Duration kSpinBeforeSleep = std::chrono::microseconds(30);

// How long data that the network has not accepted may still be sent when an endpoint is destroyed.
inline constexpr std::chrono::milliseconds kLinger{2000};

}  // namespace syncopate
