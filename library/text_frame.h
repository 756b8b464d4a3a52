// How members of a rendezvous write to each other: a list of texts as one frame of bytes. What comes from a socket may
// be anything, so that the reader refuses what no member writes before it keeps it. Pure.
//
//   8 bytes   "syncopa1"
//   u32       the bytes that follow
//   texts     u32 length, bytes
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate::library {

std::string frame_of(const std::vector<std::string>& texts);

// Reads a frame that `bytes` begin with. Returns nothing if more is to come. Fails with data loss if it cannot become a
// frame of at most `longest` bytes behind its length, and nothing behind it.
Result<std::optional<std::vector<std::string>>> read_frame(std::string_view bytes, std::size_t longest);

}  // namespace syncopate::library
