// Bytes as text: two hexadecimal digits each, "0a" for 10.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace syncopate {

std::string to_hex(std::span<const std::byte> bytes);

// Fills `bytes`. Returns false, with `bytes` undefined, unless `text` is what to_hex returns for exactly as many bytes.
bool from_hex(std::string_view text, std::span<std::byte> bytes);

}  // namespace syncopate
