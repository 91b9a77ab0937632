#include "store/segment/segment_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kSuffix = ".seg";
constexpr std::string_view kTemporarySuffix = ".seg.new";
constexpr size_t kIdDigits = 8;
constexpr size_t kDirectoryDigits = 6;
constexpr unsigned kDirectoryShift = 10;

std::string DirectoryName(SegmentId id) { return fmt::format("{:06x}", id >> kDirectoryShift); }

// Accepts only lower-case hex digits.
std::optional<uint32_t> ParseHex(std::string_view text) {
  uint32_t value = 0;
  for (char c : text) {
    if (c >= '0' && c <= '9') {
      value = value << 4 | static_cast<uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value << 4 | static_cast<uint32_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

std::optional<SegmentId> ParseName(std::string_view name, std::string_view suffix) {
  if (name.size() != kIdDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  std::optional<SegmentId> id = ParseHex(name.substr(0, kIdDigits));
  if (id == kNoSegment) return std::nullopt;
  return id;
}

void ClassifyFile(const std::string& directory_name, const std::string& directory,
                  const DirectoryEntry& entry, SegmentListing& listing) {
  bool temporary = false;
  std::optional<SegmentId> id = ParseSegmentFileName(entry.name);
  if (!id) {
    id = ParseName(entry.name, kTemporarySuffix);
    temporary = true;
  }
  std::string path = JoinPath(directory, entry.name);
  const bool is_place = id && DirectoryName(*id) == directory_name;
  if (is_place && !temporary && entry.type == FileType::kLink) {
    listing.links.push_back(std::move(path));
  } else if (!is_place || entry.type != FileType::kRegular) {
    listing.strays.push_back(std::move(path));
  } else if (temporary) {
    listing.temporaries.push_back(std::move(path));
  } else {
    listing.ids.push_back(*id);
  }
}

}  // namespace

std::string SegmentsDirectory(const std::string& store) { return JoinPath(store, "segments"); }

std::string SegmentDirectory(const std::string& store, SegmentId id) {
  return JoinPath(SegmentsDirectory(store), DirectoryName(id));
}

std::string SegmentPath(const std::string& store, SegmentId id) {
  return JoinPath(SegmentDirectory(store, id), fmt::format("{:08x}{}", id, kSuffix));
}

std::string TemporarySegmentPath(const std::string& store, SegmentId id) {
  return JoinPath(SegmentDirectory(store, id), fmt::format("{:08x}{}", id, kTemporarySuffix));
}

std::optional<SegmentId> ParseSegmentFileName(std::string_view name) {
  return ParseName(name, kSuffix);
}

Status CreateSegmentsDirectory(Env& env, const std::string& store) {
  return CreateDirectoryDurably(env, store, SegmentsDirectory(store));
}

Status CreateSegmentDirectory(Env& env, const std::string& store, SegmentId id) {
  return CreateDirectoryDurably(env, SegmentsDirectory(store), SegmentDirectory(store, id));
}

Result<std::unique_ptr<File>> CreateTemporarySegment(Env& env, const std::string& store,
                                                     SegmentId id) {
  const std::string path = TemporarySegmentPath(store, id);
  Status removed = env.RemoveFile(path);
  if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
  auto made = env.OpenFile(path, {.mode = OpenMode::kCreate});
  if (!made.status().Is(StatusCode::kNotFound)) return made;
  SILTFS_RETURN_IF_ERROR(CreateSegmentDirectory(env, store, id));
  return env.OpenFile(path, {.mode = OpenMode::kCreate});
}

Result<SegmentListing> ListSegments(Env& env, const std::string& store) {
  SegmentListing listing;
  const std::string segments = SegmentsDirectory(store);
  SILTFS_ASSIGN_OR_RETURN(auto directories, env.ListDirectory(segments));
  for (const DirectoryEntry& directory : directories) {
    const std::string path = JoinPath(segments, directory.name);
    const bool is_place = directory.name.size() == kDirectoryDigits && ParseHex(directory.name);
    if (is_place && directory.type == FileType::kLink) {
      listing.links.push_back(path);
      continue;
    }
    if (!is_place || directory.type != FileType::kDirectory) {
      listing.strays.push_back(path);
      continue;
    }
    listing.directories.push_back(path);
    SILTFS_ASSIGN_OR_RETURN(auto files, env.ListDirectory(path));
    for (const DirectoryEntry& file : files) ClassifyFile(directory.name, path, file, listing);
  }
  std::sort(listing.ids.begin(), listing.ids.end());
  std::sort(listing.directories.begin(), listing.directories.end());
  std::sort(listing.temporaries.begin(), listing.temporaries.end());
  std::sort(listing.strays.begin(), listing.strays.end());
  std::sort(listing.links.begin(), listing.links.end());
  return listing;
}

Status RemoveSegment(Env& env, const std::string& store, SegmentId id) {
  SILTFS_RETURN_IF_ERROR(env.RemoveFile(SegmentPath(store, id)));
  return env.SyncDirectory(SegmentDirectory(store, id));
}

}  // namespace siltfs
