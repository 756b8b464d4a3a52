// The form of samples of texts: a window of characters; each but the first is to be predicted from those before it.
#pragma once

#include "worker/data/dataset.h"

namespace syncopate::worker {

inline constexpr int kUsualContext = 64;
inline constexpr int kLongestContext = 4096;

inline SampleForm form_of_text(int context, int characters) {
  return {.image = {}, .classes = characters, .ids = {{"token", context, characters}}, .labels = context};
}

// Returns whether the samples are texts.
inline bool is_text(const SampleForm& form) {
  return form.values() == 0 && form.ids.size() == 1 && form.ids.front().name == "token";
}

}  // namespace syncopate::worker
