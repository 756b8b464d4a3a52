// Figures in a readable form. Pure.
#pragma once

#include <string>

namespace syncopate {

std::string format_count(double value);       // "41,250"; below 100 with one decimal: "99.5"
std::string format_bytes(double bytes);       // "512 B", "1.08 MB" (decimal units)
std::string format_duration(double seconds);  // "0.4 s", "12 s", "3 min 05 s", "2 h 10 min"
std::string format_ms(double milliseconds);   // three significant digits: "0.123", "1.55", "12.3", "1230"

}  // namespace syncopate
