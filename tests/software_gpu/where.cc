#include "tests/software_gpu/where.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>

// Where the linker has put this library.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[], _end[];

namespace software_gpu {

const void* caller() {
  std::array<void*, 16> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  const auto* const found = std::find_if(frames.begin(), frames.begin() + count, [](const void* frame) {
    return frame < static_cast<const void*>(__ehdr_start) || frame >= static_cast<const void*>(_end);
  });
  return found == frames.begin() + count ? nullptr : *found;
}

std::string place_in_source(const void* returns_to) {
  const auto* const address = static_cast<const char*>(returns_to) - 1;
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return "an unknown place";
  // The program's own name, too, may be relative.
  const std::string file =
      map->l_name[0] == '\0' ? std::filesystem::read_symlink("/proc/self/exe").string() : info.dli_fname;
  std::array<char, 64> offset{};
  std::snprintf(offset.data(), offset.size(), "0x%zx",
                static_cast<std::size_t>(address - reinterpret_cast<const char*>(map->l_addr)));
  std::FILE* const asked = popen(("addr2line -C -f -p -s -e '" + file + "' " + offset.data() + " 2>&1").c_str(), "r");
  if (asked == nullptr) return file + "+" + offset.data();
  std::string said;
  std::array<char, 1024> part{};
  while (std::fgets(part.data(), part.size(), asked) != nullptr) said += part.data();
  pclose(asked);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said.empty() ? file + "+" + offset.data() : said;
}

}  // namespace software_gpu
