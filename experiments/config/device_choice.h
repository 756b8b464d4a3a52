// The device that --device names where nothing runs on it: one of the table, or what a file says of another.
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"
#include "prediction/device_rates.h"

namespace syncopate::experiments {

// Reads a TOML file with these lines, of which launch and source may be left out, and all but one of the precisions:
//
//   name = "my card"
//   fp32 = "19.5TFLOPS"       # products a second, a multiply and an add counted as two; also tf32, bf16, fp16
//   bandwidth = "2039GB/s"    # of its memory
//   memory = "80GB"
//   launch = "7us"            # the host's time to give it a kernel; 6.9us unless said
//   source = "a data sheet"
//
// The text is not trusted. Fails with invalid argument, naming the entry and what would be right.
Result<prediction::DeviceRates> read_device(std::string_view toml);

// Returns a device of the table by its name, or that of a file whose name ends in .toml. Fails with invalid argument
// for an unknown name, listing all, and for a file that cannot be read or that read_device() refuses.
Result<prediction::DeviceRates> open_device(const std::string& name_or_file);

}  // namespace syncopate::experiments
