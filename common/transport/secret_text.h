// SecretText: a text that is a secret, such as the text of RunKeys when it is sent to a process. Its memory is wiped
// when it is destroyed or assigned; a caller that copies from view() must wipe the copy.
#pragma once

#include <string>
#include <string_view>

namespace syncopate {

class SecretText {
 public:
  SecretText() = default;
  // Holds `text`, followed by `end`, such as the end of its line.
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

  std::string text_;  // never grows, and so leaves no copy behind
};

}  // namespace syncopate
