// Shows the progress of a long command: as a bar on a terminal, otherwise as a line every few
// seconds. Both say about how long the step still takes, or how long it has taken if its end is not
// known. If a descriptor is given, also writes lines to this descriptor, in the form that fsck(8)
// reads.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/siltfs/command.h"

namespace siltfs {

struct ProgressStep {
  unsigned number = 0;    // 1, 2, ...
  std::string_view name;  // what is counted; empty: nothing is
  uint64_t done = 0;
  uint64_t total = 0;  // 0: not known
};

class ProgressDisplay {
 public:
  struct Options {
    std::string command;            // "fsck"
    std::string subject;            // a path
    bool quiet = false;             // print only the lines that SIGUSR1 asks for
    std::optional<int> descriptor;  // gets lines "NUMBER DONE TOTAL SUBJECT"
  };
  ProgressDisplay(Surroundings& surroundings, Options options);

  // `asked`: the user has sent SIGUSR1, so a line is printed at once, even with `quiet`.
  void Show(const ProgressStep& step, bool asked);
  // Removes the bar. Call it before other output, and at the end.
  void Clear();

 private:
  void Enter(const ProgressStep& step, int64_t now);
  // ", about 3 min left" or ", 3 min so far"; empty if it is too early to tell.
  std::string Time(const ProgressStep& step, int64_t now) const;
  void ShowBar(const ProgressStep& step, int64_t now);
  void ShowLine(const ProgressStep& step, int64_t now);

  Surroundings& surroundings_;
  Options options_;
  const std::string subject_;  // escaped for display
  int64_t last_line_;
  bool bar_shown_ = false;
  // The step that is shown, and where it was when it began.
  std::optional<std::string> step_;
  uint64_t first_done_ = 0;
  int64_t step_begin_ = 0;
};

// A time in the form "45 s", "12 min" or "3 h 20 min", for people.
std::string FormatTime(uint64_t seconds);

}  // namespace siltfs
