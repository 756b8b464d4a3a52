// Console: what a person sees of a run. Progress goes to standard output, in a form that suits a terminal or a file;
// warnings go to standard error. All text is made printable, whatever its source, so that it cannot control the
// terminal. If output cannot be written (a closed pipe, a full disk), the output ends and the run goes on;
// output_status() tells at its end.
#pragma once

#include <cstdio>
#include <string>

#include "common/status.h"
#include "experiments/lab/report/plot.h"
#include "experiments/lab/report/progress.h"

namespace syncopate::experiments {

// Writes a text to standard output or error, at once. Returns false if it could not be written. All that this program
// writes there goes through here.
bool write_out(std::FILE* stream, const std::string& text);

// Returns resource exhausted, with the system's reason, if standard output could not be written since the program
// began: what was asked for is then not there. A reader that has gone away has asked for no more.
Status output_status();

// Sees to it that standard input, output and error are open, so that no other file takes their numbers: what was closed
// cannot be read or written. For the beginning of main.
void keep_standard_streams();

// Returns the width of standard output; zero if it is not a terminal.
int terminal_columns();

// Returns how plots are drawn on standard output, by what it is and by the environment.
PlotStyle terminal_plot_style();

class Console {
 public:
  // If `quiet`, shows only warnings.
  explicit Console(bool quiet = false);

  void say(const std::string& text);       // one line or several
  void show(const std::string& line);      // as a program has printed it
  void say_part(const std::string& text);  // part of a line that the next say() ends
  void draw(const std::string& plots);     // lines of plot_of(), which may have colours
  void warn(const std::string& text);      // to standard error
  // The same of what has happened in a run. If quiet, only the first few: the run's summary has them all.
  void event(const std::string& text);
  void progress(const Progress& progress, TimePoint now);
  void epoch_finished(const Progress& progress, TimePoint now);
  // `epochs` is the number of epochs of the whole run.
  void evaluated(const EvalRecord& eval, std::int64_t epochs);
  // What a program of the person's own says of itself, whose epochs are not known.
  void evaluated(const EvalRecord& eval);

 private:
  void print(const std::string& text);

  bool quiet_;
  int events_ = 0;
  bool ended_ = false;  // output has ended
  ProgressPrinter printer_;
};

}  // namespace syncopate::experiments
