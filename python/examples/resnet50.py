"""ResNet-50 (He et al. 2016, table 1; with the stride in the 3 x 3 convolution), as a script of your own might have it.

    python -m syncopate.profile resnet50:make_model
"""

import torch
from torch import nn


class Bottleneck(nn.Module):
    """(N, inputs, H, W) to (N, 4 * width, H / stride, W / stride)."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        return torch.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """Images (N, 3, 224, 224) to scores (N, classes)."""

    def __init__(self, blocks=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)
        )
        layers, inputs = [], 64
        for stage, count in enumerate(blocks):
            width = 64 << stage
            for block in range(count):
                layers.append(Bottleneck(inputs, width, stride=2 if stage > 0 and block == 0 else 1))
                inputs = 4 * width
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x):
        return self.head(self.layers(self.stem(x)).mean((2, 3)))


def make_model(batch_size=8):
    """What syncopate.profile asks for: the model, a batch for it, and the loss of its scores."""
    torch.manual_seed(1)
    images, labels = torch.randn(batch_size, 3, 224, 224), torch.randint(0, 1000, (batch_size,))
    return ResNet(), images, lambda scores: nn.functional.cross_entropy(scores, labels)
