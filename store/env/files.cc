#include "store/env/files.h"

#include <fmt/format.h>

namespace siltfs {

std::string JoinPath(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  std::string path(directory);
  if (path.back() != '/') path += '/';
  path += name;
  return path;
}

std::string ParentOf(std::string_view path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = end == std::string_view::npos ? end : path.rfind('/', end);
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

Result<bool> IsThere(Env& env, const std::string& path) {
  const auto info = env.GetFileInfo(path);
  if (info.ok()) return true;
  if (info.status().Is(StatusCode::kNotFound)) return false;
  return info.status();
}

Result<std::string> ReadWholeFile(Env& env, const std::string& path, uint64_t limit) {
  SILTFS_ASSIGN_OR_RETURN(auto file, env.OpenFile(path, {.mode = OpenMode::kRead}));
  SILTFS_ASSIGN_OR_RETURN(uint64_t size, file->Size());
  if (size > limit) {
    return Status(StatusCode::kFileTooLarge,
                  fmt::format("is {} bytes long, at most {} were expected", size, limit))
        .At(path);
  }
  std::string contents(size, '\0');
  MutableByteView out(reinterpret_cast<uint8_t*>(contents.data()), contents.size());
  SILTFS_ASSIGN_OR_RETURN(size_t got, file->Read(0, out));
  contents.resize(got);
  return contents;
}

Result<std::vector<DirectoryEntry>> ListOrClear(Env& env, const std::string& directory) {
  auto entries = env.ListDirectory(directory);
  const bool is_other = entries.status().Is(StatusCode::kNotADirectory) ||
                        entries.status().Is(StatusCode::kCorruption);
  if (!is_other) return entries;
  SILTFS_RETURN_IF_ERROR(env.RemoveFile(directory));
  return env.ListDirectory(directory);
}

Status ReadExactly(const ReadableFile& file, uint64_t offset, MutableByteView out) {
  SILTFS_ASSIGN_OR_RETURN(size_t got, file.Read(offset, out));
  if (got == out.size()) return Status::Ok();
  return Status(StatusCode::kCorruption,
                fmt::format("ends after {} of {} bytes read", got, out.size()))
      .At(file.path(), offset);
}

Status ForGood(Status failed) {
  if (!failed.Is(StatusCode::kNoSpace)) return failed;
  return Status(StatusCode::kIoError, std::string(failed.cause())).At(failed.path());
}

Status SyncNames(Env& env, const std::string& directory) {
  return ForGood(env.SyncDirectory(directory));
}

Status CreateDirectoryDurably(Env& env, const std::string& parent, const std::string& directory) {
  Status created = env.CreateDirectory(directory);
  if (!created.ok() && !created.Is(StatusCode::kAlreadyExists)) return created;
  return SyncNames(env, parent);
}

Status MakeEmptyDirectory(Env& env, const std::string& directory) {
  const auto entries = ListOrClear(env, directory);
  if (entries.status().Is(StatusCode::kNotFound)) {
    return CreateDirectoryDurably(env, directory.substr(0, directory.rfind('/')), directory);
  }
  SILTFS_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries)
    SILTFS_RETURN_IF_ERROR(env.RemoveFile(JoinPath(directory, entry.name)));
  return env.SyncDirectory(directory);
}

Status ReplaceFile(Env& env, const std::string& path, ByteView contents) {
  const std::string temporary = path + ".new";
  Status removed = env.RemoveFile(temporary);  // left over from a crash
  if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
  SILTFS_ASSIGN_OR_RETURN(auto file, env.OpenFile(temporary, {.mode = OpenMode::kCreate}));
  SILTFS_RETURN_IF_ERROR(file->Write(0, contents));
  SILTFS_RETURN_IF_ERROR(file->Sync());
  SILTFS_RETURN_IF_ERROR(file->Close());
  SILTFS_RETURN_IF_ERROR(env.Rename(temporary, path));
  size_t slash = path.rfind('/');
  return SyncNames(env, slash == std::string::npos ? "."
                        : slash == 0               ? "/"
                                                   : path.substr(0, slash));
}

}  // namespace siltfs
