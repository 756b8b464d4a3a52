#include "experiments/cluster/control/packed_steps.h"

#include <algorithm>
#include <bit>

#include "common/step_fields.h"

namespace syncopate::experiments {
namespace {

// A value of a step as 64 bits. Sums and differences wrap around, so that every value comes back.
using Word = std::uint64_t;

Word word_of(Duration value) { return static_cast<Word>(value.count()); }

// A column is the membership epoch, or one of the fields of a record. A number with a fraction and few digits, such as
// a share of 64 labels, has few bytes in reverse order.
Word word_in(const StepField* field, const SentStep& step) {
  if (field == nullptr) return static_cast<Word>(step.membership_epoch);
  const auto bits = static_cast<Word>(field->get(step.record));
  return field->kind == StepField::Kind::kReal ? __builtin_bswap64(bits) : bits;
}

void put(Word word, const StepField* field, SentStep& step) {
  if (field == nullptr) {
    step.membership_epoch = static_cast<std::int64_t>(word);
  } else {
    const bool is_real = field->kind == StepField::Kind::kReal;
    field->set(static_cast<std::int64_t>(is_real ? __builtin_bswap64(word) : word), step.record);
  }
}

std::vector<const StepField*> columns() {
  std::vector<const StepField*> columns{nullptr};
  for (const StepField& field : step_fields()) columns.push_back(&field);
  return columns;
}

Word sum_of_parts(const StepRecord& record) {
  return word_of(record.data) + word_of(record.forward) + word_of(record.backward) + word_of(record.straggle) +
         word_of(record.sync.exposed_wait) + word_of(record.sync.optimizer);
}

Duration duration_of(Word word) { return Duration(static_cast<std::int64_t>(word)); }
Word end_of(const StepRecord& record) { return word_of(record.end.time_since_epoch()); }

// Leaves of a step's length and end what does not follow from its parts and from the end of the step before.
void leave_rest(StepRecord& record, Word end_before) {
  const Word total = word_of(record.total);
  record.end = TimePoint(duration_of(end_of(record) - end_before - total));
  record.total = duration_of(total - sum_of_parts(record));
}

void restore(StepRecord& record, Word end_before) {
  record.total = duration_of(word_of(record.total) + sum_of_parts(record));
  record.end = TimePoint(duration_of(end_of(record) + end_before + word_of(record.total)));
}

enum Form : char { kSequence = 0, kDifferences = 1, kValues = 2, kWhole = 3, kOffsets = 4 };

constexpr Word zigzag(Word word) { return (word << 1) ^ (0 - (word >> 63)); }
constexpr Word unzigzag(Word word) { return (word >> 1) ^ (0 - (word & 1)); }

std::size_t size_of(Word word) { return static_cast<std::size_t>(std::bit_width(zigzag(word) | 1) + 6) / 7; }

void add_varint(Word rest, std::string& text) {
  for (; rest >= 0x80; rest >>= 7) text += static_cast<char>(rest | 0x80);
  text += static_cast<char>(rest);
}

// The least value, and the bits that the others lie above it.
struct Offsets {
  Word least = 0;
  int bits = 0;
};

Offsets offsets_of(std::span<const Word> values) {
  const auto [least, most] = std::ranges::minmax(values, {}, [](Word word) { return static_cast<std::int64_t>(word); });
  return {least, static_cast<int>(std::bit_width(most - least))};
}

std::size_t bytes_for(std::size_t bits) { return (bits + 7) / 8; }

// The values of a column; the difference of the first is to 0.
Form shortest_form(std::span<const Word> values) {
  bool is_sequence = true;
  std::size_t of_values = 0, of_differences = 0;
  Word before = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    of_values += size_of(values[i]);
    of_differences += size_of(values[i] - before);
    is_sequence &= i < 2 || values[i] - before == values[1] - values[0];
    before = values[i];
  }
  if (is_sequence) return kSequence;
  const auto [least, bits] = offsets_of(values);
  const std::size_t of_offsets = size_of(least) + 1 + bytes_for(static_cast<std::size_t>(bits) * values.size());
  const std::size_t shortest = std::min({of_values, of_differences, of_offsets, sizeof(Word) * values.size()});
  return of_offsets == shortest       ? kOffsets
         : of_values == shortest      ? kValues
         : of_differences == shortest ? kDifferences
                                      : kWhole;
}

void add_offsets(std::span<const Word> values, std::string& text) {
  const auto [least, bits] = offsets_of(values);
  add_varint(zigzag(least), text);
  text += static_cast<char>(bits);
  std::size_t bit = 8 * text.size();
  text.resize(text.size() + bytes_for(static_cast<std::size_t>(bits) * values.size()));
  for (const Word value : values) {
    for (int i = 0; i < bits;) {
      const int free = 8 - static_cast<int>(bit % 8), taken = std::min(free, bits - i);
      const Word part = (value - least) >> i & ((Word{1} << taken) - 1);
      text[bit / 8] = static_cast<char>(static_cast<unsigned char>(text[bit / 8]) | part << bit % 8);
      i += taken, bit += static_cast<std::size_t>(taken);
    }
  }
}

void add_column(std::span<const Word> values, std::string& text) {
  const Form form = shortest_form(values);
  text += form;
  if (form == kSequence) {
    add_varint(zigzag(values[0]), text);
    return add_varint(zigzag(values.size() > 1 ? values[1] - values[0] : 0), text);
  }
  if (form == kOffsets) return add_offsets(values, text);
  Word before = 0;
  for (const Word value : values) {
    if (form == kWhole) {
      for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(value >> shift);
    } else {
      add_varint(zigzag(value - before), text);
    }
    if (form == kDifferences) before = value;
  }
}

// What is left of a text. A value that it does not hold is 0, and then it is not good any more.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool is_good() const { return is_good_; }
  bool is_at_end() const { return rest_.empty(); }
  void fail() { is_good_ = false; }

  unsigned char byte() {
    is_good_ &= !rest_.empty();
    if (!is_good_) return 0;
    const auto first = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  Word varint() {
    Word word = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const unsigned char next = byte();
      word |= Word{next & 0x7Fu} << shift;
      if (next < 0x80) return word;
    }
    is_good_ = false;
    return 0;
  }
  // The next `bits` bits, at most 64, from the lowest of each byte on; the rest of the last byte is left for the next.
  Word bits(int bits) {
    Word word = 0;
    for (int i = 0; i < bits;) {
      if (left_ == 0) current_ = byte(), left_ = 8;
      const int taken = std::min(left_, bits - i);
      word |= Word{current_ & ((1u << taken) - 1)} << i;
      current_ >>= taken, left_ -= taken, i += taken;
    }
    return word;
  }
  // Passes over what is left of a byte.
  void end_bits() { left_ = 0; }
  Word whole() {
    Word word = 0;
    for (int shift = 0; shift < 64; shift += 8) word |= Word{byte()} << shift;
    return word;
  }

 private:
  std::string_view rest_;
  bool is_good_ = true;
  unsigned current_ = 0;  // what bits() has left of a byte: `left_` bits
  int left_ = 0;
};

void read_column(Reader& reader, std::span<Word> values) {
  const unsigned char form = reader.byte();
  if (form > kOffsets) reader.fail();
  Word before = form == kSequence || form == kOffsets ? unzigzag(reader.varint()) : 0;
  const Word difference = form == kSequence ? unzigzag(reader.varint()) : 0;
  const int bits = form == kOffsets ? reader.byte() : 0;
  if (bits > 64) return reader.fail();
  for (Word& value : values) {
    switch (form) {
      case kSequence:
        value = before;
        before += difference;
        break;
      case kDifferences:
        value = before += unzigzag(reader.varint());
        break;
      case kValues:
        value = unzigzag(reader.varint());
        break;
      case kOffsets:
        value = before + reader.bits(bits);
        break;
      default:
        value = reader.whole();
    }
  }
  reader.end_bits();
}

const Status& not_steps() {
  static const Status status = Status::data_loss("what came is not records of steps");
  return status;
}

}  // namespace

std::string pack_steps(std::span<const SentStep> steps) {
  std::string text;
  add_varint(steps.size(), text);
  if (steps.empty()) return text;
  std::vector<SentStep> rests(steps.begin(), steps.end());
  for (std::size_t i = 0; i < rests.size(); ++i) leave_rest(rests[i].record, i == 0 ? 0 : end_of(steps[i - 1].record));
  std::vector<Word> values(steps.size());
  for (const StepField* const field : columns()) {
    for (std::size_t i = 0; i < rests.size(); ++i) values[i] = word_in(field, rests[i]);
    add_column(values, text);
  }
  return text;
}

Result<std::vector<SentStep>> unpack_steps(std::string_view text) {
  Reader reader(text);
  const Word count = reader.varint();
  if (!reader.is_good() || count > kMostPackedSteps) return not_steps();
  std::vector<SentStep> steps(count);
  std::vector<Word> values(count);
  for (const StepField* const field : columns()) {
    if (count == 0) break;
    read_column(reader, values);
    if (!reader.is_good()) return not_steps();
    for (std::size_t i = 0; i < steps.size(); ++i) put(values[i], field, steps[i]);
  }
  if (!reader.is_at_end()) return not_steps();
  for (std::size_t i = 0; i < steps.size(); ++i) restore(steps[i].record, i == 0 ? 0 : end_of(steps[i - 1].record));
  return steps;
}

}  // namespace syncopate::experiments
