// Shows the progress of a long command: as a bar on a terminal, otherwise as a line every few
// seconds. If a descriptor is given, also writes lines to this descriptor, in the form that fsck(8)
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
  unsigned number = 0;  // 1, 2, ...
  std::string_view name;
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
  void ShowBar(const ProgressStep& step);
  void ShowLine(const ProgressStep& step);

  Surroundings& surroundings_;
  Options options_;
  const std::string subject_;  // escaped for display
  int64_t last_line_;
  bool bar_shown_ = false;
};

}  // namespace siltfs
