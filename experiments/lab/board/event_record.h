// Events in the form in which TensorBoard's files have them. Pure.
//
// A file is a sequence of records (TFRecord, tensorflow/core/lib/io/record_writer.h):
//
//   8 bytes  length of the event, little-endian
//   4 bytes  masked CRC-32C of these 8
//   n bytes  the event, a Protocol Buffers message (event.proto)
//   4 bytes  masked CRC-32C of these n
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "experiments/lab/board/event.pb.h"

namespace syncopate::experiments {

// Returns the CRC-32C of these bytes (Castagnoli; RFC 3720, appendix B.4): 0xE3069283 of "123456789".
std::uint32_t crc32c(std::string_view bytes);
// Returns the same, rotated and shifted, so that a checksum of bytes that have a checksum among them is worth something
// (tensorflow/core/lib/hash/crc32c.h).
std::uint32_t masked_crc32c(std::string_view bytes);

// Returns the record of an event.
std::string event_record(const board::Event& event);

// Returns the event with which each file begins.
board::Event version_event(double wall_time);

// Return a summary's value, to be put into an event.
board::Summary::Value scalar_value(std::string_view tag, double value);
// `values` are counted in buckets of equal width between the least and the largest, as tf.summary.histogram counts
// them: 30, or one where all are equal. There must be one value at least.
board::Summary::Value histogram_value(std::string_view tag, std::span<const double> values);
// A text, which is shown as Markdown.
board::Summary::Value text_value(std::string_view tag, const std::string& text);

}  // namespace syncopate::experiments
