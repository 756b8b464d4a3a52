#include "tests/fuzz/mutation.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace syncopate::fuzz {
namespace {

constexpr std::size_t kLongest = 8192;
constexpr std::array<std::uint64_t, 8> kNumbers = {0, 1, 0x7F, 0x80, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, ~0ull >> 1};

struct Part {
  std::size_t begin, size;
};

Part part_of(std::size_t size, Random& random) {
  const std::size_t begin = random.below(size + 1);
  return {begin, random.below(std::min<std::size_t>(size - begin, 64) + 1)};
}

void put_number(std::vector<std::uint8_t>& bytes, Random& random) {
  const std::uint64_t number = random.below(2) == 0 ? kNumbers[random.below(kNumbers.size())] : random.next();
  const std::size_t size = std::min<std::size_t>(std::size_t{1} << random.below(4), bytes.size());
  std::memcpy(bytes.data() + random.below(bytes.size() - size + 1), &number, size);
}

void insert(std::vector<std::uint8_t>& bytes, Bytes from, Random& random) {
  const Part part = part_of(from.size(), random);
  const std::vector<std::uint8_t> copy(from.begin() + part.begin, from.begin() + part.begin + part.size);
  bytes.insert(bytes.begin() + random.below(bytes.size() + 1), copy.begin(), copy.end());
}

void change(std::vector<std::uint8_t>& bytes, Bytes other, Random& random) {
  if (bytes.empty()) return bytes.push_back(static_cast<std::uint8_t>(random.next()));
  switch (random.below(6)) {
    case 0:
      bytes[random.below(bytes.size())] ^= static_cast<std::uint8_t>(1 << random.below(8));
      break;
    case 1:
      bytes[random.below(bytes.size())] = static_cast<std::uint8_t>(random.next());
      break;
    case 2:
      put_number(bytes, random);
      break;
    case 3: {
      const Part part = part_of(bytes.size(), random);
      bytes.erase(bytes.begin() + part.begin, bytes.begin() + part.begin + part.size);
      break;
    }
    case 4:
      insert(bytes, bytes, random);
      break;
    default:
      insert(bytes, other, random);
  }
}

}  // namespace

std::vector<std::uint8_t> mutated(Bytes input, Bytes other, Random& random) {
  std::vector<std::uint8_t> bytes(input.begin(), input.end());
  for (std::size_t changes = 1 + random.below(4); changes > 0; --changes) change(bytes, other, random);
  if (bytes.size() > kLongest) bytes.resize(kLongest);
  return bytes;
}

}  // namespace syncopate::fuzz
