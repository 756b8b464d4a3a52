#include "experiments/cluster/control/packed_steps.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace syncopate::experiments {
namespace {

// A value of a step as 64 bits. Sums and differences wrap around, so that every value comes back.
using Word = std::uint64_t;

Word word_of(std::int64_t value) { return static_cast<Word>(value); }
Word word_of(int value) { return static_cast<Word>(value); }
Word word_of(Duration value) { return static_cast<Word>(value.count()); }
// A number of few digits, such as a share of 64 labels, has few bytes in this order.
Word word_of(double value) { return __builtin_bswap64(std::bit_cast<Word>(value)); }

template <typename T>
void put(Word word, T& value) {
  if constexpr (std::is_same_v<T, double>) {
    value = std::bit_cast<double>(Word{__builtin_bswap64(word)});
  } else if constexpr (std::is_same_v<T, Duration>) {
    value = Duration(static_cast<std::int64_t>(word));
  } else {
    value = static_cast<T>(word);
  }
}

struct Column {
  Word (*get)(const SentStep& step, const SentStep& before);
  void (*set)(Word word, SentStep& step, const SentStep& before);  // in the order of columns
};

template <auto member>
constexpr Column of_record() {
  return {[](const SentStep& step, const SentStep&) { return word_of(step.record.*member); },
          [](Word word, SentStep& step, const SentStep&) { put(word, step.record.*member); }};
}

template <auto member>
constexpr Column of_sync() {
  return {[](const SentStep& step, const SentStep&) { return word_of(step.record.sync.*member); },
          [](Word word, SentStep& step, const SentStep&) { put(word, step.record.sync.*member); }};
}

Word parts_of(const StepRecord& record) {
  return word_of(record.data) + word_of(record.forward) + word_of(record.backward) + word_of(record.straggle) +
         word_of(record.sync.exposed_wait) + word_of(record.sync.optimizer);
}

Word end_of(const StepRecord& record) { return word_of(record.end.time_since_epoch()); }

constexpr Column kTotal = {
    [](const SentStep& step, const SentStep&) { return word_of(step.record.total) - parts_of(step.record); },
    [](Word word, SentStep& step, const SentStep&) { put(word + parts_of(step.record), step.record.total); }};

constexpr Column kEnd = {[](const SentStep& step, const SentStep& before) {
                           return end_of(step.record) - end_of(before.record) - word_of(step.record.total);
                         },
                         [](Word word, SentStep& step, const SentStep& before) {
                           const Word end = word + end_of(before.record) + word_of(step.record.total);
                           step.record.end = TimePoint(Duration(static_cast<std::int64_t>(end)));
                         }};

constexpr Column kHasCoreWait = {
    [](const SentStep& step, const SentStep&) { return Word{step.record.core_wait.has_value()}; },
    [](Word word, SentStep& step, const SentStep&) {
      if (word != 0) step.record.core_wait.emplace();
    }};

constexpr Column kCoreWait = {
    [](const SentStep& step, const SentStep&) { return word_of(step.record.core_wait.value_or(Duration::zero())); },
    [](Word word, SentStep& step, const SentStep&) {
      if (step.record.core_wait) put(word, *step.record.core_wait);
    }};

constexpr Column kMembershipEpoch = {
    [](const SentStep& step, const SentStep&) { return word_of(step.membership_epoch); },
    [](Word word, SentStep& step, const SentStep&) { put(word, step.membership_epoch); }};

// A new column goes to the end. The parts stand before the total, and that before the end.
constexpr Column kColumns[] = {kMembershipEpoch,
                               of_record<&StepRecord::step>(),
                               of_record<&StepRecord::epoch>(),
                               of_record<&StepRecord::position>(),
                               of_record<&StepRecord::data>(),
                               of_record<&StepRecord::forward>(),
                               of_record<&StepRecord::backward>(),
                               of_record<&StepRecord::straggle>(),
                               of_sync<&SyncStats::exposed_wait>(),
                               of_sync<&SyncStats::optimizer>(),
                               kTotal,
                               kEnd,
                               kHasCoreWait,
                               kCoreWait,
                               of_record<&StepRecord::compute_core_wait>(),
                               of_record<&StepRecord::launch>(),
                               of_record<&StepRecord::samples>(),
                               of_record<&StepRecord::loss>(),
                               of_record<&StepRecord::accuracy>(),
                               of_sync<&SyncStats::communication>(),
                               of_sync<&SyncStats::codec>(),
                               of_sync<&SyncStats::backward_codec>(),
                               of_sync<&SyncStats::copy>(),
                               of_sync<&SyncStats::bytes_out>(),
                               of_sync<&SyncStats::bytes_in>(),
                               of_sync<&SyncStats::staleness_mean>(),
                               of_sync<&SyncStats::staleness_max>(),
                               of_sync<&SyncStats::dropped>(),
                               of_sync<&SyncStats::last_shard>(),
                               of_sync<&SyncStats::last_shard_alone>()};

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
  std::vector<Word> values(steps.size());
  const SentStep none;
  for (const Column& column : kColumns) {
    for (std::size_t i = 0; i < steps.size(); ++i) values[i] = column.get(steps[i], i == 0 ? none : steps[i - 1]);
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
  const SentStep none;
  for (const Column& column : kColumns) {
    if (count == 0) break;
    read_column(reader, values);
    if (!reader.is_good()) return not_steps();
    for (std::size_t i = 0; i < steps.size(); ++i) column.set(values[i], steps[i], i == 0 ? none : steps[i - 1]);
  }
  if (!reader.is_at_end()) return not_steps();
  return steps;
}

}  // namespace syncopate::experiments
