// Dates as people read them. Pure.
#pragma once

#include <string>

namespace syncopate::experiments {

// Returns "2026-11-20 13:55:01 UTC" for "20261120-135501", which is calendar_stamp()'s form.
std::string calendar_text(const std::string& stamp);

}  // namespace syncopate::experiments
