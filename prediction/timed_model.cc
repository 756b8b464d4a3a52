#include "prediction/timed_model.h"

namespace syncopate::prediction {

TimedModel timed_model(const ModelProfile& profile, double compute) {
  double flops = 0;
  for (const TensorProfile& tensor : profile.tensors) flops += tensor.forward_flops;
  const double count = static_cast<double>(profile.tensors.size());
  TimedModel model;
  for (const TensorProfile& tensor : profile.tensors) {
    model.bytes.push_back(static_cast<double>(sizeof(float)) * static_cast<double>(tensor.parameters));
    model.forward.push_back(compute / 3 * (flops > 0 ? tensor.forward_flops / flops : 1 / count));
  }
  return model;
}

}  // namespace syncopate::prediction
