#include "fs/fuse/adaptive_poll.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

namespace siltfs::fuse {
namespace {

// Weight of one count in the mean.
constexpr double kWeight = 1.0 / 8;

}  // namespace

RunnableThreads::RunnableThreads() : descriptor_(open("/proc/loadavg", O_RDONLY | O_CLOEXEC)) {}

RunnableThreads::~RunnableThreads() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::optional<unsigned> RunnableThreads::Count() const {
  std::array<char, 128> buffer;
  const ssize_t got = pread(descriptor_, buffer.data(), buffer.size(), 0);
  if (got <= 0) return std::nullopt;
  // "0.20 0.18 0.12 1/80 11206": proc(5)
  std::string_view text(buffer.data(), static_cast<size_t>(got));
  for (int field = 0; field < 3; ++field) {
    const size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    text.remove_prefix(blank + 1);
  }
  unsigned count = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count);
  if (parsed.ec != std::errc()) return std::nullopt;
  return count;
}

bool AdaptivePoll::Begin(Time now) {
  began_ = now;
  if (!soon_ || processors_ < 2) return false;
  if (!mean_runnable_ || now - counted_ >= kBetweenCounts) CountRunnable(now);
  return mean_runnable_ && *mean_runnable_ <= processors_;
}

void AdaptivePoll::CountRunnable(Time now) {
  counted_ = now;
  const auto count = runnable_();
  if (count && mean_runnable_) {
    *mean_runnable_ += (*count - *mean_runnable_) * kWeight;
  } else {
    mean_runnable_ = count;
  }
}

}  // namespace siltfs::fuse
