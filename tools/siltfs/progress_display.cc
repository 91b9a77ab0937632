#include "tools/siltfs/progress_display.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "store/env/process.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

constexpr int64_t kLineNanoseconds = 5'000'000'000;
constexpr uint64_t kBarWidth = 30;

// Returns the progress as a number from 0 to `parts`, rounded down.
uint64_t Share(const ProgressStep& step, uint64_t parts) {
  return std::min(
      parts, static_cast<uint64_t>(static_cast<double>(step.done) /
                                   static_cast<double>(step.total) * static_cast<double>(parts)));
}

}  // namespace

ProgressDisplay::ProgressDisplay(Surroundings& surroundings, Options options)
    : surroundings_(surroundings),
      options_(std::move(options)),
      subject_(Printable(options_.subject)),
      last_line_(surroundings.env.MonotonicNanoseconds()) {}

void ProgressDisplay::Show(const ProgressStep& step, bool asked) {
  if (options_.descriptor) {
    const Status written = WriteToDescriptor(
        *options_.descriptor,
        fmt::format("{} {} {} {}\n", step.number, step.done, step.total, subject_));
    // The write fails if the program that reads the lines has ended. The command then continues
    // without these lines.
    if (!written.ok()) options_.descriptor.reset();
  }
  if (asked) return ShowLine(step);
  if (options_.quiet) return;
  if (surroundings_.err_is_terminal) return ShowBar(step);
  if (surroundings_.env.MonotonicNanoseconds() - last_line_ >= kLineNanoseconds) ShowLine(step);
}

void ProgressDisplay::ShowBar(const ProgressStep& step) {
  std::string text;
  if (step.total == 0) {
    text = fmt::format("{} {}", step.name, step.done);
  } else {
    const uint64_t filled = Share(step, kBarWidth);
    text = fmt::format("{} [{}{}] {} %", step.name, std::string(filled, '#'),
                       std::string(kBarWidth - filled, ' '), Share(step, 100));
  }
  surroundings_.err << "\r\x1b[K" << text << std::flush;
  bar_shown_ = true;
}

void ProgressDisplay::ShowLine(const ProgressStep& step) {
  Clear();
  last_line_ = surroundings_.env.MonotonicNanoseconds();
  surroundings_.err << fmt::format(
      "siltfs {}: {}: {} {}{}\n", options_.command, subject_, step.name, step.done,
      step.total == 0 ? std::string() : fmt::format(" of {} ({} %)", step.total, Share(step, 100)));
  surroundings_.err.flush();
}

void ProgressDisplay::Clear() {
  if (!bar_shown_) return;
  surroundings_.err << "\r\x1b[K" << std::flush;
  bar_shown_ = false;
}

}  // namespace siltfs
