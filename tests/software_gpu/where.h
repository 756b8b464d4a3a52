// Where in the program's source an address of its code lies.
#pragma once

#include <string>

namespace software_gpu {

// Where the call of this library that is under way returns to; null: nobody has called.
const void* caller();

// Returns "file:line" of the code before an address to which a call returns, or what is known of it where the program
// has no debug information. Asks binutils' addr2line: slow, for what is said of faults.
std::string place_in_source(const void* returns_to);

}  // namespace software_gpu
