// Suggests the name that a person most likely meant by an unknown one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// Returns the name in `known`, all in small letters, with the least distance to `name`, whose case does not matter: the
// letters to replace, add or leave out, and the pairs of neighbours to exchange (optimal string alignment, after
// Damerau 1964). The distance may be at most a third of its letters, two for a short name, one for three letters and
// none for fewer. Failing that, the first whose words begin with its letters ("lr": learning-rate), that begins with it
// as a word ("batch": batch-size), or that it ends with ("num-workers": workers). Returns an empty text if there is
// none.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

// Returns what to say of a name in a file that is none of `known`: "sevrers: no such option; did you mean servers?".
std::string unknown_entry(std::string_view name, const std::vector<std::string>& known);

}  // namespace syncopate
