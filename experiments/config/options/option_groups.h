// Parts of the option table that have files of their own. Each function appends its options.
#pragma once

#include <vector>

#include "experiments/config/options/option_table.h"

namespace syncopate::experiments {

void add_command_option(std::vector<OptionSpec>& table);
// What is passed on to programs on all hosts as it is, and what NCCL has of that.
void add_pass_through_options(std::vector<OptionSpec>& table);
void add_nccl_options(std::vector<OptionSpec>& table);
void add_ps_options(std::vector<OptionSpec>& table);
void add_data_options(std::vector<OptionSpec>& table);
void add_recommender_options(std::vector<OptionSpec>& table);
void add_allreduce_options(std::vector<OptionSpec>& table);
void add_simulation_options(std::vector<OptionSpec>& table);
void add_link_options(std::vector<OptionSpec>& table);
void add_compression_options(std::vector<OptionSpec>& table);
void add_checkpoint_options(std::vector<OptionSpec>& table);
void add_evaluation_options(std::vector<OptionSpec>& table);
void add_fault_options(std::vector<OptionSpec>& table);
void add_survival_options(std::vector<OptionSpec>& table);
void add_host_options(std::vector<OptionSpec>& table);
void add_trace_options(std::vector<OptionSpec>& table);
void add_watch_options(std::vector<OptionSpec>& table);

// Marks those that have an effect on a program of the person's own.
void mark_options_with_command(std::vector<OptionSpec>& table);

}  // namespace syncopate::experiments
