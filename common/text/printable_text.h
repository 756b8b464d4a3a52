// Text of strangers, as it may stand in a message, a log or on a terminal. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace syncopate {

// What names and short remarks are cut to.
inline constexpr std::size_t kLongestPrintable = 256;

// `text` with all made visible that a terminal would obey or could not show: control characters, among them escape and
// newline, characters that turn the direction of writing or have no width, and bytes that are not UTF-8 (RFC 3629)
// become "\n", "\t", "\r" or "\x1b", byte by byte. What is longer than `longest` bytes is cut to that many, and ends
// with "...". Printable text is returned as it is, backslashes too, so that going twice through here changes nothing.
std::string printable(std::string_view text, std::size_t longest = kLongestPrintable);

}  // namespace syncopate
