#include "experiments/cluster/faults/fault_record.h"

#include <fmt/format.h>

#include "common/text/format.h"

namespace syncopate::experiments {

std::string to_text(const FaultRecord& record) {
  std::string text = fmt::format("{}: {}", record.fault, record.outcome);
  if (!record.at) return text;
  if (!record.recovery.first) return text + "; no step was begun after it";
  return text + fmt::format("; training went on after {} ms, everywhere after {} ms",
                            format_ms(seconds(*record.recovery.first) * 1e3),
                            format_ms(seconds(*record.recovery.all) * 1e3));
}

}  // namespace syncopate::experiments
