// The published claims about convergence that runs of ours are held against (prediction/published/convergence.csv), and
// the runs: small jobs on a simulated cluster, alike at every call. Pure.
//
// Settings of ours were searched for, once: a learning rate, how irregular workers are, and a model that learns within
// a second. What is claimed is that there are such settings, for all seeds that are run.
#pragma once

#include <vector>

#include "experiments/lab/convergence/convergence_table.h"

namespace syncopate::experiments {

inline constexpr int kConvergenceSeeds = 3;  // of each setting: 1, 2 and 3

// Zhang, Gupta, Lian and Liu 2016, "Staleness-aware async-SGD for distributed deep learning", section 4.3: many workers
// under softsync fail at the base rate, and learn at the rate over the staleness.
ConvergenceTable softsync_claim();

// NicolasRR/OptML: parameter servers on Fashion-MNIST, the training set divided at random or by label. LeNet-5 and a
// CNN, for which ours are an mlp of two hidden layers and one of four. On generated digits, or on Fashion-MNIST.
enum class LabelsData { kDigits, kFashionMnist };
ConvergenceTable labels_claim(LabelsData data);
ConvergenceTable deep_labels_claim(LabelsData data);

}  // namespace syncopate::experiments
