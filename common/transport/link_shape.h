// LinkShape: the network link that a run is to simulate. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate {

// One full-duplex link per process.
struct LinkShape {
  std::int64_t bits_per_second = 0;  // each way
  Duration delay{};                  // one way, for each message

  // "1gbit", "10Gb/s", "100mbit+5ms": a rate, then a time (common/text/quantity.h). Says what is wrong otherwise.
  static Result<LinkShape> parse(std::string_view text);
  static const char* forms();
  // In the form that parse() reads.
  std::string to_string() const;
  // "1 Gb/s each way a process, 5 ms one way"; `owner` is whose link it is.
  std::string describe(std::string_view owner = "a process") const;

  // Returns how long a message of this size, header and payload, occupies the link in one direction.
  Duration time_of(std::size_t message_bytes) const;

  // Returns the bytes of long messages that the link carries a second, each way.
  double payload_bytes_per_second() const;

  bool operator==(const LinkShape&) const = default;
};

// Returns the bytes that a message of this size, header and payload, takes on Ethernet under TCP: 1448 bytes per
// segment, each with 90 more. These are preamble, head, checksum and gap of a frame (8 + 14 + 4 + 12), IP's 20 and
// TCP's 32 with the time stamps that Linux sends. So a gigabit carries 941 Mb/s of payload. Acknowledgements are not
// counted.
std::size_t bytes_on_wire(std::size_t message_bytes);

}  // namespace syncopate
