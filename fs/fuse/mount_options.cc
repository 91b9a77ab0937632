#include "fs/fuse/mount_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "store/base/size_text.h"

namespace siltfs {
namespace {

struct Option {
  std::string_view name;
  std::optional<std::string_view> value;
};

// A flag (`on`) and its opposite (`off`). If both are given, the last one counts. The option that
// counts is passed on to libfuse. Only `off` is not passed on if it is the default.
struct KernelFlag {
  std::string_view on;
  std::string_view off;
  bool off_is_default = true;
};
constexpr std::array<KernelFlag, 6> kKernelFlags = {{
    {"nosuid", "suid", /*off_is_default=*/false},
    {"nodev", "dev", /*off_is_default=*/false},
    {"noexec", "exec"},
    {"sync", "async"},
    {"noatime", "atime"},
    {"dirsync", ""},
}};

// Options for mount(8) and /etc/fstab, and options about access times, which the kernel does not
// maintain for FUSE mounts.
constexpr std::array<std::string_view, 24> kIgnored = {
    "defaults",      "auto",     "noauto",     "user",     "nouser",     "users",
    "nousers",       "owner",    "noowner",    "group",    "nogroup",    "_netdev",
    "nofail",        "relatime", "norelatime", "diratime", "nodiratime", "strictatime",
    "nostrictatime", "lazytime", "nolazytime", "silent",   "loud",       "default_permissions",
};
constexpr std::array<std::string_view, 5> kIgnoredPrefixes = {"x-", "X-",
                                                              "comment=", "user=", "uhelper="};

// Options with a value that siltfs acts on, and those without.
constexpr std::array<std::string_view, 16> kValues = {"index_memory",
                                                      "index_merge_rate",
                                                      "bucket_timeout",
                                                      "follow",
                                                      "reader_age",
                                                      "sync",
                                                      "commit",
                                                      "log",
                                                      "max_read",
                                                      "io_uring",
                                                      "snapdir",
                                                      "snapshot",
                                                      "search",
                                                      "uid",
                                                      "gid",
                                                      "umask"};
constexpr std::array<std::string_view, 8> kSwitches = {
    "ro", "rw", "allow_other", "allow_root", "noxattr", "nogc", "index_sync", "debug"};

constexpr std::array<std::string_view, 4> kSecurityContexts = {"context", "fscontext", "defcontext",
                                                               "rootcontext"};

template <typename Range>
bool Contains(const Range& range, std::string_view value) {
  return std::find(range.begin(), range.end(), value) != range.end();
}

Status Wrong(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

// Splits at commas outside double quotes (security contexts contain commas).
std::vector<std::string_view> Split(std::string_view list) {
  std::vector<std::string_view> parts;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '"') quoted = !quoted;
    if (i == list.size() || (list[i] == ',' && !quoted)) {
      if (i > start) parts.push_back(list.substr(start, i - start));
      start = i + 1;
    }
  }
  return parts;
}

Option Dissect(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Result<uint64_t> ParseNumber(const Option& option, uint64_t least, uint64_t most) {
  uint64_t number = 0;
  const std::string_view text = *option.value;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number < least || number > most) {
    return Wrong(fmt::format("mount option \"{}={}\": not a whole number from {} to {}",
                             option.name, text, least, most));
  }
  return number;
}

// A user or a group, by number.
Result<uint32_t> ParseId(const Option& option) {
  // The highest number means "unchanged" in system calls.
  SILTFS_ASSIGN_OR_RETURN(const uint64_t id, ParseNumber(option, 0, 4294967294));
  return static_cast<uint32_t>(id);
}

Result<uint32_t> ParseUmask(const Option& option) {
  constexpr uint32_t kMost = 0777;
  uint32_t umask = 0;
  const std::string_view text = *option.value;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, umask, /*base=*/8);
  if (error != std::errc() || rest != end || umask > kMost) {
    return Wrong(fmt::format(
        "mount option \"{}={}\": not an octal number from 0 to 777, as umask(2) takes it",
        option.name, text));
  }
  return umask;
}

Result<IoUringUse> ParseIoUringUse(std::string_view text) {
  if (text == "auto") return IoUringUse::kAuto;
  if (text == "on") return IoUringUse::kOn;
  if (text == "off") return IoUringUse::kOff;
  return Wrong(fmt::format("mount option \"io_uring={}\": not auto, on or off", text));
}

Result<uint64_t> ParseBytes(const Option& option) {
  auto size = ParseSize(*option.value);
  if (!size.ok())
    return Wrong(fmt::format("mount option \"{}\": {}", option.name, size.status().cause()));
  return size;
}

Result<SnapshotDirectoryMode> ParseSnapshotDirectory(std::string_view value) {
  if (value == "visible") return SnapshotDirectoryMode::kVisible;
  if (value == "hidden") return SnapshotDirectoryMode::kHidden;
  if (value == "off") return SnapshotDirectoryMode::kOff;
  return Wrong(fmt::format(
      "mount option \"snapdir\": \"{}\" is none of \"visible\", \"hidden\" and \"off\"", value));
}

Result<std::vector<std::string>> ParseSearch(std::string_view value) {
  std::vector<std::string> places;
  for (bool more = true; more;) {
    const size_t end = value.find(':');
    const std::string_view place = value.substr(0, end);
    if (!place.starts_with('/')) {
      return Wrong(fmt::format("mount option \"search\": \"{}\" is no absolute path", place));
    }
    places.emplace_back(place);
    more = end != std::string_view::npos;
    if (more) value.remove_prefix(end + 1);
  }
  return places;
}

class Parser {
 public:
  Status Take(std::string_view text) {
    const Option option = Dissect(text);
    if (TakeSwitch(option) || TakeKernelFlag(option) || IsIgnored(text, option)) return {};
    SILTFS_ASSIGN_OR_RETURN(const bool taken, TakeValue(option));
    if (taken) return {};
    if (Contains(kSecurityContexts, option.name) && option.value) {
      options_.passed_on.emplace_back(text);
      return {};
    }
    if (option.name == "auto_unmount") {
      return Wrong(
          "mount option \"auto_unmount\" is refused: it may unmount before everything is written");
    }
    if (option.name == "fsname" || option.name == "subtype") {
      return Wrong(
          fmt::format("mount option \"{}\" is refused: siltfs sets it itself", option.name));
    }
    return Wrong(fmt::format("unknown mount option \"{}\"", text));
  }

  Result<MountOptions> Finish() && {
    if (options_.allow_other && options_.allow_root) {
      return Wrong("mount options \"allow_other\" and \"allow_root\" exclude each other");
    }
    if (!options_.snapshot.empty()) options_.read_only = true;
    return std::move(options_);
  }

 private:
  // Takes an option without a value that siltfs acts on; false for any other option.
  bool TakeSwitch(const Option& option) {
    if (option.value || !Contains(kSwitches, option.name)) return false;
    if (option.name == "ro") return options_.read_only = true;
    if (option.name == "rw") return options_.read_only = false, true;
    if (option.name == "allow_other") return options_.allow_other = true;
    if (option.name == "allow_root") return options_.allow_root = true;
    if (option.name == "noxattr") return options_.no_xattrs = true;
    if (option.name == "nogc") return options_.no_background_gc = true;
    if (option.name == "index_sync") return options_.index_sync = true;
    return options_.debug = true;
  }

  bool TakeKernelFlag(const Option& option) {
    if (option.value) return false;
    for (const KernelFlag& flag : kKernelFlags) {
      if (option.name != flag.on && (flag.off.empty() || option.name != flag.off)) continue;
      std::erase(options_.passed_on, flag.on);
      std::erase(options_.passed_on, flag.off);
      if (option.name == flag.on || !flag.off_is_default)
        options_.passed_on.emplace_back(option.name);
      return true;
    }
    return false;
  }

  static bool IsIgnored(std::string_view text, const Option& option) {
    if (!option.value && Contains(kIgnored, option.name)) return true;
    return std::any_of(kIgnoredPrefixes.begin(), kIgnoredPrefixes.end(),
                       [&](std::string_view prefix) { return text.starts_with(prefix); });
  }

  // Takes an option with a value that siltfs acts on; false for any other option.
  Result<bool> TakeValue(const Option& option) {
    if (!Contains(kValues, option.name)) return false;
    if (!option.value || option.value->empty()) {
      return Wrong(fmt::format("mount option \"{}\" needs a value", option.name));
    }
    if (option.name == "index_memory") {
      SILTFS_ASSIGN_OR_RETURN(options_.index_memory, ParseBytes(option));
    } else if (option.name == "index_merge_rate") {
      SILTFS_ASSIGN_OR_RETURN(options_.index_merge_rate, ParseBytes(option));
    } else if (option.name == "commit") {
      SILTFS_ASSIGN_OR_RETURN(const uint64_t seconds,
                              ParseNumber(option, static_cast<uint64_t>(kMinCommitInterval.count()),
                                          static_cast<uint64_t>(kMaxCommitInterval.count())));
      options_.commit_interval = std::chrono::seconds(seconds);
    } else if (option.name == "bucket_timeout") {
      SILTFS_ASSIGN_OR_RETURN(const uint64_t seconds, ParseNumber(option, 1, 86400));
      options_.bucket_timeout = std::chrono::seconds(seconds);
    } else if (option.name == "follow") {
      SILTFS_ASSIGN_OR_RETURN(const uint64_t seconds, ParseNumber(option, 1, 3600));
      options_.follow_interval = std::chrono::seconds(seconds);
    } else if (option.name == "reader_age") {
      SILTFS_ASSIGN_OR_RETURN(const uint64_t seconds, ParseNumber(option, 4, 86400));
      options_.reader_age = std::chrono::seconds(seconds);
    } else if (option.name == "sync") {
      if (*option.value != "local" && *option.value != "bucket") {
        return Wrong(fmt::format("mount option \"sync\": \"{}\" is neither local nor bucket",
                                 *option.value));
      }
      options_.sync_bucket = *option.value == "bucket";
    } else if (option.name == "max_read") {
      SILTFS_ASSIGN_OR_RETURN(const uint64_t bytes, ParseNumber(option, 4096, uint64_t{1} << 30));
      options_.max_read = static_cast<uint32_t>(bytes);
    } else if (option.name == "io_uring") {
      SILTFS_ASSIGN_OR_RETURN(options_.io_uring, ParseIoUringUse(*option.value));
    } else if (option.name == "snapdir") {
      SILTFS_ASSIGN_OR_RETURN(options_.snapshot_directory, ParseSnapshotDirectory(*option.value));
    } else if (option.name == "search") {
      SILTFS_ASSIGN_OR_RETURN(options_.search, ParseSearch(*option.value));
    } else if (option.name == "uid") {
      SILTFS_ASSIGN_OR_RETURN(options_.owners.uid, ParseId(option));
    } else if (option.name == "gid") {
      SILTFS_ASSIGN_OR_RETURN(options_.owners.gid, ParseId(option));
    } else if (option.name == "umask") {
      SILTFS_ASSIGN_OR_RETURN(options_.owners.umask, ParseUmask(option));
    } else if (option.name == "snapshot") {
      options_.snapshot = std::string(*option.value);
    } else {
      options_.log_file = std::string(*option.value);
    }
    return true;
  }

  MountOptions options_;
};

}  // namespace

std::vector<std::string> MountOptionNames() {
  std::vector<std::string> names;
  const auto add = [&names](const auto& list) {
    for (const std::string_view name : list) {
      if (!name.empty()) names.emplace_back(name);
    }
  };
  add(kSwitches);
  add(kValues);
  for (const KernelFlag& flag : kKernelFlags) add(std::array{flag.on, flag.off});
  add(kSecurityContexts);
  add(kIgnored);
  return names;
}

Result<MountOptions> ParseMountOptions(std::span<const std::string> lists) {
  // mount(8) also passes the options of the mount table, which may be unknown. So the refusal comes
  // first.
  for (const std::string& list : lists) {
    if (Contains(Split(list), "remount")) {
      return Wrong(
          "mount option \"remount\" is refused: to change options, unmount the store and mount it "
          "again");
    }
  }
  Parser parser;
  for (const std::string& list : lists) {
    for (const std::string_view text : Split(list)) SILTFS_RETURN_IF_ERROR(parser.Take(text));
  }
  return std::move(parser).Finish();
}

}  // namespace siltfs
