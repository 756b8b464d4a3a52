#include "worker/data/own/npy_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "common/text/printable_text.h"
#include "worker/data/text_lines.h"

namespace syncopate::worker {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::int64_t kLongestText = 256;  // characters of a class

struct NpyHeader {
  char kind = 0;  // 'f', 'i', 'u', 'b', 'U', 'S'
  bool big_endian = false;
  std::int64_t width = 0;  // bytes of a number, characters of a text
  bool columns_first = false;
  std::vector<std::int64_t> lengths = {};
  std::size_t bytes = 0;  // of the header
};

// Returns what stands behind 'key': in the header's dictionary, without blanks.
std::optional<std::string_view> behind(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  header.remove_prefix(at + key.size());
  while (header.starts_with(' ')) header.remove_prefix(1);
  return header;
}

std::optional<std::vector<std::int64_t>> lengths_in(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  text = text.substr(1, text.find(')') - 1);
  std::vector<std::int64_t> lengths;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view one = text.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (one.empty() && text.empty()) break;  // (150,)
    const std::optional<std::int64_t> length = parse_number<std::int64_t>(one);
    if (!length || lengths.size() == 32) return std::nullopt;
    lengths.push_back(*length);
  }
  return lengths;
}

// '<f8', '|b1', '<U10'
Status read_type(std::string_view descr, NpyHeader& header) {
  const auto unknown = [&](const char* why) {
    const std::string_view shown = descr.substr(0, std::min(descr.find_first_of(",}"), descr.size()));
    return Status::data_loss(fmt::format("an array of type {}, {}", printable(shown, 80), why));
  };
  if (!descr.starts_with('\'')) return unknown("of several fields; save numbers of one type");
  const std::string_view type = descr.substr(1, std::min(descr.find('\'', 1), descr.size()) - 1);
  if (type == "|O") return unknown("which are Python objects; save numbers, as in x.astype('float32')");
  constexpr const char* kExpected = "expected numbers (b1, i1 to i8, u1 to u8, f2 to f8) or texts (U, S)";
  if (type.size() < 3 || std::string_view("<>|=").find(type[0]) == std::string_view::npos) return unknown(kExpected);
  const std::optional<std::int64_t> width = parse_number<std::int64_t>(type.substr(2));
  header.kind = type[1];
  header.big_endian = type[0] == '>';
  header.width = width.value_or(0);
  const bool is_number = std::string_view("biuf").find(header.kind) != std::string_view::npos;
  const bool is_text = header.kind == 'U' || header.kind == 'S';
  if (!(is_number || is_text) || header.width < 1) return unknown(kExpected);
  if (is_text && header.width > kLongestText) return unknown("texts of more than 256 characters");
  return {};
}

Result<NpyHeader> header_of(std::span<const std::uint8_t> bytes) {
  const std::string_view text = text_of(bytes);
  if (!text.starts_with(kNpyMagic) || bytes.size() < 12) return Status::data_loss("is no .npy array, or truncated");
  const bool is_long = bytes[6] >= 2;
  const std::size_t begin = is_long ? 12 : 10;
  std::size_t length = bytes[8] | std::size_t{bytes[9]} << 8;
  if (is_long) length |= std::size_t{bytes[10]} << 16 | std::size_t{bytes[11]} << 24;
  if (bytes[6] < 1 || bytes[6] > 3)
    return Status::data_loss(fmt::format("version {} of .npy, 1 to 3 are read", bytes[6]));
  if (length > bytes.size() - begin) {
    return Status::data_loss(fmt::format("truncated: {} bytes, the header alone has {}", bytes.size(), begin + length));
  }
  const std::string_view fields = text.substr(begin, length);
  NpyHeader header{.bytes = begin + length};
  const auto descr = behind(fields, "'descr':"), order = behind(fields, "'fortran_order':"),
             shape = behind(fields, "'shape':");
  if (!descr || !order || !shape) return Status::data_loss("a header without descr, fortran_order or shape");
  SYNCOPATE_RETURN_IF_ERROR(read_type(*descr, header));
  header.columns_first = order->starts_with("True");
  const auto lengths = lengths_in(*shape);
  if (!lengths) return Status::data_loss("a header whose shape is none: " + printable(shape->substr(0, 40)));
  header.lengths = *lengths;
  return header;
}

std::optional<NumberType> type_of(char kind, std::int64_t width) {
  struct Known {
    char kind;
    std::int64_t width;
    NumberType type;
  };
  static constexpr Known kKnown[] = {
      {'b', 1, NumberType::kBool},   {'i', 1, NumberType::kInt8},   {'i', 2, NumberType::kInt16},
      {'i', 4, NumberType::kInt32},  {'i', 8, NumberType::kInt64},  {'u', 1, NumberType::kUint8},
      {'u', 2, NumberType::kUint16}, {'u', 4, NumberType::kUint32}, {'u', 8, NumberType::kUint64},
      {'f', 2, NumberType::kHalf},   {'f', 4, NumberType::kFloat},  {'f', 8, NumberType::kDouble}};
  for (const Known& known : kKnown) {
    if (known.kind == kind && known.width == width) return known.type;
  }
  return std::nullopt;
}

Result<NumberArray> numbers_of(const NpyHeader& header, std::span<const std::uint8_t> bytes,
                               std::shared_ptr<const void> holds) {
  const std::optional<NumberType> type = type_of(header.kind, header.width);
  if (!type) {
    return Status::data_loss(
        fmt::format("an array of type {}{}, expected numbers of 1, 2, 4 or 8 bytes", header.kind, header.width));
  }
  return NumberArray::create(bytes.subspan(header.bytes), std::move(holds), *type, header.big_endian, header.lengths,
                             header.columns_first);
}

void append_utf8(std::uint32_t code, std::string& to) {
  const auto tail = [&](int shift) { to += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    to += static_cast<char>(code);
  } else if (code < 0x800) {
    to += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    to += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    to += static_cast<char>(0xf0 | (code >> 18 & 7));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Texts are padded with zeros; of kind U a character has four bytes.
Result<TargetColumn> texts_of(const NpyHeader& header, std::span<const std::uint8_t> bytes) {
  const std::size_t character = header.kind == 'U' ? 4 : 1, width = character * static_cast<std::size_t>(header.width);
  const std::span<const std::uint8_t> content = bytes.subspan(header.bytes);
  const std::int64_t count = header.lengths.size() == 1 ? header.lengths.front() : 0;
  if (count < 1 || content.size() % width != 0 || content.size() / width != static_cast<std::uint64_t>(count)) {
    return Status::data_loss("texts, expected one for each sample, and as many bytes as these have");
  }
  TargetColumn target;
  for (std::size_t begin = 0; begin < content.size(); begin += width) {
    std::string& text = target.texts.emplace_back();
    for (std::size_t at = begin; at < begin + width; at += character) {
      std::uint32_t code = 0;
      for (std::size_t i = 0; i < character; ++i) {
        code = code << 8 | content[at + (header.big_endian ? i : character - 1 - i)];
      }
      if (code == 0) break;
      append_utf8(code, text);
    }
  }
  return target;
}

}  // namespace

Result<NumberArray> npy_values(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> holds) {
  SYNCOPATE_ASSIGN_OR_RETURN(const NpyHeader header, header_of(bytes));
  if (header.kind == 'U' || header.kind == 'S') return Status::data_loss("holds texts, expected numbers");
  return numbers_of(header, bytes, std::move(holds));
}

Result<TargetColumn> target_of_numbers(const NumberArray& numbers) {
  if (numbers.shape().values() != 1) {
    return Status::data_loss(
        fmt::format("holds {} numbers for each sample, expected one label", numbers.shape().values()));
  }
  TargetColumn target{.whole = numbers.whole()};
  target.numbers.reserve(static_cast<std::size_t>(numbers.size()));
  for (std::int64_t sample = 0; sample < numbers.size(); ++sample) target.numbers.push_back(numbers.value(sample));
  return target;
}

Result<TargetColumn> npy_target(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> holds) {
  SYNCOPATE_ASSIGN_OR_RETURN(const NpyHeader header, header_of(bytes));
  if (header.kind == 'U' || header.kind == 'S') return texts_of(header, bytes);
  SYNCOPATE_ASSIGN_OR_RETURN(const NumberArray numbers, numbers_of(header, bytes, std::move(holds)));
  return target_of_numbers(numbers);
}

}  // namespace syncopate::worker
