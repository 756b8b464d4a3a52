// Allreduce against parameter servers, each synchronous and with its best choice, and which of them would be ahead if
// links, the number of workers or that of servers were another. Pure.
#pragma once

#include <functional>
#include <vector>

#include "prediction/advice/lead.h"
#include "prediction/advice/search.h"

namespace syncopate::prediction {

class Contest {
 public:
  // The space for so many workers, all else equal. Its values must be in predict_step()'s ranges.
  using SpaceOf = std::function<SearchSpace(int workers)>;

  // `job` is kept by reference. Allreduce is the first of the two.
  Contest(const AdvisedJob& job, const Network& network, SpaceOf space_of, const Errors& errors);

  const Errors& errors() const { return errors_; }

  // For links of `low` to `high` bytes a second, 0 < low < high; see stretches().
  std::vector<Stretch> over_links(double low, double high) const;
  // Up to `most` workers, asked at the network's number, doubled and halved: other numbers may have an allreduce that
  // is worse, as halving-doubling is for all but powers of two. See whole_stretches().
  std::vector<Stretch> over_workers(int most) const;
  // For 1 to `most` servers, all on hosts of their own, asked at powers of two.
  std::vector<Stretch> over_servers(int most) const;

  // The same contest between forms that are never wrong: the lead changes where the two cross.
  Contest without_errors() const { return {job_, network_, space_of_, {}}; }

 private:
  Scores scores(const Network& network, SearchSpace space) const;

  const AdvisedJob& job_;
  Network network_;
  SpaceOf space_of_;
  Errors errors_;
};

}  // namespace syncopate::prediction
