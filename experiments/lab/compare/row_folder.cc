#include "experiments/lab/compare/row_folder.h"

#include <algorithm>
#include <cctype>

namespace syncopate::experiments {

std::string folder_of(std::string label) {
  std::ranges::replace_if(
      label,
      [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return std::isalnum(byte) == 0 && c != '.' && c != '_' && c != '+';
      },
      '-');
  return label;
}

}  // namespace syncopate::experiments
