#include "prediction/timed_model.h"

namespace syncopate::prediction {

TimedModel timed_model(const ModelProfile& profile, double compute) {
  double flops = 0;
  for (const TensorProfile& tensor : profile.tensors) flops += tensor.forward_flops;
  const double count = static_cast<double>(profile.tensors.size());
  const double stretch = profile.has_times() ? compute / profile.step_seconds() : 0;
  TimedModel model;
  for (const TensorProfile& tensor : profile.tensors) {
    model.bytes.push_back(static_cast<double>(sizeof(float)) * static_cast<double>(tensor.parameters));
    model.is_vector.push_back(tensor.shape.size() == 1);
    if (profile.has_times()) {
      model.forward.push_back(tensor.forward_seconds * stretch);
      model.backward.push_back(tensor.backward_seconds * stretch);
    } else {
      const double part = flops > 0 ? tensor.forward_flops / flops : 1 / count;
      model.forward.push_back(compute / 3 * part);
      model.backward.push_back(2 * model.forward.back());
    }
  }
  return model;
}

}  // namespace syncopate::prediction
