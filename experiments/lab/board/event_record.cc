#include "experiments/lab/board/event_record.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

namespace syncopate::experiments {
namespace {

constexpr std::uint32_t kCastagnoli = 0x82F63B78;  // the polynomial 0x1EDC6F41, its bits reversed

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kCastagnoli : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kCrcTable = make_crc_table();

template <typename T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

std::string event_record(const board::Event& event) {
  const std::string data = event.SerializeAsString();
  const std::string length = little_endian<std::uint64_t>(data.size());
  return length + little_endian(masked_crc32c(length)) + data + little_endian(masked_crc32c(data));
}

board::Event version_event(double wall_time) {
  board::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version("brain.Event:2");
  return event;
}

board::Summary::Value scalar_value(std::string_view tag, double value) {
  board::Summary::Value scalar;
  scalar.set_tag(std::string(tag));
  scalar.set_simple_value(static_cast<float>(value));
  return scalar;
}

board::Summary::Value histogram_value(std::string_view tag, std::span<const double> values) {
  assert(!values.empty());
  constexpr std::size_t kBuckets = 30;
  const auto [least, most] = std::ranges::minmax(values);
  const std::size_t buckets = most > least ? kBuckets : 1;
  const double width = (most - least) / static_cast<double>(buckets);
  std::vector<double> counts(buckets);
  board::Summary::Value value;
  value.set_tag(std::string(tag));
  board::Histogram& histogram = *value.mutable_histo();
  double sum = 0, sum_squares = 0;
  for (const double one : values) {
    const auto bucket = width > 0 ? static_cast<std::size_t>((one - least) / width) : 0;
    ++counts[std::min(bucket, buckets - 1)];
    sum += one;
    sum_squares += one * one;
  }
  histogram.set_min(least);
  histogram.set_max(most);
  histogram.set_num(static_cast<double>(values.size()));
  histogram.set_sum(sum);
  histogram.set_sum_squares(sum_squares);
  for (std::size_t i = 0; i < buckets; ++i) {
    histogram.add_bucket_limit(i + 1 == buckets ? most : least + width * static_cast<double>(i + 1));
    histogram.add_bucket(counts[i]);
  }
  return value;
}

board::Summary::Value text_value(std::string_view tag, const std::string& text) {
  constexpr int kString = 7;       // DT_STRING of types.proto
  constexpr int kTensorClass = 2;  // DATA_CLASS_TENSOR of summary.proto
  board::Summary::Value value;
  value.set_tag(std::string(tag));
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value.mutable_metadata()->set_data_class(kTensorClass);
  board::Tensor& tensor = *value.mutable_tensor();
  tensor.set_dtype(kString);
  tensor.mutable_tensor_shape()->add_dim()->set_size(1);
  tensor.add_string_val(text);
  return value;
}

}  // namespace syncopate::experiments
