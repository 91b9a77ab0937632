#include "tools/siltfs/watch_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <memory>
#include <optional>
#include <ostream>
#include <utility>

#include "fs/control/activity_json.h"
#include "fs/control/protocol.h"
#include "store/base/thread_annotations.h"
#include "store/env/process.h"
#include "store/superblock/superblock.h"
#include "tools/siltfs/interruption.h"
#include "tools/siltfs/monitored_store.h"
#include "tools/siltfs/store_place.h"
#include "tools/siltfs/watch_report.h"

namespace siltfs {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortest{100};
constexpr milliseconds kLongest{3'600'000};
// How often the daemon is asked whether the mount is still there.
constexpr milliseconds kProbe{1000};
constexpr size_t kLinesPerTitle = 20;

// A pause that the interruption ends.
class Pause {
 public:
  explicit Pause(Interruption& interruption) : interruption_(interruption) {
    interruption_.OnRequest([this] {
      const MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    });
  }
  ~Pause() { interruption_.OnRequest({}); }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  // False if the interruption has ended it.
  bool For(milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    const MutexLock lock(mutex_);
    while (!ended_) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= left.zero()) return true;
      changed_.WaitFor(mutex_, std::chrono::ceil<milliseconds>(left));
    }
    return false;
  }

 private:
  Interruption& interruption_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
};

class Watch {
 public:
  Watch(const control::DaemonAddress& address, milliseconds interval, bool json,
        Surroundings& surroundings)
      : address_(address),
        interval_(interval),
        json_(json),
        surroundings_(surroundings),
        view_(address.store, address.mountpoint, static_cast<uint64_t>(interval.count())) {}

  ExitCode Run() {
    const auto signals = TerminationSignals::Block();
    if (!signals.ok()) return Fail(surroundings_, signals.status());
    Interruption interruption(**signals);
    Pause pause(interruption);
    const auto first = Begin();
    if (!first.ok()) return Fail(surroundings_, first.status());
    StoreActivityReport before = *first;
    while (true) {
      const auto present = Wait(pause);
      if (!present.ok()) return End(present.status());
      if (!*present) return ExitCode::kInterrupted;
      const auto after = Read();
      if (!after.ok()) return End(after.status());
      Show(Between(before, *after));
      if (!surroundings_.out) return ExitCode::kDone;  // RunSiltfs reports the failed write
      before = *after;
    }
  }

 private:
  Result<StoreActivityReport> Read() {
    auto json = control::Ask(address_, "activity");
    if (json.ok()) return ActivityFromJson(*json);
    if (!json.status().Is(StatusCode::kInvalidArgument)) return std::move(json).status();
    return Status(StatusCode::kUnsupported,
                  "the daemon is of an earlier version, which does not report its activity; "
                  "unmount the store and mount it again")
        .At(Place());
  }

  // The first reading. The store must be mounted.
  Result<StoreActivityReport> Begin() {
    const auto daemon =
        address_.device.empty() ? control::Identify(address_) : IdentifyServer(address_, {});
    if (daemon.ok() && daemon->state == control::kMounted) {
      pid_ = daemon->pid;
      return Read();
    }
    if (daemon.status().Is(StatusCode::kStale) && !address_.mountpoint.empty())
      return daemon.status();
    if (!daemon.ok() && !control::IsGone(daemon.status())) return daemon.status();
    daemon.status().IgnoreError("the store is not mounted");
    SILTFS_RETURN_IF_ERROR(
        ReadSuperblock(surroundings_.env, address_.store, StoreAccess::kReadOnly).status());
    return Status(
               StatusCode::kUnsupported,
               "is not mounted; --watch shows what a mounted store does, and siltfs stat without "
               "--watch shows what it holds")
        .At(Place());
  }

  // OK while the daemon serves the mount. kAborted after the unmount.
  Status CheckMounted() {
    SILTFS_ASSIGN_OR_RETURN(const control::Identity daemon, control::Identify(address_));
    const bool served =
        address_.device.empty() || !daemon.mounts || ServedMountOf(address_, daemon).has_value();
    if (daemon.pid == pid_ && daemon.state == control::kMounted && served) return Status::Ok();
    return {StatusCode::kAborted, "the mount has ended"};
  }

  // Waits until the end of the interval. False if a signal has ended it.
  Result<bool> Wait(Pause& pause) {
    for (milliseconds left = interval_; left.count() > 0;) {
      const milliseconds step = std::min(left, kProbe);
      if (!pause.For(step)) return false;
      left -= step;
      SILTFS_RETURN_IF_ERROR(CheckMounted());
    }
    return true;
  }

  // The end of the mount. If the mount is still there, its daemon has crashed or does not answer.
  ExitCode End(const Status& why) {
    const bool gone = control::IsGone(why);
    if (!gone) return Fail(surroundings_, why);
    if (!address_.mountpoint.empty()) {
      const auto mount = FindMount(address_.mountpoint);
      const bool there = mount.ok() && *mount && (*mount)->device == address_.device;
      if (!mount.ok()) mount.status().IgnoreError("the mountpoint cannot be reached");
      if (there) {
        return Fail(surroundings_, ExitCode::kFailed,
                    fmt::format("{}: the daemon of this mount has ended, and its mount is left; "
                                "\"siltfs umount {}\" removes it",
                                Place(), Place()));
      }
    } else if (why.Is(StatusCode::kStale)) {
      return Fail(surroundings_, ExitCode::kFailed, why.ToString());
    }
    Say(surroundings_, fmt::format("{}: was unmounted", Place()));
    return ExitCode::kDone;
  }

  std::string Place() const {
    return address_.mountpoint.empty() ? address_.store : address_.mountpoint;
  }

  void Show(const WatchInterval& interval) {
    const int64_t now = surroundings_.env.NowNanoseconds();
    if (json_) {
      surroundings_.out << WatchToJson(interval, static_cast<double>(now) / 1e9).dump() << "\n"
                        << std::flush;
      return;
    }
    const std::string clock =
        fmt::format("{:%H:%M:%S}", fmt::localtime(static_cast<std::time_t>(now / 1'000'000'000)));
    const TextStyle style = StyleOfOut(surroundings_);
    if (style.interactive) {
      view_.Add(interval);
      Redraw(view_.Draw(clock, style));
      return;
    }
    if (shown_++ % kLinesPerTitle == 0) surroundings_.out << WatchTitles();
    surroundings_.out << WatchLine(interval, clock) << std::flush;
  }

  // Moves the cursor up to the first line of the last picture, and erases everything below.
  void Redraw(const std::string& picture) {
    std::string text;
    if (drawn_lines_ > 0) text = fmt::format("\x1b[{}F\x1b[J", drawn_lines_);
    surroundings_.out << text << picture << std::flush;
    drawn_lines_ = std::count(picture.begin(), picture.end(), '\n');
  }

  const control::DaemonAddress address_;
  const milliseconds interval_;
  const bool json_;
  Surroundings& surroundings_;
  WatchView view_;
  int64_t pid_ = 0;
  size_t shown_ = 0;
  std::ptrdiff_t drawn_lines_ = 0;
};

}  // namespace

Result<milliseconds> ParseWatchInterval(const std::string& text) {
  double seconds = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = error == std::errc() && rest == text.data() + text.size();
  const double milliseconds_of = seconds * 1000;
  if (is_number && milliseconds_of >= static_cast<double>(kShortest.count()) &&
      milliseconds_of <= static_cast<double>(kLongest.count()))
    return milliseconds(static_cast<int64_t>(milliseconds_of + 0.5));
  return Status(StatusCode::kInvalidArgument,
                fmt::format("--watch: \"{}\" is not a number of seconds from 0.1 to {}", text,
                            kLongest.count() / 1000));
}

ExitCode WatchStore(const control::DaemonAddress& address, milliseconds interval, bool json,
                    Surroundings& surroundings) {
  return Watch(address, interval, json, surroundings).Run();
}

}  // namespace siltfs
