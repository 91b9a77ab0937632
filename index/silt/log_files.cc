#include "index/silt/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kLogSuffix = ".log";
constexpr size_t kLogIdDigits = 20;  // as many as 64 bits take, so that names sort by number

}  // namespace

std::string LogFileName(uint64_t id) {
  return fmt::format("{:0{}}{}", id, kLogIdDigits, kLogSuffix);
}

std::optional<uint64_t> ParseLogFileName(std::string_view name) {
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc() || LogFileName(id) != name) return std::nullopt;
  return id;
}

Result<std::shared_ptr<File>> CreateLogFile(Env& env, const std::string& directory, uint64_t id) {
  const std::string path = JoinPath(directory, LogFileName(id));
  Result<std::unique_ptr<File>> file = env.OpenFile(path, {.mode = OpenMode::kCreate});
  if (!file.ok() && file.status().Is(StatusCode::kAlreadyExists)) {
    SILTFS_RETURN_IF_ERROR(env.RemoveFile(path));
    file = env.OpenFile(path, {.mode = OpenMode::kCreate});
  }
  if (!file.ok()) return std::move(file).status();
  return std::shared_ptr<File>(std::move(*file));
}

Result<std::shared_ptr<File>> OpenLogFile(Env& env, const std::string& directory, uint64_t id,
                                          OpenMode mode) {
  Result<std::unique_ptr<File>> file =
      env.OpenFile(JoinPath(directory, LogFileName(id)), {.mode = mode});
  if (file.ok()) return std::shared_ptr<File>(std::move(*file));
  if (file.status().Is(StatusCode::kNotFound)) return std::shared_ptr<File>();
  return std::move(file).status();
}

Result<std::vector<std::string>> FindOrphanedLogs(Env& env, const std::string& directory,
                                                  const StoreManifest& manifest) {
  SILTFS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, env.ListDirectory(directory));
  std::vector<std::string> orphans;
  for (const DirectoryEntry& entry : entries) {
    const std::optional<uint64_t> id = ParseLogFileName(entry.name);
    if (!id) continue;
    const bool listed = std::ranges::binary_search(manifest.logs, *id, {}, &LogRecord::id);
    if (!listed) orphans.push_back(JoinPath(directory, entry.name));
  }
  return orphans;
}

}  // namespace siltfs
