// Memory that is not needed for a while, without giving up its addresses.
#pragma once

#include <cstddef>
#include <span>

namespace syncopate {

// Gives the whole pages of `memory` back to the kernel, of private memory or of a file in memory, for all who map it.
// They read as zeros afterwards, and take memory again once they are written to. The rest keeps its values.
void release_pages(std::span<std::byte> memory);

}  // namespace syncopate
