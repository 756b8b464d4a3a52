// Dates as people read them. Pure.
#pragma once

#include <string>

namespace syncopate::experiments {

// Of calendar_stamp()'s "20261120-135501": "2026-11-20 13:55:01 UTC".
std::string calendar_text(const std::string& stamp);

}  // namespace syncopate::experiments
