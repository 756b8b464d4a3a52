// FNV-1a, 64 bits (Fowler, Noll, Vo): hashes that are the same on every machine. Not secure against adversaries.
#pragma once

#include <cstdint>
#include <string_view>

namespace syncopate {

class Fnv {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) add_byte(static_cast<unsigned char>(value >> (8 * byte)));
  }
  void add(std::string_view text) {
    add(text.size());
    for (char c : text) add_byte(static_cast<unsigned char>(c));
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001B3ull; }

  std::uint64_t value_ = 0xCBF29CE484222325ull;
};

inline std::uint64_t hash_of(std::string_view text) {
  Fnv hash;
  hash.add(text);
  return hash.value();
}

}  // namespace syncopate
