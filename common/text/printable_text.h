// Makes untrusted text safe for a message, a log or a terminal. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace syncopate {

// The length to which names and short remarks are cut, in bytes.
inline constexpr std::size_t kLongestPrintable = 256;

// Returns `text` with everything escaped that a terminal would interpret or could not show: control characters,
// including escape and newline, characters that change the direction of writing or have no width, and bytes that are
// not UTF-8 (RFC 3629) become "\n", "\t", "\r" or "\x1b", byte by byte. Text of more than `longest` bytes is cut to
// that length and ends with "...". Printable text is returned unchanged, including backslashes, so applying it twice
// changes nothing.
std::string printable(std::string_view text, std::size_t longest = kLongestPrintable);

// Returns `text`, of one line or several, with each line made printable, and cut at 16 KiB.
std::string printable_lines(std::string_view text);

// Returns what a terminal has in the end of a line that a program has printed for one: what follows its last carriage
// return, with spaces for tabs, without colours (SGR, ECMA-48 8.3.117). The rest is made printable, and cut, as above.
std::string terminal_line(std::string_view line);

}  // namespace syncopate
