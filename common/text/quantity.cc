#include "common/text/quantity.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>

#include "common/text/number.h"

namespace syncopate {
namespace {

struct QuantityUnit {
  std::string_view name;
  double value;
};

constexpr QuantityUnit kTimeUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"min", 60}, {"s", 1}, {"h", 3600}, {"d", 86400}};
constexpr QuantityUnit kByteUnits[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"kB", 1e3},
                                       {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"B", 1}};
constexpr QuantityUnit kBitRates[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"tbit", 1e12},
                                      {"kb/s", 1e3}, {"mb/s", 1e6}, {"gb/s", 1e9}, {"tb/s", 1e12},
                                      {"kbps", 1e3}, {"mbps", 1e6}, {"gbps", 1e9}, {"tbps", 1e12}};
constexpr QuantityUnit kByteRates[] = {{"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
constexpr QuantityUnit kFlopRates[] = {{"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}};

// The first unit that ends the text is taken, so a longer one stands before one that ends it.
std::optional<double> quantity_in(std::string_view text, std::span<const QuantityUnit> units) {
  for (const auto& [name, value] : units) {
    if (!text.ends_with(name)) continue;
    const std::optional<double> number = parse_number<double>(text.substr(0, text.size() - name.size()));
    if (!number) return std::nullopt;
    // A division by a whole number rounds once, so 300ms and 0.3s are one value.
    return value < 1 ? *number / std::round(1 / value) : *number * value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_time(std::string_view text) { return quantity_in(text, kTimeUnits); }

std::optional<double> parse_bytes(std::string_view text) { return quantity_in(text, kByteUnits); }

std::optional<double> parse_bits_per_second(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!small.ends_with("bit") && text.find('B') != text.npos) return std::nullopt;  // bytes
  return quantity_in(small, kBitRates);
}

std::optional<double> parse_bytes_per_second(std::string_view text) { return quantity_in(text, kByteRates); }

std::optional<double> parse_flops(std::string_view text) { return quantity_in(text, kFlopRates); }

std::optional<double> parse_in_unit(std::string_view text, std::string_view unit) {
  const std::optional<double> with_unit = unit == "seconds" ? parse_time(text)
                                          : unit == "bytes" ? parse_bytes(text)
                                                            : std::nullopt;
  return with_unit ? with_unit : parse_number<double>(text);
}

std::string unit_hint(std::string_view unit) {
  if (unit == "seconds") return std::string(", or ") + kTimeForms;
  return unit == "bytes" ? std::string(", or ") + kByteForms : "";
}

}  // namespace syncopate
