// ClosedInChildren: a descriptor of this process that the children which it forks do not have. A connection tells of a
// process's end only once nobody holds it any more, and a child that only forks, as workers of data loaders do, would
// hold it for as long as it lives.
//
// In a child the number stays taken, by /dev/null, so that whoever closes it there closes nothing else.
#pragma once

namespace syncopate {

class ClosedInChildren {
 public:
  // From now on; the caller keeps the descriptor open at least as long as this lives. Any thread.
  explicit ClosedInChildren(int descriptor);
  ~ClosedInChildren();
  ClosedInChildren(const ClosedInChildren&) = delete;
  ClosedInChildren& operator=(const ClosedInChildren&) = delete;

 private:
  const int descriptor_;
};

}  // namespace syncopate
