// An examination of hosts, for a person, in lines of 80 columns, and as JSON. Pure.
#pragma once

#include <span>
#include <string>

#include "experiments/cluster/doctor/examination.h"
#include "experiments/lab/doctor/diagnosis_of_hosts.h"

namespace syncopate::experiments {

std::string doctor_text(const Examination& examination, std::span<const Finding> findings);
std::string doctor_json(const Examination& examination, std::span<const Finding> findings);

}  // namespace syncopate::experiments
