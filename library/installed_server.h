// Where the program of parameter servers lies.
#pragma once

#include <string>

namespace syncopate::library {

// Returns the path of syncopate-server: at its place relative to the file that this code has been loaded from, so that
// an installation may be moved as a whole.
std::string installed_server();

}  // namespace syncopate::library
