// SecretText: a text that is a secret, such as that of RunKeys on its way to a process. What it held in memory is wiped
// when it goes or is given another one; who copies from view() has a copy to wipe.
#pragma once

#include <string>
#include <string_view>

namespace syncopate {

class SecretText {
 public:
  SecretText() = default;
  // `text`, and what comes behind it, as the end of its line.
  explicit SecretText(std::string_view text, std::string_view end = {});
  SecretText(const SecretText& other) : SecretText(other.view()) {}
  SecretText(SecretText&& other) noexcept : SecretText() { swap(other); }
  SecretText& operator=(SecretText other) noexcept {
    swap(other);
    return *this;
  }
  ~SecretText();

  std::string_view view() const { return text_; }

 private:
  void swap(SecretText& other) noexcept { text_.swap(other.text_); }

  std::string text_;  // grows never, and so leaves nothing behind elsewhere
};

}  // namespace syncopate
