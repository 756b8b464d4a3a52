// OuterMomentum: what workers have come to on their own since their last meeting is, as a difference of weights, the
// gradient of a momentum's step from there. That is SlowMo (Wang, Tantia, Ballas and Rabbat 2020, "SlowMo: Improving
// communication-efficient distributed SGD with slow momentum", algorithm 1), where workers keep the state of their own
// optimizers. In Nesterov's form it is the outer optimizer of DiLoCo (Douillard et al. 2023, "DiLoCo: Distributed
// low-communication training of language models", algorithm 1).
#pragma once

namespace syncopate::allreduce {

struct OuterMomentum {
  float momentum = 0.9f;  // SlowMo's beta
  double rate = 1;        // SlowMo's alpha
  // DiLoCo's form. SlowMo's divides what workers have come to by their learning rate, and multiplies its step by it.
  bool nesterov = false;
};

}  // namespace syncopate::allreduce
