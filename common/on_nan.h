// OnNan: what a run does when something in it is not a finite number: a loss, a gradient, a weight or a rate that is
// NaN or infinite.
#pragma once

namespace syncopate {

enum class OnNan {
  kStop,  // the run ends
  kSkip,  // the step makes no update, on any replica
  kGoOn,  // it is told, and training goes on
};

// Returns "stop", "skip" or "go-on".
inline const char* name_of(OnNan value) {
  switch (value) {
    case OnNan::kStop:
      return "stop";
    case OnNan::kSkip:
      return "skip";
    case OnNan::kGoOn:
      return "go-on";
  }
  return "";
}

}  // namespace syncopate
