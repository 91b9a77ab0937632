#include "index/flash/store_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "store/base/aligned_buffer.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

// Enough digits for every value (64 bits for ids), so that names sort by number.
constexpr size_t kPartitionDigits = 5;
constexpr size_t kIdDigits = 20;

constexpr std::array<std::string_view, 5> kSuffixes = {"log", "hash", "sorted", "filter", "pages"};
constexpr std::array<std::string_view, 5> kKindNames = {"log_store", "hash_store", "sorted_store",
                                                        "sorted_filter", "page_file"};

}  // namespace

std::string_view StoreKindName(StoreKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::string StoreFileName(const StoreFileId& file) {
  return fmt::format("{:0{}}-{:0{}}.{}", file.partition, kPartitionDigits, file.id, kIdDigits,
                     kSuffixes[static_cast<size_t>(file.kind)]);
}

std::optional<StoreFileId> ParseStoreFileName(std::string_view name) {
  StoreFileId file;
  const char* const end = name.data() + name.size();
  const auto partition = std::from_chars(name.data(), end, file.partition);
  if (partition.ec != std::errc() || partition.ptr == end) return std::nullopt;
  const auto id = std::from_chars(partition.ptr + 1, end, file.id);
  // Ids count up from 1 and never get this large; such a file does not belong to an index.
  if (id.ec != std::errc() || file.id > kMaxStoreId) return std::nullopt;
  for (const StoreKind kind : {StoreKind::kLog, StoreKind::kHash, StoreKind::kSorted,
                               StoreKind::kFilter, StoreKind::kPages}) {
    if (!name.ends_with(kSuffixes[static_cast<size_t>(kind)])) continue;
    file.kind = kind;
    if (StoreFileName(file) == name) return file;
  }
  return std::nullopt;
}

Status UnlessNoFiles(Status status) {
  if (!status.Is(StatusCode::kOutOfMemory)) return status;
  return Status(StatusCode::kNoSpace,
                "the process has no memory or no file descriptors left for the index; raise its "
                "limit of open files")
      .At(status.path());
}

Result<std::shared_ptr<File>> CreateStoreFile(Env& env, const std::string& directory,
                                              const StoreFileId& file) {
  const std::string path = JoinPath(directory, StoreFileName(file));
  Result<std::unique_ptr<File>> created = env.OpenFile(path, {.mode = OpenMode::kCreate});
  if (!created.ok() && created.status().Is(StatusCode::kAlreadyExists)) {
    SILTFS_RETURN_IF_ERROR(env.RemoveFile(path));
    created = env.OpenFile(path, {.mode = OpenMode::kCreate});
  }
  if (!created.ok()) return UnlessNoFiles(std::move(created).status());
  return std::shared_ptr<File>(std::move(*created));
}

Result<std::shared_ptr<File>> OpenStoreFile(Env& env, const std::string& directory,
                                            const StoreFileId& file, OpenMode mode, bool direct) {
  const std::string path = JoinPath(directory, StoreFileName(file));
  Result<std::unique_ptr<File>> opened = env.OpenFile(path, {.mode = mode, .direct = direct});
  if (!opened.ok() && direct && opened.status().Is(StatusCode::kUnsupported)) {
    opened = env.OpenFile(path, {.mode = mode});
  }
  if (opened.ok()) return std::shared_ptr<File>(std::move(*opened));
  if (opened.status().Is(StatusCode::kNotFound)) return std::shared_ptr<File>();
  return UnlessNoFiles(std::move(opened).status());
}

namespace {

// Reads whole blocks into `aligned`, which must be large enough.
Result<ByteView> ReadRangeInto(const File& file, uint64_t offset, size_t size,
                               MutableByteView aligned) {
  const uint64_t begin = offset / AlignedBuffer::kAlignment * AlignedBuffer::kAlignment;
  SILTFS_ASSIGN_OR_RETURN(const size_t got, file.Read(begin, aligned));
  if (begin + got < offset + size) {
    return Status(StatusCode::kCorruption, "is shorter than it should be").At(file.path(), offset);
  }
  return ByteView(aligned.subspan(offset - begin, size));
}

// Size of the whole blocks around a range.
size_t BlocksAround(uint64_t offset, size_t size) {
  constexpr uint64_t kBlock = AlignedBuffer::kAlignment;
  return (offset % kBlock + size + kBlock - 1) / kBlock * kBlock;
}

}  // namespace

Result<Bytes> ReadStoreRange(const File& file, uint64_t offset, size_t size) {
  AlignedBuffer buffer(BlocksAround(offset, size));
  SILTFS_ASSIGN_OR_RETURN(const ByteView range, ReadRangeInto(file, offset, size, buffer.view()));
  return Bytes(range.begin(), range.end());
}

Result<ByteView> ReadStoreRange(const File& file, uint64_t offset, size_t size,
                                PageVector<uint8_t>& buffer) {
  const size_t whole = BlocksAround(offset, size);
  // Not every allocator returns page-aligned memory.
  constexpr size_t kBlock = AlignedBuffer::kAlignment;
  if (buffer.size() < whole + kBlock) buffer.resize(whole + kBlock);
  const size_t past = reinterpret_cast<uintptr_t>(buffer.data()) % kBlock;
  const size_t first = past == 0 ? 0 : kBlock - past;
  return ReadRangeInto(file, offset, size, MutableByteView(buffer).subspan(first, whole));
}

Status RemoveStoreFile(Env& env, const std::string& directory, const StoreFileId& file) {
  return env.RemoveFile(JoinPath(directory, StoreFileName(file)));
}

Result<std::vector<StoreFileId>> ListStoreFiles(Env& env, const std::string& directory) {
  SILTFS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, env.ListDirectory(directory));
  std::vector<StoreFileId> files;
  for (const DirectoryEntry& entry : entries) {
    if (const auto file = ParseStoreFileName(entry.name)) files.push_back(*file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace siltfs
