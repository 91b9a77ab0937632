// Shows the progress of a long command: as a bar on a terminal, otherwise as a line every few
// seconds. On request it also writes lines for a program to read, in fsck(8)'s form.
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
    bool quiet = false;             // print only requested lines
    std::optional<int> descriptor;  // "NUMBER DONE TOTAL SUBJECT" is written to it
  };
  ProgressDisplay(Surroundings& surroundings, Options options);

  // If `asked`, prints a line now.
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
