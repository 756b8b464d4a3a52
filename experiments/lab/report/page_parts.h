// The files of page/ that every page carries with it, as the build has embedded them.
#pragma once

#include <map>
#include <string_view>

namespace syncopate::experiments {

// By name without the ending, in the order in which a page runs them; before all of them "chart.min", which is
// Chart.js.
const std::map<std::string_view, std::string_view>& page_scripts();
const std::map<std::string_view, std::string_view>& page_styles();

}  // namespace syncopate::experiments
