// Console: what a person sees of a run. Progress goes to standard output as it fits a terminal or a file; what went
// wrong to standard error. Text is made printable, whoever it comes from: nothing in it drives the terminal. Where
// nobody reads it any more (a closed pipe), or it cannot be written (a full disk), that ends the output and not the
// run.
#pragma once

#include <cstdio>
#include <string>

#include "experiments/lab/report/progress.h"

namespace syncopate::experiments {

// A text to standard output or error, at once. False if it could not be written.
bool write_out(std::FILE* stream, const std::string& text);

// Of standard output; zero if it is no terminal.
int terminal_columns();

class Console {
 public:
  // With `quiet`, shows warnings and nothing else.
  explicit Console(bool quiet = false);

  void say(const std::string& text);       // a line, or several
  void say_part(const std::string& text);  // of a line that the next say() ends
  void warn(const std::string& text);      // to standard error
  void progress(const Progress& progress, TimePoint now);
  void epoch_finished(const Progress& progress, TimePoint now);
  // Of `epochs`.
  void evaluated(const EvalRecord& eval, std::int64_t epochs);

 private:
  void print(const std::string& text);

  bool quiet_;
  bool ended_ = false;  // output
  ProgressPrinter printer_;
};

}  // namespace syncopate::experiments
