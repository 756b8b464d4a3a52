// Quantities as people type them: a number with its unit behind it, the same units wherever one is read. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace syncopate {

// Each returns the quantity that is the whole of `text`, and none for anything else, a number without a unit included.
// NaN and infinities are accepted: a caller that needs a range must check it so that these fail.

// Seconds, from "250us", "300ms", "0.3s", "2min", "1.5h" or "2d".
std::optional<double> parse_time(std::string_view text);
inline constexpr const char* kTimeForms = "with us, ms, s, min, h or d";

// Bytes, from "512B", "25MB" or "16GiB" (kB, MB, GB, TB, KiB, MiB, GiB, TiB).
std::optional<double> parse_bytes(std::string_view text);
inline constexpr const char* kByteForms = "with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB";

// Bits a second, from "10gbit", "10Gb/s" or "10Gbps" (k, m, g, t). The letters are of either case, except that a bit is
// no byte: "10GB/s" is none.
std::optional<double> parse_bits_per_second(std::string_view text);

// Bytes a second, from "900MB/s" or "4.2GB/s".
std::optional<double> parse_bytes_per_second(std::string_view text);

// Floating-point operations a second, from "900GFLOPS", "15TFLOPS" or "1PFLOPS".
std::optional<double> parse_flops(std::string_view text);

// The same for an option whose unit, "seconds" or "bytes", is understood where none is typed; with any other unit,
// a plain number.
std::optional<double> parse_in_unit(std::string_view text, std::string_view unit);
// Returns ", or with us, ms, s, min, h or d" or the like of bytes, to stand behind the unit; empty for another one.
std::string unit_hint(std::string_view unit);

}  // namespace syncopate
