#include "library/process_input.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace syncopate::library {

bool write_to_process(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = send(file, text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == ENOTSOCK) count = write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace syncopate::library
