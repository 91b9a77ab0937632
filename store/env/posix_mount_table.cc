#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <memory>
#include <set>

#include "store/env/mount_table.h"
#include "store/env/posix_descriptor.h"
#include "store/env/posix_error.h"

namespace siltfs {
namespace {

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

// /proc writes blanks, tabs, newlines, backslashes and '#' as \ooo.
std::string DecodeOctal(std::string_view field) {
  std::string text;
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size() && IsOctal(field[i + 1]) &&
        IsOctal(field[i + 2]) && IsOctal(field[i + 3])) {
      text += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 +
                                (field[i + 3] - '0'));
      i += 3;
    } else {
      text += field[i];
    }
  }
  return text;
}

std::string_view TakeUntil(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

Result<std::string> ReadTable(const std::string& path) {
  const Descriptor file(RetryInterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!file.valid()) return PosixError("open", errno).At(path);
  std::string text;
  char bytes[16384];
  while (true) {
    const ssize_t got = RetryInterrupted([&] { return read(file.get(), bytes, sizeof bytes); });
    if (got < 0) return PosixError("read", errno).At(path);
    if (got == 0) return text;
    text.append(bytes, static_cast<size_t>(got));
  }
}

// The mount namespace of a process; empty if it cannot be read.
std::string NamespaceOf(const std::string& process) {
  char target[PATH_MAX];
  const ssize_t size = readlink((process + "/ns/mnt").c_str(), target, sizeof target);
  return size < 0 ? std::string() : std::string(target, static_cast<size_t>(size));
}

}  // namespace

std::vector<Mount> ParseMountTable(std::string_view text) {
  // An example of a line: 36 35 0:53 / /mnt rw,noatime shared:1 - fuse.siltfs /store rw,user_id=0
  std::vector<Mount> mounts;
  while (!text.empty()) {
    std::string_view line = TakeUntil(text, '\n');
    Mount mount;
    TakeUntil(line, ' ');
    TakeUntil(line, ' ');
    mount.device = TakeUntil(line, ' ');
    TakeUntil(line, ' ');
    mount.mount_point = DecodeOctal(TakeUntil(line, ' '));
    mount.mount_options = TakeUntil(line, ' ');
    std::string_view optional;
    do {
      optional = TakeUntil(line, ' ');
    } while (optional != "-" && !line.empty());
    mount.type = DecodeOctal(TakeUntil(line, ' '));
    mount.source = DecodeOctal(TakeUntil(line, ' '));
    mount.file_system_options = TakeUntil(line, ' ');
    if (!mount.mount_point.empty() && !mount.type.empty()) mounts.push_back(std::move(mount));
  }
  return mounts;
}

Result<std::vector<Mount>> ReadMountTable() {
  SILTFS_ASSIGN_OR_RETURN(const std::string text, ReadTable("/proc/self/mountinfo"));
  return ParseMountTable(text);
}

bool IsMountedOn(const std::string& mount_point, const std::string& device) {
  const auto table = ReadMountTable();
  if (!table.ok()) return false;
  const auto top = std::find_if(table->rbegin(), table->rend(), [&](const Mount& candidate) {
    return candidate.mount_point == mount_point;
  });
  return top != table->rend() && top->device == device;
}

bool HasOption(std::string_view options, std::string_view name) {
  while (!options.empty()) {
    if (TakeUntil(options, ',') == name) return true;
  }
  return false;
}

std::optional<uint32_t> NumberOption(std::string_view options, std::string_view name) {
  while (!options.empty()) {
    std::string_view option = TakeUntil(options, ',');
    if (TakeUntil(option, '=') != name) continue;
    uint32_t number = 0;
    const auto [rest, error] =
        std::from_chars(option.data(), option.data() + option.size(), number);
    if (error == std::errc() && rest == option.data() + option.size()) return number;
  }
  return std::nullopt;
}

std::optional<ForeignMount> FindForeignMount(const std::string& device) {
  struct CloseDirectory {
    void operator()(DIR* directory) const { closedir(directory); }
  };
  const std::unique_ptr<DIR, CloseDirectory> processes(opendir("/proc"));
  if (!processes) return std::nullopt;
  std::set<std::string> seen = {NamespaceOf("/proc/self")};
  while (const dirent* entry = readdir(processes.get())) {
    const std::string_view name = entry->d_name;
    int64_t pid = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || rest != name.data() + name.size()) continue;
    const std::string process = "/proc/" + std::string(name);
    const std::string its_namespace = NamespaceOf(process);
    if (its_namespace.empty() || !seen.insert(its_namespace).second) continue;
    const auto text = ReadTable(process + "/mountinfo");
    if (!text.ok()) continue;
    for (const Mount& mount : ParseMountTable(*text)) {
      if (mount.device == device) {
        return ForeignMount{.pid = pid, .mount_point = mount.mount_point};
      }
    }
  }
  return std::nullopt;
}

}  // namespace siltfs
