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
constexpr int64_t kSecond = 1'000'000'000;
// A step that has run for a shorter time does not tell how fast it is.
constexpr int64_t kLeastForEstimate = 2 * kSecond;

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
  const int64_t now = surroundings_.env.MonotonicNanoseconds();
  Enter(step, now);
  if (asked) return ShowLine(step, now);
  if (options_.quiet) return;
  if (surroundings_.err_is_terminal) return ShowBar(step, now);
  if (now - last_line_ >= kLineNanoseconds) ShowLine(step, now);
}

void ProgressDisplay::Enter(const ProgressStep& step, int64_t now) {
  if (step.name == step_ && step.done >= first_done_) return;
  step_ = step.name;
  first_done_ = step.done;
  step_begin_ = now;
}

std::string ProgressDisplay::Time(const ProgressStep& step, int64_t now) const {
  const int64_t elapsed = now - step_begin_;
  if (elapsed < kLeastForEstimate) return "";
  if (step.total == 0)
    return fmt::format(", {} so far", FormatTime(static_cast<uint64_t>(elapsed / kSecond)));
  if (step.done <= first_done_ || step.done >= step.total) return "";
  const double left = static_cast<double>(elapsed) / static_cast<double>(kSecond) *
                      static_cast<double>(step.total - step.done) /
                      static_cast<double>(step.done - first_done_);
  constexpr double kMost = 1e9;
  return fmt::format(", about {} left", FormatTime(static_cast<uint64_t>(std::min(left, kMost))));
}

void ProgressDisplay::ShowBar(const ProgressStep& step, int64_t now) {
  std::string text;
  if (step.name.empty()) {
    text = "running";
  } else if (step.total == 0) {
    text = fmt::format("{} {}", step.name, step.done);
  } else {
    const uint64_t filled = Share(step, kBarWidth);
    text = fmt::format("{} [{}{}] {} %", step.name, std::string(filled, '#'),
                       std::string(kBarWidth - filled, ' '), Share(step, 100));
  }
  text += Time(step, now);
  surroundings_.err << "\r\x1b[K" << text << std::flush;
  bar_shown_ = true;
}

void ProgressDisplay::ShowLine(const ProgressStep& step, int64_t now) {
  Clear();
  last_line_ = now;
  std::string text = "running";
  if (!step.name.empty()) text = fmt::format("{} {}", step.name, step.done);
  if (step.total != 0) text += fmt::format(" of {} ({} %)", step.total, Share(step, 100));
  surroundings_.err << fmt::format("siltfs {}: {}: {}{}\n", options_.command, subject_, text,
                                   Time(step, now));
  surroundings_.err.flush();
}

void ProgressDisplay::Clear() {
  if (!bar_shown_) return;
  surroundings_.err << "\r\x1b[K" << std::flush;
  bar_shown_ = false;
}

std::string FormatTime(uint64_t seconds) {
  constexpr uint64_t kMinute = 60;
  constexpr uint64_t kHour = 60 * kMinute;
  if (seconds < 2 * kMinute) return fmt::format("{} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{} min", seconds / kMinute);
  if (seconds < 48 * kHour)
    return fmt::format("{} h {} min", seconds / kHour, seconds % kHour / kMinute);
  return fmt::format("{} days", seconds / (24 * kHour));
}

}  // namespace siltfs
