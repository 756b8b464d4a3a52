"""An optimizer of the user's own, in a module that servers can import."""

import torch


class SignDescent(torch.optim.Optimizer):
    def __init__(self, params, lr, fails=False):
        super().__init__(params, {"lr": lr, "fails": fails})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            if group["fails"]:
                raise ArithmeticError("this optimizer fails")
            for parameter in group["params"]:
                parameter.add_(parameter.grad.sign(), alpha=-group["lr"])
