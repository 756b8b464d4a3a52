#include "common/transport/secret_text.h"

#include <sodium.h>

namespace syncopate {

SecretText::SecretText(std::string_view text, std::string_view end) {
  text_.reserve(text.size() + end.size());
  text_.append(text).append(end);
}

SecretText::~SecretText() { sodium_memzero(text_.data(), text_.capacity()); }

}  // namespace syncopate
