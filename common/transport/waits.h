// How endpoints wait, alike over every wire: what they look at meanwhile, and for how long.
#pragma once

#include "common/clock.h"

namespace syncopate {

// A wait looks up this often whether it was interrupted, whether a peer is gone, and whether peers are still to come.
inline constexpr std::chrono::milliseconds kLookUpEvery{50};

// Before an endpoint sleeps it looks again for so long, and between two looks yields the core: an answer often comes
// sooner than a sleeper wakes, and the peer that it waits for may be next on this very core. That pays on crowded
// machines, too: 4 workers on 2 cores train a quarter faster than with sleeping at once.
inline constexpr Duration kSpinBeforeSleep = std::chrono::microseconds(30);

// What the network has not taken when an endpoint is destroyed may still go out for so long.
inline constexpr std::chrono::milliseconds kLinger{2000};

}  // namespace syncopate
